#!/usr/bin/env bash
# Two GPUs. Nothing is changed: it shows where the open figures of two ranks go. WCC on kron-24 (3.66 ms on two, 2.8 on
# one, H100): supersteps against the host between them. First run of kron-24 (4.2 s, 2 wanted): account and functions of
# each rank. NCCL alone: the host's part of an empty superstep (0.58 ms), and PageRank on kron-22 (1.0 ms wanted).
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/felt-cache OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
on() { local ranks=$1; shift; timeout 45 mpirun -n "$ranks" python "$@" 2>&1 | tee -a $OUT/two.txt | head -60; }
on 1 $here/where.py WCC kron-24 20
on 2 $here/where.py WCC kron-24 20
on 2 $here/where.py BFS kron-24 20
on 2 $here/first_run.py 24 cuda
on 2 $here/where.py BFS path-1500 3 nccl
on 2 $here/where.py PageRank kron-22 5 nccl
