export SIGPS_CACHE_DIR=scratch/cache-async HOME=scratch/home-async; mkdir -p $HOME
timeout 42 python3 -u async_job_tmp.py 40 time 2>&1 | tee $OUT/times.txt | tail -n 60
timeout 17 compute-sanitizer --tool racecheck --racecheck-report all --kernel-name kernel_name=run_blocks python3 -u async_job_tmp.py 16 race > $OUT/race.txt 2>&1; tail -n 4 $OUT/race.txt
