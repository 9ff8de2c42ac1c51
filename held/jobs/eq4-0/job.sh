here=$(cd "$(dirname "$0")" && pwd); shard=${here##*-}
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site
mpirun -n 4 python $here/eq.py $shard peer,nccl,mpi 2>&1 | grep -v "^$\|^---"
