#!/bin/sh
# Runs clang-tidy (16 or later) with the checks of .clang-tidy on the given files, or else on the library and the
# command: check_tidy.sh [FILE...]. The script needs a configured build tree, build/default or $BUILD, because CMake
# generates some headers.
set -eu
cd "$(dirname "$0")/.."
tool=
for name in clang-tidy-19 clang-tidy-18 clang-tidy-17 clang-tidy-16 clang-tidy; do
  if "$name" --version 2>/dev/null | grep -Eq 'version (1[6-9]|[2-9][0-9])\.'; then tool=$name && break; fi
done
if [ -z "$tool" ]; then
  echo "skipped: clang-tidy 16 or later is not installed"
  exit 0
fi
build=${BUILD:-build/default}
if [ ! -d "$build/include" ]; then
  echo "check_tidy: '$build' is no configured tree; run cmake --preset default, or set BUILD" >&2
  exit 2
fi
if [ $# -eq 0 ]; then set -- $(find core models sim solvers runtime pipeline report cli -name '*.cpp' | sort); fi
status=0
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} "$tool" --quiet {} -- -std=c++20 -I"$build/include" -DCAIRN_BLAS_LIBRARY='"'blas'"' 2>/dev/null || status=1
exit $status
