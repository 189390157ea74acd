#!/bin/sh
# Makes the virtual environment in which the Python package is built and tested. It contains pinned releases of
# nanobind, numpy, networkx, scikit-build-core and mypy, and, if there is an nvcc, nvdisasm, which
# scripts/check_kernels.py needs. The environment takes 120 MB and a few seconds. Nothing is installed outside of the folder.
#   scripts/install_python.sh [FOLDER]    default: build/python-env
set -eu
cd "$(dirname "$0")/.."
packages='nanobind==3.1.0 scikit-build-core==1.1.2 numpy==2.2.6 networkx==3.4.2 mypy==2.4.1'
if command -v nvcc >/dev/null; then packages="$packages nvidia-cuda-nvdisasm==13.5.37"; fi

case ${1:-} in
  -*)
    echo "usage: $0 [FOLDER]" >&2
    exit 2
    ;;
esac
folder=${1:-build/python-env}
if [ "$(cat "$folder/packages" 2>/dev/null)" = "$packages" ] && "$folder/bin/python" -c 'import nanobind, numpy' 2>/dev/null; then
  exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
fail() {
  echo "install_python: $1: $(grep -v '^ *$' "$log" | tail -n 1)" >&2
  exit 1
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>"$log" || fail "needs a python3 of 3.10 or newer"
rm -rf "$folder"
echo "Installing for Python into $folder: $packages"
python3 -m venv "$folder" >"$log" 2>&1 || { rm -rf "$folder"; fail "python3 cannot make a virtual environment"; }
# shellcheck disable=SC2086  # unquoted, because it is a list of words
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=:all: $packages >"$log" 2>&1 ||
  { rm -rf "$folder"; fail "pip could not install $packages"; }
echo "$packages" >"$folder/packages"
