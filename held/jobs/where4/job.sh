here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
timeout 25 mpirun -n 4 python $here/where.py BFS kron-24 20 2>&1 | head -45
timeout 40 mpirun -n 2 python $here/where26.py 2>&1 | head -60
