#!/bin/sh
# Runs the tests that are too long for ctest in the interpreter of PTX (docs/ptx.md), which executes compiled kernels
# without a GPU. Prints the time of each run, then the kernels that no run has launched. The last line counts the tests.
# Exit codes: 0 if nothing failed, 1 if something failed, 2 for bad usage.
#   scripts/ptx_check.sh [--build DIR] [--all] [--counted]
#     --build DIR   the build folder; default build/default
#     --all         also runs every model with recomputation, which takes more than ten minutes
#     --counted     also prints tables of what kernels do, and of the least time that this takes
set -eu
cd "$(dirname "$0")/.."
build=build/default
all=
counted=
while [ $# -gt 0 ]; do
  case $1 in
    --build)
      [ $# -gt 1 ] || { echo "ptx_check: --build needs a folder" >&2; exit 2; }
      build=$2
      shift
      ;;
    --all) all=1 ;;
    --counted) counted=1 ;;
    *) echo "ptx_check: '$1' is unknown; usage: $0 [--build DIR] [--all] [--counted]" >&2 && exit 2 ;;
  esac
  shift
done
program=$build/tests/test_ptx_cuda
if [ ! -x "$program" ]; then
  echo "skipped: '$program' is not there; build the target test_ptx_cuda with CUDA"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# run NAME CASES [VARIABLE=VALUE...] runs test cases with environment variables
run() {
  name=$1
  cases=$2
  shift 2
  begin=$(date +%s)
  number=$((passed + failed))
  if env "$@" CAIRN_REQUIRE_DEVICE=1 "CAIRN_PTX_KERNELS=$work/kernels.$number" "$program" "$cases" >"$work/log" 2>&1; then
    result=passed
    passed=$((passed + 1))
  else
    result=FAILED
    failed=$((failed + 1))
  fi
  printf '%5d s  %s: %s\n' $(($(date +%s) - begin)) "$name" "$result"
  [ "$result" = passed ] || tail -n 20 "$work/log"
}

small="[sanitize],[ptx]"
ops="every op on the device*,ops on shapes*"
run "small cases and steps, work as late as possible" "$small" FAKE_CUDA_ORDER=late
run "small cases and steps, work as early as possible" "$small" FAKE_CUDA_ORDER=early
run "small cases and steps, work in a random order" "$small" FAKE_CUDA_ORDER=random
run "every op" "$ops"
run "large windows and several tiles of patches" "ops with very large*"
run "the simulator" "the device simulator*,the device draws*"
run "synthetic nodes" "synthetic nodes*"
run "key orders" "key orders*"
run "pumpkin" "pumpkin*"
run "profiles and chains" "canonical*,merged*"
run "dominance" "dominance on*"
run "thousands of profiles" "thousands*"
run "the executor" "the caller*,more than the device*"
if [ -n "$all" ]; then
  run "every model, with recomputation" "recomputation does not*"
fi

# These two do nothing. Programs only query their attributes.
awk '{count[$2] += $1} END {for (name in count) if (count[name] == 0) print name}' "$work"/kernels.* |
  grep -v -e empty_kernel -e EmptyKernel | sort >"$work/never" || true
echo "$(awk '{print $2}' "$work"/kernels.* | sort -u | wc -l) kernels, of which $(wc -l <"$work/never") were never launched"
c++filt <"$work/never" | cut -c1-160
[ -z "$counted" ] || "$program" "[.counted]" || failed=$((failed + 1))
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
