set -u
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH=$PWD:/tmp/site SIGPS_CACHE_DIR=/tmp/cache
store=/tmp/stream-disk
timeout 40 python "$here/disk.py" draw "$store" 25
timeout 40 python "$here/disk.py" rate "$store/25"
timeout 120 python "$here/disk.py" run "$store/25"
