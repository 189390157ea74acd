#!/bin/sh
# Installs with apt-get the packages that Cairn needs and that are missing here, on Debian 12 or later and Ubuntu 24.04
# or later. If all packages are installed, prints nothing and needs no root rights.
#   scripts/install_deps.sh              the packages for building, testing and running everything
#   scripts/install_deps.sh --command    only the packages for building the command
#   scripts/install_deps.sh --clang      only the second compiler
#   scripts/install_deps.sh --python     only the packages for `pip install .` in a virtual environment
set -eu

packages='g++ cmake ninja-build libfmt-dev libcli11-dev nlohmann-json3-dev libopenblas-dev libboost-dev zlib1g-dev'
browser=
case ${1:-} in
  '')
    packages="$packages git python3 python3-dev python3-venv clang-format catch2 libbenchmark-dev libopenmpi-dev openmpi-bin"
    # The tests in tests/browser/ need Chromium. On Ubuntu, it is a snap, which apt-get does not install, so the tests
    # are skipped.
    distribution=$(. "${OS_RELEASE:-/etc/os-release}" && echo "$ID") 2>/dev/null || distribution=
    [ "$distribution" != debian ] || browser='chromium chromium-driver python3-selenium'
    ;;
  --command) ;;
  --clang) packages=clang-16 ;;
  --python) packages="$packages python3 python3-dev python3-venv" ;;
  *)
    echo "usage: $0 [--command | --clang | --python]" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null 2>&1; then
  echo "install_deps: no apt-get here; going on with what is installed. Needed, by their Debian names:" $packages >&2
  exit 0
fi

missing_of() {
  for package in "$@"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
    [ "$status" = installed ] || printf ' %s' "$package"
  done
}
# shellcheck disable=SC2086  # unquoted, because they are lists of words
missing=$(missing_of $packages) missing_browser=$(missing_of $browser)
[ -n "$missing$missing_browser" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "install_deps: neither root nor sudo; as root, run: apt-get install$missing$missing_browser" >&2
    [ -z "$missing" ] && exit 0  # without a browser, its tests are skipped
    exit 1
  fi
  as_root=sudo
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
  "$@" </dev/null >"$log" 2>&1 || { cat "$log" >&2; return 1; }
}

# shellcheck disable=SC2086  # unquoted, because it is a list of words
install() {
  echo "Installing with apt-get:$1"
  quietly $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $1
}

quietly $as_root apt-get update || echo "install_deps: the package lists could not be updated; trying those at hand" >&2
if [ -n "$missing" ] && ! install "$missing"; then
  echo "install_deps: apt-get could not install:$missing" >&2
  exit 1
fi
if [ -n "$missing_browser" ] && ! install "$missing_browser"; then
  echo "install_deps: no browser, whose tests will be skipped: apt-get could not install:$missing_browser" >&2
fi
