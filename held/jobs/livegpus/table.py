"""Print batches before and after, of two GPUs and of one."""
import re, sys
found = {}
for line in open(sys.argv[1]):
    if " work " not in f" {line}":
        continue
    which = line.split()[0]
    row = dict(re.findall(r"(\w+) (\S+)", line[len(which):]))
    key = row["work"], row["graph"], row["batch"], row["kind"]
    found.setdefault(key, {})[which, row["ranks"]] = row
print("work graph batch kind | before: two | after: two (host, rows, going on) | one")
for key, rows in found.items():
    b, a, o = (rows.get(k, {}) for k in (("before", "2"), ("after", "2"), ("after", "1")))
    parts = ", ".join(a.get(n, "-") for n in ("host_ms", "rows_ms", "going_on_ms"))
    print(*key, "|", b.get("batch_ms", "-"), "|", a.get("batch_ms", "-"), f"({parts})", "|", o.get("batch_ms", "-"),
          "|", a.get("incremental", "-"), "of", a.get("of", "-"))
