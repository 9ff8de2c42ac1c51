here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/scripts/bench:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
timeout 60 python $here/latency.py median --device cuda --scale 22 --long-scale 24 --most 5
