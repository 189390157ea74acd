#!/bin/sh
# Installs cuDNN's headers and libraries from its wheel, so that tests can plan convolutions for GPUs that are not
# installed (docs/cuda.md). If CMake finds cuDNN beside nvcc, installs and prints nothing. Otherwise prints the folder
# of the installation; the caller must set CUDNN_ROOT to it.
#   scripts/install_cudnn.sh [FOLDER]   default: the environment of scripts/test_torch.sh if it has cuDNN, else
#                                       build/cudnn, where it takes 471 MB
set -eu
cd "$(dirname "$0")/.."
release=9.19.0.56

case ${1:-} in
  -*)
    echo "usage: $0 [FOLDER]" >&2
    exit 2
    ;;
esac
folder=${1:-build/cudnn}

fail() {
  echo "install_cudnn: $1" >&2
  exit 1
}
complete() { [ -e "$1/include/cudnn_graph.h" ] && [ -e "$1/lib/libcudnn.so.9" ]; }
found() {
  (cd "$1" && pwd)
  exit 0
}

nvcc=$(command -v nvcc) || fail "there is no nvcc, without which nothing uses cuDNN"
toolkit=$(dirname "$(dirname "$(realpath "$nvcc")")")
for lib in lib lib64; do
  [ -e "$toolkit/include/cudnn_graph.h" ] && [ -e "$toolkit/$lib/libcudnn.so.9" ] && exit 0
done
# cuDNN uses the toolkit's CUDA runtime, so both must be made for the same major version of CUDA.
major=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
if [ $# -eq 0 ]; then
  for other in build/torch-env/lib/python3*/site-packages; do
    ls -d "$other/nvidia_cudnn_cu$major"-*.dist-info >/dev/null 2>&1 && complete "$other/nvidia/cudnn" &&
      found "$other/nvidia/cudnn"
  done
fi
[ "$(cat "$folder/release" 2>/dev/null)" = "$release" ] && complete "$folder" && found "$folder"

python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing; install it for python3"
wheel=$(mktemp -d)
trap 'rm -rf "$wheel"' EXIT
echo "Installing cuDNN $release into $folder" >&2
python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target "$wheel/all" \
  "nvidia-cudnn-cu$major==$release" >"$wheel/log" 2>&1 ||
  fail "pip could not install nvidia-cudnn-cu$major==$release: $(grep -v '^ *$' "$wheel/log" | tail -n 1)"
complete "$wheel/all/nvidia/cudnn" || fail "nvidia-cudnn-cu$major==$release has not the files that were expected"
mkdir -p "$(dirname "$folder")"
rm -rf "$folder"
mv "$wheel/all/nvidia/cudnn" "$folder"
echo "$release" >"$folder/release"
found "$folder"
