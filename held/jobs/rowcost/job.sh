here=$(cd "$(dirname "$0")" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SIGPS_CACHE_DIR=/tmp/cache PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site
store=/tmp/rowcost/25
timeout 60 mpirun -n 2 python $here/cost.py $store BFS0,SSSP,BFS,WCC peer 0,20,45,90
timeout 45 mpirun -n 2 python $here/cost.py $store SSSP,BFS0 nccl 0,45
