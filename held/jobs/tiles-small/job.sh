#!/usr/bin/env bash
# One GPU, main as it is: graphs of tiles.py that were not measured since the pass over rows changed; then WINDOW=16 in
# tile_layout.cu (edges among which a lane chooses a bank) beside 8, on the layout's time and on supersteps.
export PYTHONPATH=$PWD:/tmp/site
D=$SIGPS_DATA
timeout 80 python scripts/bench/tiles.py --data $D --graphs web-NotreDame,cnr-2000,dblp-2010 --only PageRank --output $OUT/tiles-small.json 2>&1
timeout 80 python scripts/bench/tiles.py --data $D --graphs web-22,uniform-22 --only PageRank --no-layouts --output $OUT/tiles-web.json 2>&1
ab() { timeout 38 python scripts/bench/tiles.py --data $D --graphs kron-22 --only PageRank --output $OUT/window-$1.json 2>&1; }
echo "== WINDOW 8"; ab 8
sed -i 's/constexpr int WINDOW = 8;/constexpr int WINDOW = 16;/' sigps/kernels/cuda/tile_layout.cu
grep -n "WINDOW = " sigps/kernels/cuda/tile_layout.cu
echo "== WINDOW 16"; ab 16
git checkout sigps/kernels/cuda/tile_layout.cu 2>/dev/null || sed -i 's/constexpr int WINDOW = 16;/constexpr int WINDOW = 8;/' sigps/kernels/cuda/tile_layout.cu
python - <<'P'
import json, os
for w in (8, 16):
    try:
        for row in json.load(open(os.environ["OUT"] + f"/window-{w}.json"))["rows"]:
            print("WINDOW", w, row)
    except OSError as e:
        print(e)
P
