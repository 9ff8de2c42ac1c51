"""A quarter of the programs of the equality battery on four ranks with a GPU each: by peers, NCCL, hosts, a third of the graphs each."""
import sys, time
sys.argv = [sys.argv[0], *sys.argv[1:]]
import gpu_rank_script as g
shard = int(sys.argv[1])
began = time.time()
def words(text):
    if g.world().rank == 0: print(f"{time.time()-began:6.1f} s  {text}", flush=True)
for turn, transport in enumerate(sys.argv[2].split(",")):
    done = 0
    for i, name in enumerate(g.PROGRAMS):
        if i % 4 != shard: continue
        for j, graph in enumerate(g.GRAPHS):
            k = i + j
            if k % 3 != turn: continue
            options = {"direction": g.DIRECTIONS[(k // 3) % 3], "partitioner": g.METHODS[k % 4] if k % 4 < 3 else g.by_size(g.world().size)}
            g.check(name, graph, transport, **options); done += 1
        words(f"{transport}: {name} agrees ({done} runs)")
    words(f"ALL {done} by {transport} agree")
