import os
worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if worker:
    seen = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    n = int(worker[2:]) % len(seen)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(seen[n:] + seen[:n])
