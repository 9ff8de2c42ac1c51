"""Runs scripts/bench/streaming_gpu.py with so many rounds of the pages on the device a sweep: rounds.py ROUNDS ARGUMENTS..."""
import runpy, sys
sys.path.insert(0, "scripts/bench")
import sigps.engine.gpu.packed_lengths as lengths
lengths._ROUNDS = int(sys.argv[1])
sys.argv = ["scripts/bench/streaming_gpu.py", *sys.argv[2:]]
runpy.run_path(sys.argv[0], run_name="__main__")
