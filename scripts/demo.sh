#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains a small GPT three times: with room, capped below its peak, and capped with liboffload. Exit status 0 only if the second
# run dies of out-of-memory and the third moves memory, stays below the cap and ends with the same losses and weights as the first.
#
#   scripts/demo.sh [BUILD]         on the simulated GPU
#   GPU=real scripts/demo.sh        on this machine's GPU; the cap is then OFFLOAD_GPU_LIMIT, and the second run
#                                   has liboffload loaded with OFFLOAD_POLICY=none
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$root/build}" && pwd)
percent=${CAP:-55}
read -r -a options <<<"${TRAIN_OPTIONS:-}"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

die() {
  printf 'demo: %s\n' "$1" >&2
  exit 1
}
for file in liboffload.so offload workloads/train_gpt; do
  [ -e "$build/$file" ] || die "$build/$file is missing: run make first"
done

# shellcheck source=scripts/training_run.sh
. "$root/scripts/training_run.sh"
if [ "${GPU:-simulated}" = real ]; then
  use_real_runtime "$build" || die "no libcudart.so.13 was found; set CUDA_HOME to a CUDA 13 toolkit"
fi

# run NAME MEMORY [NAME=VALUE ...]: standard output to the screen and to a file.
run() {
  local name=$1 memory=$2
  shift 2
  if [ "${GPU:-simulated}" = real ]; then
    env "$@" ${memory:+OFFLOAD_GPU_LIMIT=$memory} "$build/workloads/train_gpt" "${options[@]}"
  else
    SIMGPU_BUILD=$build "$root/scripts/simgpu" --memory "${memory:-2GiB}" -- \
      env "$@" "$build/workloads/train_gpt" "${options[@]}"
  fi 2>"$folder/$name.err" | tee "$folder/$name.out" | sed -u 's/^/    /'
  local status=${PIPESTATUS[0]}
  sed 's/^/    /' "$folder/$name.err"
  return "$status"
}
value() { awk -v key="$2" '$1 == key { print $2 }' "$folder/$1.out"; }
size() { awk -v bytes="$1" 'BEGIN { printf "%.0f MiB", bytes / 1048576 }'; }
report() { report_value "$folder/report.json" "$1"; }

where="the simulated GPU"
[ "${GPU:-simulated}" = real ] && where="this machine's GPU"
echo "1. A GPT is trained on $where with room for everything."
run room "" LD_PRELOAD="${LD_PRELOAD:-}" || die "the first run failed; see above"
peak=$(value room peak)
[ -n "$peak" ] || die "the first run told no peak"
cap=$((peak * percent / 100 / 2097152 * 2097152))
echo "   Its peak was $(size "$peak")."

echo "2. The same with $(size "$cap") of GPU memory ($percent % of that), without liboffload."
if [ "${GPU:-simulated}" = real ]; then
  run capped "$cap" LD_PRELOAD="$build/liboffload.so" OFFLOAD_POLICY=none
else
  run capped "$cap" LD_PRELOAD="${LD_PRELOAD:-}"
fi
capped=$?
if [ "$capped" -ne 0 ] && grep -q 'out of memory' "$folder/capped.err"; then
  capped_text="out of memory"
else
  capped_text="exit $capped"
fi

echo "3. The same again with LD_PRELOAD=liboffload.so."
run offload "$cap" LD_PRELOAD="$build/liboffload.so" OFFLOAD_REPORT=json OFFLOAD_REPORT_FILE="$folder/report.json"
offload=$?
same=no
cmp -s "$folder/room.out" "$folder/offload.out" && same=yes

echo
line='%-22s %-14s %-14s %-12s %-12s %-12s %-8s %s\n'
# shellcheck disable=SC2059
{
  printf "$line" run "GPU memory" result "peak mapped" "moved out" "moved back" misses "weights"
  printf "$line" "with room" "plenty" ok "$(size "$peak")" - - - "$(value room weights)"
  printf "$line" "capped" "$(size "$cap")" "$capped_text" - - - - -
  if [ "$offload" -eq 0 ] && [ -s "$folder/report.json" ]; then
    printf "$line" "capped, liboffload" "$(size "$cap")" ok "$(size "$(report peak_bytes_with)")" \
      "$(size "$(report bytes_out)")" "$(size "$(report bytes_in)")" "$(report demand_misses)" "$(value offload weights)"
    echo "Losses and weights are $([ $same = yes ] && echo "equal to the last bit" || echo "NOT equal")."
  else
    printf "$line" "capped, liboffload" "$(size "$cap")" "exit $offload" - - - - -
  fi
}
[ "$capped_text" = "out of memory" ] || die "the capped run without liboffload should have run out of memory"
[ "$offload" -eq 0 ] || die "the run with liboffload failed"
[ $same = yes ] || die "the results differ"
problem=$(report_problem "$folder/report.json" "$cap")
[ -z "$problem" ] || die "$problem"
