#!/bin/sh
# Installs what is missing, builds the command, and runs Cairn's main job: one training step of a model under half of
# its memory, bit-identical to the step without a budget. Further arguments go to `cairn run`:
#   scripts/run.sh                      ResNet-50
#   scripts/run.sh unet --budget 60%    any model, graph file and options of `cairn run`
#   scripts/run.sh --cuda ...           builds with CUDA also where no device is visible; with one, that is the default
set -eu
cd "$(dirname "$0")/.."

cuda=OFF
if [ "${1:-}" = --cuda ]; then
  cuda=ON
  shift
elif command -v nvcc >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q GPU; then
  cuda=ON
fi

scripts/install_deps.sh --command
build=build/command
mkdir -p "$build" out
if ! cmake --preset command -D CAIRN_CUDA=$cuda >"$build/configure.log" 2>&1; then
  cat "$build/configure.log" >&2
  exit 1
fi
echo "Building (about two minutes the first time)"
cmake --build "$build" --target cairn_cli -- --quiet

# On the host, as in the README, also where there is a GPU: no GPU has run the CUDA backend yet.
[ $# -gt 0 ] || set -- resnet50 --batch 8 --image 64 --budget 50% --backend host --report out/resnet50.html
echo "cairn run $*"
exec "$build/bin/cairn" run "$@"
