"""xdist workers spread over GPUs; what fails is written at once, since a run that is cut short prints no summary."""

import os

worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if worker:
    seen = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    n = int(worker[2:]) % len(seen)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(seen[n:] + seen[:n])


def pytest_runtest_logreport(report):
    if report.failed and not worker:
        with open(os.environ.get("OUT", ".") + "/failures.txt", "a") as file:
            print("=" * 100, report.nodeid, report.when, report.longreprtext[-6000:], report.capstderr[-1500:], sep="\n", file=file)
