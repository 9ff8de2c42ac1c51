here=$(cd "$(dirname "$0")" && pwd)
export SIGPS_CACHE_DIR=/tmp/cache PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site
mkdir -p /tmp/rowcost
timeout 40 python $here/speed.py draw /tmp/rowcost/25 25
timeout 90 python $here/cost.py /tmp/rowcost/25 BFS0,SSSP,BFS,WCC auto 0,20,45,90
