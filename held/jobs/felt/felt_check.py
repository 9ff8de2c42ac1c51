import os, sys; sys.path.insert(0, os.environ["TREE"] + "/scripts/bench")
from pathlib import Path
import numpy as np, sigps
from sigps.apps import *
from beside_cugraph import Subject
s=Subject("web-NotreDame",Path(os.environ["FELT_DATA"])); g=s.graph
for prog,f in ((BFS(source=s.sources[0]),"level"),(WCC(),"component"),(SSSP(source=5),"distance"),(KCore(),"core"),(BFS(source=3),"parent"),(BFS(source=3),"level")):
    for _ in range(3):
        a=sigps.run(prog,g,device="cuda",precision="single")[f]; 
    b=sigps.run(prog,g,device="cpu",precision="single")[f]
    ok = np.array_equal(np.ma.getdata(a),np.ma.getdata(b)) or f=="parent" and (np.ma.getmaskarray(a)==np.ma.getmaskarray(b)).all()
    print("CHECK",prog,f,a.dtype,b.dtype,ok, flush=True)
