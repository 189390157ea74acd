#!/bin/sh
# Checks that clang-format 14 would change no C++ or CUDA file. With --fix, changes the files.
# Other versions of clang-format format some code differently, so the check is skipped if version 14 is missing.
set -eu
cd "$(dirname "$0")/.."

for tool in clang-format-14 clang-format; do
  if "$tool" --version 2>/dev/null | grep -q 'version 14\.'; then break; fi
  tool=
done
if [ -z "$tool" ]; then
  echo "skipped: clang-format 14 is not installed"
  exit 0
fi

sources() {
  find core models sim solvers runtime cuda pipeline report cli python tests bench fuzz examples -type f \
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 2>/dev/null
}

case ${1:-} in
  '')
    if output=$(sources | xargs -0 "$tool" --dry-run --Werror 2>&1); then exit 0; fi
    echo "not as clang-format 14 writes it (places, file); mend with scripts/check_format.sh --fix"
    echo "$output" | grep 'clang-formatted' | cut -d: -f1 | sort | uniq -c
    echo "$output" | grep 'error:' | grep -v 'clang-formatted' || true
    exit 1
    ;;
  --fix) sources | xargs -0 "$tool" -i ;;
  *)
    echo "usage: $0 [--fix]" >&2
    exit 2
    ;;
esac
