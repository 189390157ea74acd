#!/bin/sh
# Runs the GPU tests that take too long for ctest, in the interpreter of PTX (docs/ptx.md), which executes compiled
# kernels without a GPU. Prints the time of each run, then the kernels that no run has launched. Each such kernel counts
# as a failure. The last line counts the tests. Exit codes: 0 if nothing failed, 1 if something failed, 2 for bad usage.
#   scripts/ptx_check.sh [--build DIR] [--jobs N] [--all] [--counted]
#     --build DIR   the build folder; default build/default
#     --jobs N      the number of runs at a time; default the number of cores
#     --all         also runs every model with recomputation, and scripts/ptx_mutants.py, which removes barriers from
#                   kernels; both take more than ten minutes
#     --counted     also prints tables of what kernels do, and of the least time that this takes
set -eu
cd "$(dirname "$0")/.."
build=build/default
jobs=$(nproc)
all=
counted=
while [ $# -gt 0 ]; do
  case $1 in
    --build)
      [ $# -gt 1 ] || { echo "ptx_check: --build needs a folder" >&2; exit 2; }
      build=$2
      shift
      ;;
    --jobs)
      [ $# -gt 1 ] || { echo "ptx_check: --jobs needs a number" >&2; exit 2; }
      jobs=$2
      shift
      ;;
    --all) all=1 ;;
    --counted) counted=1 ;;
    *) echo "ptx_check: '$1' is unknown; usage: $0 [--build DIR] [--jobs N] [--all] [--counted]" >&2 && exit 2 ;;
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

# The following script runs the test cases $4 with the environment variable $5 (NAME=VALUE), and prints one line with
# the result.
cat >"$work/one" <<'END'
work=$1 program=$2 number=$3 cases=$4 variable=$5 name=$6
begin=$(date +%s)
result=passed
env ${variable:+"$variable"} CAIRN_REQUIRE_DEVICE=1 "CAIRN_PTX_KERNELS=$work/kernels.$number" "$program" "$cases" \
  >"$work/log.$number" 2>&1 || result=FAILED
amount=$(grep 'million instructions of lanes' "$work/log.$number") || true
line=$(printf '%5d s  %s: %s' $(($(date +%s) - begin)) "$name${amount:+ ($amount)}" "$result")
[ "$result" = passed ] || line=$(printf '%s\n' "$line" && tail -n 20 "$work/log.$number")
printf '%s\n' "$line" | tee "$work/result.$number"
END

# run NAME CASES [VARIABLE=VALUE] adds a run of the test cases CASES to the list. VARIABLE is set for this run.
number=0
run() {
  number=$((number + 1))
  printf '%s\0' "$number" "$2" "${3:-}" "$1" >>"$work/list"
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

xargs -0 -n 4 -P "$jobs" sh "$work/one" "$work" "$program" <"$work/list" || true
passed=$(cat "$work"/result.* | grep -c ': passed$') || true
failed=$((number - passed))

# The kernels empty_kernel and EmptyKernel do nothing and are never launched: programs only query their attributes.
awk '{count[$2] += $1} END {for (name in count) if (count[name] == 0) print name}' "$work"/kernels.* |
  grep -v -e empty_kernel -e EmptyKernel | sort >"$work/never" || true
echo "$(awk '{print $2}' "$work"/kernels.* | sort -u | wc -l) kernels, of which $(wc -l <"$work/never") were never launched"
c++filt <"$work/never" | cut -c1-160
[ ! -s "$work/never" ] || failed=$((failed + 1))
[ -z "$all" ] || scripts/ptx_mutants.py --build "$build" || failed=$((failed + 1))
[ -z "$counted" ] || "$program" "[.counted]" || failed=$((failed + 1))
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
