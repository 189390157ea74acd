#!/bin/sh
# Installs what is missing, builds the command, and executes one training step of a model in half of its memory. The
# results are bit-identical to those of the step without a budget. Arguments are passed on to `cairn run`:
#   scripts/run.sh                      ResNet-50
#   scripts/run.sh unet --budget 60%    any model or graph file, with any options of `cairn run`
#   scripts/run.sh --cuda ...           builds with CUDA even if no GPU is visible; if one is, this is the default
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

# Without arguments, the host executes the step even if there is a GPU, so that the figures are those of the README.
[ $# -gt 0 ] || set -- resnet50 --batch 8 --image 64 --budget 50% --backend host --report out/resnet50.html
echo "cairn run $*"
exec "$build/bin/cairn" run "$@"
