#!/bin/sh
# Installs CP-SAT and HiGHS, the engines that some solvers of Cairn use, for this user. They are the libraries of one
# pinned release of OR-Tools (70 MB), which Cairn loads when a solver needs them. Nothing is built. Cairn works without
# them, too.
#   scripts/install_engines.sh [FOLDER]   default: $CAIRN_ENGINES, or else ~/.local/share/cairn/engines. If you choose
#                                         another folder, set CAIRN_ENGINES to it when you run Cairn.
set -eu
release=9.15.6755

case ${1:-} in
  -*)
    echo "usage: $0 [FOLDER]" >&2
    exit 2
    ;;
esac
folder=${1:-${CAIRN_ENGINES:-${XDG_DATA_HOME:-${HOME:?install_engines: no HOME; name a folder}/.local/share}/cairn/engines}}
case $folder in
  /*) ;;
  *) echo "install_engines: '$folder' is not an absolute path, and Cairn opens nothing from others" >&2; exit 2 ;;
esac
if [ "$(cat "$folder/release" 2>/dev/null)" = "$release" ]; then
  exit 0
fi

fail() {
  echo "install_engines: $1" >&2
  exit 1
}

if ! python3 -m pip --version >/dev/null 2>&1; then
  as_root=
  [ "$(id -u)" -eq 0 ] || as_root=sudo
  command -v apt-get >/dev/null 2>&1 || fail "pip is missing and there is no apt-get; install pip for python3"
  echo "Installing with apt-get: python3-pip"
  { $as_root apt-get update || true; } >/dev/null 2>&1
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-pip >/dev/null 2>&1 ||
    fail "apt-get could not install python3-pip"
fi

wheel=$(mktemp -d)
trap 'rm -rf "$wheel"' EXIT
echo "Installing OR-Tools $release (CP-SAT, HiGHS) into $folder"
# Only the libraries in the wheel are used. They do not depend on Python, so a wheel for any version of Python will do.
python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 \
  --target "$wheel/all" "ortools==$release" >"$wheel/log" 2>&1 ||
  fail "pip could not install ortools==$release: $(grep -v '^ *$' "$wheel/log" | tail -n 1)"

# The libraries find each other by relative paths, so the folders keep their names and positions.
[ -d "$wheel/all/ortools/.libs" ] || fail "ortools==$release has no libraries for this system"
mkdir -p "$folder/ortools" 2>/dev/null || fail "cannot create the folder '$folder/ortools'"
rm -rf "$folder/ortools/.libs" "$folder/ortools.libs" "$folder/release"
mv "$wheel/all/ortools/.libs" "$folder/ortools/.libs"
if [ -d "$wheel/all/ortools.libs" ]; then
  mv "$wheel/all/ortools.libs" "$folder/ortools.libs"
fi
cp "$wheel"/all/ortools-*.dist-info/licenses/LICENSE* "$folder/" 2>/dev/null || true
echo "$release" >"$folder/release"
