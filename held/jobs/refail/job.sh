# Once, after these two had passed in two workers, a process printed "double free or corruption (out)": which, and where?
export PYTHONPATH=$PWD:$PWD/tests/support:/tmp/site:$(dirname $(dirname "$0")) PYTHONFAULTHANDLER=1
for t in tests/serve/test_own_code.py::test_own_code_runs_on_a_gpu tests/engine/gpu/test_ranks.py::test_random_graphs tests/serve/test_own_code.py::test_own_code_runs_on_a_gpu; do
  echo "== $t"; timeout 70 python -X faulthandler -m pytest -v -rf --tb=short -p no:cacheprovider -p no:benchmark -p no:xdist -m gpu $t 2>&1 | tail -25; echo "rc ${PIPESTATUS[0]}"
done
