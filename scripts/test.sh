#!/bin/sh
# Installs what is missing, builds everything with warnings as errors, and runs all tests and checks. CUDA code is built
# if nvcc works. Tests that need a GPU are skipped if there is none. The last line of the output counts the tests.
#   scripts/test.sh [PRESET]      a test preset: default, cpu, cuda, clang, debug, asan, tsan or coverage
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
[ "$preset" != clang ] || scripts/install_deps.sh --clang || fail "Clang 16 could not be installed"
# The solver engines for the tests are installed in the build folder, so that those of the user do not change.
export CAIRN_ENGINES="${CAIRN_ENGINES:-$PWD/build/engines}"
scripts/install_engines.sh || echo "Going on without solver engines: their tests are skipped"
# Some tests plan convolutions with cuDNN, without a GPU. CMake finds cuDNN beside nvcc without CUDNN_ROOT.
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
# Builds with sanitizers or coverage leave out the Python package, because Python itself is built without them. -O2 is
# used, as in scripts/run.sh, because -O3 takes a tenth longer to compile.
set -- -D CAIRN_PYTHON=OFF -D "CMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG"
case $preset in
  asan | tsan | coverage) ;;
  *)
    if scripts/install_python.sh build/python-env; then
      set -- "$@" -D CAIRN_PYTHON=ON -D "Python_EXECUTABLE=$PWD/build/python-env/bin/python"
    else
      echo "Going on without the Python package: its tests are skipped"
    fi
    ;;
esac
mkdir -p "$build"
# Without a GPU, nvcc makes only PTX. The interpreter of PTX in tests/ptx/ executes it, and the tests "house/kernels on"
# an architecture assemble it.
nvidia-smi -L >/dev/null 2>&1 || set -- "$@" -D CMAKE_CUDA_ARCHITECTURES=90-virtual
if ! cmake --preset "$preset" -D CAIRN_WERROR=ON "$@" >"$build/configure.log" 2>&1; then
  cat "$build/configure.log"
  fail "the build could not be configured"
fi
echo "Building $build"
cmake --build "$build" -- --quiet || fail "the build failed"

jobs=$(nproc)
ctest --preset "$preset" -j "$jobs" --output-junit "$PWD/$build/tests.xml" >"$build/tests.log" 2>&1 || true
exec python3 scripts/summary.py "$build/tests.xml"
