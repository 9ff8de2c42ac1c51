here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
timeout 60 python $here/gain.py 24
