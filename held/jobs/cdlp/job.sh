#!/usr/bin/env bash
# One GPU, branch cdlp-batch: tests of long combined messages, of messages by key and sorted lists over packed edges, and of those in
# memory whose text was moved; then CDLP and PageRank over kron-24's pages, after and before.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1
store=${STREAM_STORE:-/tmp/cdlp-stores}
mkdir -p "$store"
gpu() { timeout 120 python -m pytest -v -rf -p no:cacheprovider -m gpu $2 -k "$3" > "$OUT/tests-$1.txt" 2>&1; }
edges=tests/engine/gpu/test_packed_edges.py lists=tests/engine/gpu/test_packed_lists.py keyed=tests/engine/gpu/test_keyed_messages.py
gpu long $edges "long" &
gpu equal-cpu $edges "on_packed_edges_equal_cpu" &
gpu searches $edges "read_rows_and_pages and (BFS or SSSP)" &
gpu interpreter $edges "equal_the_interpreter_on_a_gpu and skewed" &
gpu by-key tests/engine/gpu/test_packed_keys.py "CDLP or pulls" &
gpu lists-rounds $lists "rounds" &
gpu lists-tables $lists "tables" &
gpu lists-labels $lists "labels" &
gpu memory-kinds $keyed "every_kind" &
gpu memory-others $keyed "not every_kind and not ranks" &
gpu memory-ranks $keyed "ranks" &
wait
for found in "$OUT"/tests-*.txt; do echo "$(basename "$found"): $(tail -1 "$found" | cut -c1-160)"; grep -h "^FAILED\|^E  " "$found" | head -6; done
timeout 20 python - "$store" <<'P'
import sys
from sigps.device.cuda import find_gpu
from sigps.graph.generators.drawn_store import write_drawn
from sigps.graph.generators.generate import edge_stream
write_drawn(edge_stream("rmat", scale=24, seed=1), sys.argv[1] + "/kron-24", find_gpu())
P
for which in after before; do
  root=$PWD; [ $which = before ] && root=$MAIN
  PYTHONPATH=$root:/tmp/site timeout 28 python "$here/measure.py" "$store" 24 $which 2>&1 | tail -4 | tee -a "$OUT/cdlp.txt"
  PYTHONPATH=$root:/tmp/site timeout 18 python "$here/pagerank.py" $which "$store/kron-24" 2>&1 | tail -3 | tee -a "$OUT/pagerank.txt"
done
rm -rf "$store"
