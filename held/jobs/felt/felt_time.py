"""Times of warm runs; throwaway. felt_time.py LABEL [seg]"""
import json, os, statistics, sys, time
from collections import defaultdict
from pathlib import Path
sys.path.insert(0, os.environ["TREE"] + "/scripts/bench")
import cupy
import sigps
from sigps.apps import *
from beside_cugraph import Subject, WORKS
OUT=Path(os.environ["OUT"]); label=sys.argv[1]; seg="seg" in sys.argv
def p(*a): print(*a, flush=True)
def sync(): cupy.cuda.Device().synchronize()
acc=defaultdict(list)
def wrap(owner,name,label=None):
    f=getattr(owner,name,None)
    if f is None: return
    def g(*a,**k):
        t=time.perf_counter()
        try: return f(*a,**k)
        finally: acc[label or name].append(time.perf_counter()-t)
    setattr(owner,name,g)
def segments():
    import sigps.job.collect as C, sigps.system.worker_manager as W, sigps.system.worker as WK
    import sigps.engine.gpu.engine as E, sigps.engine.gpu.run_memory as M, sigps.engine.gpu.priority as Q
    import sigps.job.run; R=sys.modules['sigps.job.run']
    import sigps.device.cuda as D
    wrap(R,'prepared'); wrap(R,'prepared_alike'); wrap(R,'RunRecord'); wrap(R,'spans_since'); wrap(R,'plain_options'); wrap(C,'collect'); wrap(W.WorkerManager,'run','wm.run'); wrap(WK.Worker,'__init__','make'); wrap(W.WorkerManager,'_follow')
    wrap(E.GpuEngine,'__init__','engine'); wrap(M.RunMemory,'__init__','memory'); wrap(WK.Worker,'lease'); wrap(W.RankResult,'__init__','RankResult')
    wrap(M.RunMemory,'read_back'); wrap(M.RunMemory,'set_next'); wrap(M,'_taken'); wrap(M,'check_fits'); wrap(M.RunMemory,'_typed_states')
    try:
        import sigps.engine.gpu.beginning as B; wrap(B.Beginning,'write')
    except ImportError: pass
    wrap(D.Kernel,'launch','Kernel.launch'); wrap(D.Kernel,'launch_cluster','launch_cluster')
    from cuda.bindings import driver
    wrap(driver,'cuLaunchCooperativeKernel'); wrap(driver,'cuLaunchKernel')
    wrap(Q.GpuBuckets,'__init__','buckets()'); wrap(Q.GpuBuckets,'find'); wrap(Q.GpuBuckets,'release'); wrap(E.GpuEngine,'_release'); wrap(E.GpuEngine,'_compiled')
    wrap(W,'ranks_of_run'); wrap(W,'partition_of'); wrap(W.WorkerManager,'_register'); wrap(W,'Master'); wrap(E.GpuEngine,'fields'); wrap(M,'lease_template')
    import sigps.engine.gpu.numbering as N, sigps.device.transfers as T; wrap(N.DeviceFields,'__getitem__'); wrap(N.DeviceFields,'on_device'); wrap(T,'_in_pieces')
    wrap(N,'bring')
rows={}
def of(name, run, fields, n=50):
    for _ in range(6): r=run(); [r[f] for f in fields]
    whole=[];host=[];dev=[]
    for _ in range(n):
        sync(); t=time.perf_counter(); r=run(); sync(); whole.append(time.perf_counter()-t); dev.append(sum(s.seconds for s in r.stats))
    for _ in range(n):
        sync(); t=time.perf_counter(); r=run(); [r[f] for f in fields]; host.append(time.perf_counter()-t)
    m=lambda v:round(statistics.median(v)*1e3,3)
    rows[name]=dict(whole=m(whole),host=m(host),device=m(dev),least=round(min(whole)*1e3,3),leases=len(r.record.leases),supersteps=r.supersteps)
    p(label, f"{name:40}", rows[name])
    (OUT/f"times-{label}.json").write_text(json.dumps(rows,indent=1))
def segs(name, run):
    acc.clear()
    for _ in range(6): run()
    acc.clear(); ts=[]; n=60
    for _ in range(n):
        sync(); t=time.perf_counter(); r=run(); sync(); ts.append(time.perf_counter()-t); r[next(iter(r.fields))]
    p("SEG",sigps.__file__, label, name, f"run {statistics.median(ts)*1e6:.0f} us")
    for k,v in acc.items(): p(f"    {k:26} {statistics.median(v)*1e6:8.1f} us  a run {sum(v)/n*1e6:8.1f}  x{len(v)/n:.1f}")
def main():
    if seg: segments()
    R=lambda prog,g: (lambda: sigps.run(prog,g,device="cuda",precision="single"))
    path=sigps.Graph.from_edges([0,1,2,3],[1,2,3,4])
    (segs if seg else of)("BFS path5", R(BFS(source=0),path), *([] if seg else [("level",),300]))
    data=Path(os.environ["FELT_DATA"])
    for g in ("web-NotreDame","cnr-2000"):
        subject=Subject(g,data)
        for work,rule in WORKS.items():
            if work in ("triangles","SSSP") and g!="web-NotreDame": continue
            if g!="web-NotreDame" and work not in ("BFS","WCC","Katz to 1e-6","PageRank, 30 rounds"): continue
            if seg and (g!="web-NotreDame" or work not in ("BFS","WCC","Katz to 1e-6","PageRank, 30 rounds","ego net of the hub","core numbers")): continue
            try:
                programs,graph=rule.programs(subject)
                if seg: segs(f"{work} {g}", R(programs[0],graph))
                else: of(f"{work} {g}", R(programs[0],graph), rule.fields, 8 if work in ("core numbers","triangles") else 50)
            except Exception as e:
                import traceback; traceback.print_exc()
main()
