here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
python $here/big28.py 28 $OUT/big28.json $(cat COMMIT) 2>&1 | tee $OUT/big28.txt
