"""scripts/bench/pool_latency.py by one rule of which runs are short: `longest` (before) or `median` (the patch)."""

import sys

import pool_latency
from sigps.serve import dispatcher

if sys.argv.pop(1) == "longest":
    dispatcher.is_short = lambda times, quantum: dispatcher.first_lease(times, quantum) > 1
counts = [0, 0]
found = dispatcher.is_short


def is_short(times, quantum):
    short = found(times, quantum)
    if times.latest and max(times.latest) < 0.01:  # searches: long jobs take longer
        counts[short] += 1
    return short


dispatcher.is_short = is_short
pool_latency.main()
print(f"of runs whose like took less than 10 ms of late {counts[1]} were taken for short and {counts[0]} not", flush=True)
