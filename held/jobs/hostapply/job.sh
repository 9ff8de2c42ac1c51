export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
python $(dirname "$0")/hostapply.py 22 1000000
