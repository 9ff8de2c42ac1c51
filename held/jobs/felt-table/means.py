"""Geometric means of host ratios, and what is below its aim."""

import json
import math
import sys

aims = {"PageRank, 30 rounds": 1.8, "BFS": 8, "SSSP": 10, "WCC": 6, "core numbers": 12, "triangles": 7}
rows = json.load(open(sys.argv[1]))["rows"]
for work, aim in aims.items():
    ratios = {r["graph"]: r["host_times_faster"] for r in rows if r["work"] == work and "host_times_faster" in r}
    if ratios:
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        print(f"{work:22} mean {mean:6.2f} of {aim} wanted, least {min(ratios.values()):.2f}", ratios)
for r in rows:
    for kind in ("whole", "host"):
        if r.get(f"{kind}_times_faster", 9) < 1.5:
            print("below 1.5:", r["work"], r["graph"], kind, r[f"{kind}_times_faster"], "device ms", r.get("device_ms"))
