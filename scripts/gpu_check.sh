#!/bin/sh
# Runs everything that needs a GPU: tests, sanitizers, runs of four models under budgets, benchmarks and the comparison
# with PyTorch. Prints a table at the end, and writes all figures to bench/results/. Exit codes: 0 if nothing failed, 1
# if something failed, 5 if there is no device.
#   scripts/gpu_check.sh                 builds build/cuda first
#   scripts/gpu_check.sh --build DIR     uses the built folder DIR; installs and builds nothing
#   scripts/gpu_check.sh --quick         uses small sizes, without PyTorch
# GPU_CHECK_SECONDS (480 by default) limits the runs, benchmarks and comparisons. Those for which no time is left are
# listed as not run. Further options are passed on to bench/gpu_check.py, whose --help lists them.
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

# PyTorch's package contains cuDNN, in a folder that CMake does not search.
if [ -z "${CUDNN_ROOT:-}" ]; then
  CUDNN_ROOT=$(python3 -c 'import nvidia.cudnn; print(nvidia.cudnn.__path__[0])' 2>/dev/null) || CUDNN_ROOT=
  if [ -n "$CUDNN_ROOT" ]; then
    export CUDNN_ROOT
    export LD_LIBRARY_PATH="$CUDNN_ROOT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  fi
fi

if [ -z "$build" ]; then
  build=build/cuda
  # A failure is not fatal: without a network nothing can be installed, and cmake says what is missing.
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
