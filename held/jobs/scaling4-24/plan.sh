# plan.sh SCALE RANKS...: what `sigps plan` predicts of PageRank, 30 rounds, on H200s
scale=$1; shift
cat > /tmp/plan-$scale.yaml <<Y
program: sigps.apps:PageRank
params: {iterations: 30}
graph: {generator: {rmat: {scale: $scale, edge_factor: 16, seed: 1}}}
engine: {device: cuda, precision: single}
Y
for n in "$@"; do echo "-- sigps plan, kron-$scale on $n"; timeout 20 python -m sigps plan -n $n --device-kind h200 /tmp/plan-$scale.yaml 2>&1 | tail -14; done
