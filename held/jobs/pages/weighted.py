import sys, os
import numpy as np, sigps
for name, file in (("cnr-2000", "cnr-2000.txt.xz"), ("dblp-2010", "dblp-2010.mtx.xz")):
    g = sigps.load(os.environ["SIGPS_DATA"] + "/" + file)
    g = g.undirected(simple=True)
    rows = g.in_edges(); n = rows.offsets.size - 1
    targets = np.repeat(np.arange(n), np.diff(rows.offsets).astype(np.int64))
    one = rows.sources < targets
    w = np.random.default_rng(1).integers(1, 256, int(one.sum()))
    ids = np.arange(n)
    sigps.Graph.from_edges(ids[rows.sources[one]], ids[targets[one]], weights=w, directed=False).save(f"/tmp/j/{name}-w.sigps")
