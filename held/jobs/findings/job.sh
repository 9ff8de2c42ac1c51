set -u
python "$(dirname "$0")/checks.py" >"$OUT/checks.log" 2>&1 || true
tail -n 25 "$OUT/checks.log"
