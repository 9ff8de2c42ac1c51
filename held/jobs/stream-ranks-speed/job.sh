here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:/tmp/site
store=/tmp/stream-ranks
timeout 30 python "$here/speed.py" draw "$store" 25
go() { echo "== $*"; timeout 30 mpirun -n "$1" python "$here/speed.py" run "$store/25" "$2" 1 2>&1 | grep -v "^$" | tail -6; }
go 1 auto; go 2 auto; go 2 nccl
