#!/bin/sh
# Builds the wheel from the committed files, installs it into a new virtual environment, and runs the package's tests
# there, outside of the tree. Prints how long `pip install .` takes (build and installation), the size of the wheel, and
# the time of `import cairn`. This takes some minutes, because the library is compiled once more with the options of the
# wheel.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --depth 1 "file://$PWD" "$work/clone"
python3 -m venv "$work/env"
cd "$work"
seconds() { date +%s.%N; }
minus() { python3 -c "print(f'{$1 - $2:.1f}')"; }

begin=$(seconds)
env/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir wheels "$work/clone"
wheel=$(echo "$work"/wheels/*.whl)
env/bin/pip install --quiet --disable-pip-version-check "$wheel[networkx]"
echo "built and installed in $(minus "$(seconds)" "$begin") s: $(basename "$wheel"), $(du -k "$wheel" | cut -f 1) KiB"
env/bin/python -c 'import numpy'  # brings numpy's files into the cache before times are measured
begin=$(seconds)
env/bin/python -c 'import cairn'
echo "python -c 'import cairn': $(minus "$(seconds)" "$begin") s"
env/bin/python -X importtime -c 'import cairn' 2>&1 | grep -E '(cairn|cairn\._cairn|numpy)$'

for file in clone/python/tests/*_test.py; do
  env/bin/python -W error "$file"
done
