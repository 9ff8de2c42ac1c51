"""How fast Python is after a wait of one kind or another; throwaway."""
import json, statistics, time, re, copy, dataclasses, collections, logging, ast
import numpy as np, cupy
def p(*a): print(*a, flush=True)
src="def f(a,b):\n    x=[i*a for i in range(b)]\n    return {'k':x,'s':str(b)}\n"
doc={"a":[1,2,{"b":"c"*10}]*6,"n":{str(i):i*1.5 for i in range(20)}}
@dataclasses.dataclass
class D: a:int; b:float; c:str
def W():
    t=ast.parse(src); ast.dump(t); s=json.dumps(doc); json.loads(s); re.sub("c+","d",s)
    ds=[D(i,i*.5,str(i)) for i in range(20)]; [dataclasses.asdict(d) for d in ds[:6]]; copy.deepcopy(doc["n"])
    sorted(ds,key=lambda d:-d.b); a=np.arange(30); a=a+1; a.view(np.uint8).reshape(-1,8)[:, :4].copy(); f"{a!r}"; collections.Counter(s)
k=cupy.RawKernel(r'extern "C" __global__ void k(long long n){ long long t=clock64(); while(clock64()-t<n); }','k')
s=cupy.cuda.get_current_stream()
k((1,),(1,),(np.int64(1000),)); s.synchronize()
rate=1.7e9
def gpu(T): k((1,),(1,),(np.int64(T*rate),)); s.synchronize()
def gpu_query(T):
    k((1,),(1,),(np.int64(T*rate),))
    while not s.done: pass
pin=cupy.cuda.alloc_pinned_memory(4096); flag=np.frombuffer(pin,np.int32,1); a=cupy.ones(4,cupy.int32)
def gpu_poll(T):
    flag[0]=0; k((1,),(1,),(np.int64(T*rate),)); cupy.cuda.runtime.memcpyAsync(pin.ptr,a.data.ptr,4,2,s.ptr)
    while not flag[0]: pass
def busy(T):
    e=time.perf_counter()+T
    while time.perf_counter()<e: pass
def nothing(T): pass
for _ in range(300): W()
for rounds in range(2):
  for T in (0.0003,0.001,0.004):
    for name,f in (("nothing",nothing),("busy python",busy),("sleep",time.sleep),("gpu sync",gpu),("gpu query",gpu_query),("gpu poll pinned",gpu_poll)):
        ws=[];fs=[]
        for _ in range(150):
            t0=time.perf_counter(); f(T); t1=time.perf_counter(); W(); t2=time.perf_counter(); ws.append(t2-t1); fs.append(t1-t0)
        p(f"SPIN T {T*1e3:4.1f} ms {name:18} work after {statistics.median(ws)*1e6:7.1f} us least {min(ws)*1e6:7.1f}   wait {statistics.median(fs)*1e3:7.3f}")
