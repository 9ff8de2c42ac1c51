here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
python $here/million.py
