#!/bin/sh
# Installs what is missing, builds the command, and runs Cairn's main job: one training step of a model under half of
# its memory, bit-identical to the step without a budget. Further arguments go to `cairn run`:
#   scripts/run.sh                      ResNet-50
#   scripts/run.sh unet --budget 60%    any model, graph file and options of `cairn run`
set -eu
cd "$(dirname "$0")/.."

scripts/install_deps.sh
mkdir -p build out
if ! cmake --preset default >build/configure.log 2>&1; then
  cat build/configure.log >&2
  exit 1
fi
echo "Building (some minutes the first time)"
cmake --build build/default --target cairn_cli -- --quiet

# On the host, as in the README, also where there is a GPU: no GPU has run the CUDA backend yet.
[ $# -gt 0 ] || set -- resnet50 --batch 8 --image 64 --budget 50% --backend host --report out/resnet50.html
echo "cairn run $*"
exec build/default/bin/cairn run "$@"
