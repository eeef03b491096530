#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The prepared check for a machine with an NVIDIA GPU: does the driver do what the engine asks, at what cost, and does a training run end
# with the same bits at two caps. Under five minutes. Needs what `make` has built (the program by nvcc) and a driver; nothing is installed.
#
#   tests/device/check.sh [BUILD] > result.txt        exit status 0: all runs ended with equal results, the capped ones moved memory and
#                                                    stayed below their caps
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$root/build}" && pwd) || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
# shellcheck source=scripts/training_run.sh
. "$root/scripts/training_run.sh"
use_real_runtime "$build" || { echo "no libcudart.so.13 was found; set CUDA_HOME to a CUDA 13 toolkit" >&2; exit 1; }
read -r -a options <<<"${TRAIN_OPTIONS:-}"
train=("$build/workloads/train_gpt" --steps "${STEPS:-6}" --layers "${LAYERS:-8}" --batch "${BATCH:-64}" "${options[@]}")
failed=0

section() { printf '\n== %s\n' "$1"; }
report() { python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
for key in ("peak_bytes_without", "peak_bytes_with", "bytes_out", "bytes_in", "copies_out", "copies_in", "demand_misses",
            "exposed_seconds", "host_peak_bytes", "host_waits", "d2h_gb_per_s", "h2d_gb_per_s", "reason"):
    print("  %-20s %s" % (key, report.get(key)))' "$1"; }

section "machine"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo "nvidia-smi is missing"
timeout 60 "$build/offload" doctor

section "what the driver does"
timeout 90 "$build/offload" doctor --probe || failed=1

section "with room, without liboffload"
begin=$(date +%s.%N)
timeout 90 "${train[@]}" >"$folder/room.out" || { echo "failed"; exit 1; }
end=$(date +%s.%N)
cat "$folder/room.out"
awk -v a="$begin" -v b="$end" 'BEGIN { printf "  wall %.2f s\n", b - a }'
peak=$(awk '$1 == "peak" { print $2 }' "$folder/room.out")
[ -n "$peak" ] || { echo "it told no peak"; exit 1; }

for allocator in sync async; do
  for percent in 100 75 50; do
    section "liboffload, --allocator $allocator, $percent % of the peak"
    limit=$((peak * percent / 100 + (percent == 100 ? peak / 4 : 0)))
    begin=$(date +%s.%N)
    OFFLOAD_GPU_LIMIT=$limit OFFLOAD_REPORT=json OFFLOAD_REPORT_FILE="$folder/report.json" OFFLOAD_LOG=info \
      LD_PRELOAD="$build/liboffload.so" timeout 90 "${train[@]}" --allocator "$allocator" >"$folder/on.out"
    status=$?
    end=$(date +%s.%N)
    if [ "$status" -ne 0 ]; then
      echo "  exit status $status"
      failed=1
    elif cmp -s "$folder/room.out" "$folder/on.out"; then
      echo "  results equal to the last bit"
    else
      echo "  RESULTS DIFFER"
      diff "$folder/room.out" "$folder/on.out" | head -n 6
      failed=1
    fi
    awk -v a="$begin" -v b="$end" 'BEGIN { printf "  wall %.2f s\n", b - a }'
    problem=$(report_problem "$folder/report.json" "$limit" "$([ "$percent" = 100 ] && echo may-fit)")
    if [ -n "$problem" ]; then
      echo "  FAILED: $problem"
      failed=1
    fi
    [ -s "$folder/report.json" ] && report "$folder/report.json"
    rm -f "$folder/report.json"
  done
done

section "result"
[ "$failed" -eq 0 ] && echo "all equal, and under each cap" || echo "something failed; see above"
exit "$failed"
