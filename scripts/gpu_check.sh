#!/bin/sh
# Everything that needs a GPU, in one command: device tests, sanitizers, budgeted runs of four models, benchmarks and
# the comparison with PyTorch. The last lines are a table; bench/results/ gets every figure. Exit codes: 0 nothing
# failed, 1 something did, 5 no device.
#   scripts/gpu_check.sh                 builds build/cuda first
#   scripts/gpu_check.sh --build DIR     a folder that is built already; nothing is installed or built
#   scripts/gpu_check.sh --quick         small sizes, without PyTorch
# GPU_CHECK_SECONDS (480) bounds the runs, benchmarks and comparisons; what no longer fits is listed as not run.
# bench/gpu_check.py --help lists further options, which go after these.
set -eu
cd "$(dirname "$0")/.."

build=
quick=
usage() {
  echo "gpu_check: $1; usage: $0 [--quick] [--build DIR]" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=--quick ;;
    --build)
      [ $# -gt 1 ] || usage "--build needs a folder"
      build=$2
      shift
      ;;
    --build=*) build=${1#--build=} ;;
    *) break ;;
  esac
  shift
done

# PyTorch's package carries cuDNN where CMake does not look.
if [ -z "${CUDNN_ROOT:-}" ]; then
  CUDNN_ROOT=$(python3 -c 'import nvidia.cudnn; print(nvidia.cudnn.__path__[0])' 2>/dev/null) || CUDNN_ROOT=
  if [ -n "$CUDNN_ROOT" ]; then
    export CUDNN_ROOT
    export LD_LIBRARY_PATH="$CUDNN_ROOT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  fi
fi

if [ -z "$build" ]; then
  build=build/cuda
  # Without a network nothing can be installed; what is missing is then named by cmake.
  scripts/install_deps.sh || echo "going on with what is installed"
  mkdir -p "$build"
  if ! cmake --preset cuda -D CAIRN_WERROR=ON >"$build/configure.log" 2>&1; then
    cat "$build/configure.log"
    echo "gpu_check: the build could not be configured" >&2
    exit 1
  fi
  echo "Building $build (some minutes the first time)"
  if ! cmake --build "$build" -- --quiet; then
    echo "gpu_check: the build failed" >&2
    exit 1
  fi
fi
exec python3 bench/gpu_check.py --build "$build" $quick "$@"
