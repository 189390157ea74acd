#!/bin/sh
# Installs what is missing, builds everything with warnings as errors, and runs every test and check. CUDA is built
# where nvcc works; tests that need a device are skipped without one. The last line is the count.
#   scripts/test.sh [PRESET]      a test preset: default, cpu, cuda, debug, asan, tsan or coverage
set -eu
cd "$(dirname "$0")/.."
preset=${1:-default}
build=build/$preset

fail() {
  echo "$1"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
}

scripts/install_deps.sh || fail "what Cairn needs could not be installed"
# Into the build, so that what this user has installed stays as it is.
export CAIRN_ENGINES="${CAIRN_ENGINES:-$PWD/build/engines}"
scripts/install_engines.sh || echo "Going on without solver engines: their tests are skipped"
# For the tests that plan convolutions without a device. Beside nvcc, CMake finds it by itself.
case $preset in
  default | cuda)
    if command -v nvcc >/dev/null 2>&1; then
      if cudnn=$(scripts/install_cudnn.sh); then
        [ -z "$cudnn" ] || export CUDNN_ROOT="$cudnn"
      else
        echo "Going on without cuDNN: tests that plan with it are skipped"
      fi
    fi
    ;;
esac
# Not with sanitizers and counters: Python is built without.
set -- -D CAIRN_PYTHON=OFF
case $preset in
  asan | tsan | coverage) ;;
  *)
    if scripts/install_python.sh build/python-env; then
      set -- -D CAIRN_PYTHON=ON -D "Python_EXECUTABLE=$PWD/build/python-env/bin/python"
    else
      echo "Going on without the Python package: its tests are skipped"
    fi
    ;;
esac
mkdir -p "$build"
# Without a device, code for one architecture shows that all of it compiles, and is hardly optimized; its PTX, which the
# interpreter runs, is optimized as always.
nvidia-smi -L >/dev/null 2>&1 || set -- "$@" -D CMAKE_CUDA_ARCHITECTURES=90 -D "CMAKE_CUDA_FLAGS=-Xptxas -O1"
if ! cmake --preset "$preset" -D CAIRN_WERROR=ON "$@" >"$build/configure.log" 2>&1; then
  cat "$build/configure.log"
  fail "the build could not be configured"
fi
echo "Building $build"
cmake --build "$build" -- --quiet || fail "the build failed"

jobs=$(nproc)
ctest --preset "$preset" -j "$jobs" --output-junit "$PWD/$build/tests.xml" >"$build/tests.log" 2>&1 || true
exec python3 scripts/summary.py "$build/tests.xml"
