#!/bin/sh
# Runs the tests of cairn.torch (python/tests/torch) on the CPU, with torch's ordinary wheel. scripts/test.sh does not
# run them, because torch is a download of 5 GB. The last line counts the tests. Without torch, all tests are skipped.
#   scripts/test_torch.sh [--full | --few] [--install] [--trainers] [--torch VERSION] [--env FOLDER] [TEST...]
#     --full      tests 200 random modules instead of 24
#     --few       tests 2 random modules, and runs only the most basic test files without their slowest tests
#     --install   makes the virtual environment, and tests nothing
#     --trainers  also installs transformers, lightning and accelerate, whose tests are skipped otherwise
#     --torch     version of torch, such as 2.9.1; default: the newest
#     --env       folder of the virtual environment, which is made if it does not have torch; default:
#                 build/torch-env[-VERSION]
# The tested package is the one in $CAIRN_BUILD, build/default or build/cpu that fits this Python. If there is none,
# `pip install .` builds it.
set -eu
cd "$(dirname "$0")/.."

fail() {
  echo "$1"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
}
skip() {
  echo "skipped: the tests of cairn.torch: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

version=
folder=
install_only=
trainers=
few=
while [ $# -gt 0 ]; do
  case $1 in
    --full) export CAIRN_TORCH_MODELS=200 ;;
    --few)
      export CAIRN_TORCH_MODELS=2
      few=--few
      ;;
    --install) install_only=1 ;;
    --trainers) trainers=1 ;;
    --torch | --env)
      [ $# -gt 1 ] || fail "$1 needs a value"
      if [ "$1" = --torch ]; then version=$2; else folder=$2; fi
      shift
      ;;
    -*)
      sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
    *) break ;;
  esac
  shift
done
folder=${folder:-build/torch-env${version:+-$version}}
python=$folder/bin/python

log=$(mktemp)
work=$(mktemp -d)
trap 'rm -rf "$log" "$work"' EXIT
reason() { grep -v -e '^ *$' -e '^\[notice\]' "$log" | tail -n 1; }

if ! "$python" -c 'import torch, numpy' 2>/dev/null; then
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "they need a python3 of 3.10 or newer"
  [ -x "$python" ] || python3 -m venv "$folder" >"$log" 2>&1 || skip "python3 cannot make a virtual environment: $(reason)"
  echo "Installing torch${version:+ $version} and numpy into $folder: 5 GB"
  "$python" -m pip install --quiet --disable-pip-version-check "torch${version:+==$version}" numpy >"$log" 2>&1 ||
    skip "torch could not be downloaded: $(reason)"
fi
"$python" -c 'import torch' 2>"$log" || fail "torch does not import: $(reason)"
has=$("$python" -c 'import torch; print(torch.__version__.split("+")[0])')
[ -z "$version" ] || [ "$version" = "$has" ] || fail "$folder has torch $has, not $version"
# If the trainers cannot be installed, their tests are skipped.
if [ -n "$trainers" ] && ! "$python" -c 'import transformers, lightning, accelerate' 2>/dev/null; then
  "$python" -m pip install --quiet --disable-pip-version-check transformers lightning accelerate >"$log" 2>&1 ||
    echo "The trainers could not be installed: $(reason)"
fi
[ -z "$install_only" ] || exit 0

# Makes a package that consists of links: to the extension module of a build that fits this Python, and to the Python
# modules of this tree. If no build fits, builds a wheel.
found=
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
for build in ${CAIRN_BUILD:-} build/default build/cpu; do
  if [ -e "$build/python/cairn/_cairn$suffix" ]; then
    mkdir "$work/cairn"
    ln -s "$(realpath "$build/python/cairn/_cairn$suffix")" "$work/cairn/"
    for module in python/cairn/*; do
      ln -s "$(realpath "$module")" "$work/cairn/"
    done
    PYTHONPATH=$work "$python" -c 'import cairn' 2>/dev/null && found=$build && break
    rm -r "$work/cairn"
  fi
done
if [ -n "$found" ]; then
  echo "Testing python/cairn with the extension of $found"
  export PYTHONPATH="$work"
else
  echo "Building the package into $folder"
  "$python" -m pip install --quiet --disable-pip-version-check . >"$log" 2>&1 ||
    { tail -n 30 "$log"; fail "pip install . failed"; }
fi
"$python" -c 'import cairn.torch' 2>"$log" || { cat "$log"; fail "cairn.torch does not import"; }

export CAIRN_CACHE="$work/cache" PYTHONDONTWRITEBYTECODE=1
[ $# -gt 0 ] || set -- ${few:+"$few"}
"$python" python/tests/torch/run.py "$@"
