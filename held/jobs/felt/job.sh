mkdir -p scratch/felt_data scratch/felt_py; for g in web-NotreDame cnr-2000; do ln -sf $(readlink -f $GPU_DATA)/$g.txt scratch/felt_data/; done
export FELT_DATA=scratch/felt_data
cp felt_time.py felt_prim.py felt_check.py felt_spin.py scratch/felt_py/
for i in $(seq 1 15); do u=$(nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits); [ "$u" -lt 3 ] && break; sleep 1; done; echo "gpu $u%"
NEW=$PWD
run() { T=$NEW; [ $1 = old ] && T=$NEW/felt_old; TREE=$T PYTHONPATH=$T timeout 40 python -P scratch/felt_py/felt_time.py $1$2 $3 2>&1 | tee -a $OUT/times.txt; }
run new 1; run old 1
TREE=$NEW PYTHONPATH=$NEW timeout 30 python -P scratch/felt_py/felt_check.py 2>&1 | tee $OUT/check.txt
run new 2; run old 2
timeout 30 python -m pytest -q -m gpu tests/engine/gpu/test_priority.py -x 2>&1 | tail -5 | tee $OUT/tests.txt
PYTHONPATH=$NEW timeout 15 python -P scratch/felt_py/felt_prim.py 2>&1 | tee $OUT/prim.txt
run new s seg; timeout 20 python -P scratch/felt_py/felt_spin.py 2>&1 | tee $OUT/spin.txt
