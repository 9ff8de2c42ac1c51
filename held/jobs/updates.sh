T0=$SECONDS
tests() {
  timeout 28 python -m pytest -q -m gpu tests/job/test_live_gpu.py -k "fifty and (kronecker or directed or star or zeros or fractions)" > $OUT/t1.txt 2>&1 &
  A=$!
  timeout 28 python -m pytest -q -m gpu tests/job/test_live_gpu.py -k "held or (fifty and (grid or sparse or dense or equal))" > $OUT/t2.txt 2>&1 &
  B=$!
  wait $A; RA=$?; wait $B; RB=$?
  tail -4 $OUT/t1.txt; tail -4 $OUT/t2.txt
  echo "tests $RA $RB at $((SECONDS-T0))"
}
CUDA_VISIBLE_DEVICES= timeout 26 python ev_apply.py > $OUT/apply.txt 2>&1 &
P=$!
tests
cat $OUT/apply.txt
if [ $RA = 1 ] || [ $RB = 1 ]; then echo UNPATCHED; cp -r unpatched/* .; tests; fi
wait $P
timeout 30 python ev_bench.py --device cuda --scale 22 --repeats 6 --commit 626fe9d --output $OUT/updates-nvidia-h200.json 2>&1 | cut -c1-700
echo "kron at $((SECONDS-T0))"
timeout 14 python ev_bench.py --device cuda --scale 0 --grid 4000 --repeats 5 --commit 626fe9d --output $OUT/updates-grid.json 2>&1 | cut -c1-700
echo "grid at $((SECONDS-T0))"
