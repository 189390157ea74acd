#!/bin/sh
# Installs a wheel of the Python package into a new virtual environment, and runs the package's tests there, outside of
# the tree. Prints how long the installation and `import cairn` take.
#   scripts/test_wheel.sh [--python PYTHON] [FOLDER]
#     --python    default: python3
#     FOLDER      has wheels of scripts/build_wheels.sh, from which pip takes the one for PYTHON; default: a wheel is
#                 built by `pip wheel` from the committed files, which takes some minutes
set -eu
cd "$(dirname "$0")/.."

python=python3
if [ "${1:-}" = --python ]; then
  python=$2
  shift 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests=$PWD/python/tests
wheels=$work/wheels
if [ $# -gt 0 ]; then
  wheels=$(cd "$1" && pwd)
else
  git clone --quiet --depth 1 "file://$PWD" "$work/clone"
  tests=$work/clone/python/tests
fi
"$python" -m venv "$work/env"
cd "$work"
seconds() { date +%s.%N; }
since() { "$work/env/bin/python" -c "print(f'{$(seconds) - $1:.1f} s')"; }

if [ $# -eq 0 ]; then
  begin=$(seconds)
  env/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir wheels "$work/clone"
  echo "built in $(since "$begin"): $(cd wheels && du -k ./*.whl)"
fi
env/bin/pip install --quiet --disable-pip-version-check numpy networkx mypy scipy-openblas32  # its time is not measured
begin=$(seconds)
env/bin/pip install --quiet --disable-pip-version-check --no-index --find-links "$wheels" cairn-remat
echo "installed in $(since "$begin")"
env/bin/python -c 'import numpy'  # brings numpy's files into the cache before times are measured
begin=$(seconds)
env/bin/python -c 'import cairn'
echo "python -c 'import cairn': $(since "$begin")"
env/bin/python -X importtime -c 'import cairn' 2>&1 | grep -E '(cairn|cairn\._cairn|numpy)$'

for file in "$tests"/*_test.py; do
  env/bin/python -W error "$file"
done
