here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site
measure() { local seconds=$1 ranks=$2; shift 2; echo "== $ranks ranks at $SECONDS"; timeout $seconds mpirun -n $ranks python $here/measure.py "$@" 2>&1 | tail -40; }
measure 35 1 --output $OUT/one.json --repeats 7
measure 55 2 --output $OUT/two.json --against $OUT/one.json
