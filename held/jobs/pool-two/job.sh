#!/usr/bin/env bash
# Two GPUs. First jobs that have both together (own code, and programs of the pool's process: results, suspension, a killed
# rank), then what a second GPU brings to 64 jobs of one GPU each. Wanted: all pass, none skipped; 1.9 times by one pool of
# both (1.41 at edc7c9a), or else how much of it two processes reach.
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site SIGPS_CACHE_DIR=/tmp/pool-cache
# Open MPI counts cores, or refuses root; MPICH does not know these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
nvidia-smi -L; which mpirun; python -c "import mpi4py; print('mpi4py', mpi4py.__version__)"
timeout 110 python -m pytest -v -rfs -p no:cacheprovider -m gpu tests/serve/test_known.py tests/serve/test_gang.py 2>&1 | tee $OUT/tests.txt | tail -25
timeout 135 python scripts/bench/pool_gpus.py --scale 22 --rounds 4 --output $OUT/pool-gpus.json 2>&1 | tee $OUT/pool-gpus.txt
