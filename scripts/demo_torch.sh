#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains a small GPT with stock PyTorch three times on the simulated GPU: with room, capped below its peak, and capped with
# liboffload. Exit status 0 only if the second run dies of torch.OutOfMemoryError and the third ends with the losses and weights of
# the first; 77 where PyTorch is not there.
#
#   scripts/demo_torch.sh [BUILD]      CAP=55 (% of the peak), TRAIN_OPTIONS="--precision bf16" and the like
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$root/build}" && pwd)
percent=${CAP:-55}
script=tests/torch/train.py
options=(--layers 4 --width 256 --sequence 256 --batch 16 --steps 3)
read -r -a more <<<"${TRAIN_OPTIONS:-}"
options+=("${more[@]}")
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
# The simulated GPU makes up what PyTorch's kernels compute from all that they are given, tensor by tensor, so all three
# runs let the driver allocate each tensor. With PyTorch's own cache the results would be others, as would be the peak.
export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync

die() {
  printf 'demo: %s\n' "$1" >&2
  exit 1
}
for file in liboffload.so offload torch-venv/bin/python simgpu/torch/libcublas.so.13; do
  [ -e "$build/$file" ] && continue
  printf 'demo: %s\n' "$build/$file is missing: run make torch first" >&2
  exit 77
done

# run NAME MEMORY [NAME=VALUE ...] [COMMAND ...]: with these variables and under this command; standard output to the screen and to a file.
run() {
  local name=$1 memory=$2
  shift 2
  SIMGPU_BUILD=$build "$root/scripts/simgpu" --torch --memory "$memory" -- \
    env "$@" python "$root/$script" "${options[@]}" 2>"$folder/$name.err" |
    tee "$folder/$name.out" | sed -u 's/^/    /'
  local status=${PIPESTATUS[0]}
  grep -v '^simgpu: kernel ' "$folder/$name.err" | grep -E '^[A-Za-z.]*Error|^liboffload' | cut -c1-160 | sed 's/^/    /'
  return "$status"
}
value() { awk -v key="$2" '$1 == key { print $2 }' "$folder/$1.out"; }
size() { awk -v bytes="$1" 'BEGIN { printf "%.0f MiB", bytes / 1048576 }'; }
report() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$folder/report.json" "$1"; }
# All but the peak, which the simulated pool and liboffload's round differently.
results() { grep -v '^peak' "$folder/$1.out"; }

echo "The simulated GPU makes up what PyTorch's kernels compute from all that they are given: the losses below are no losses."
echo "1. python $script on the simulated GPU, with room for everything."
run room 2GiB || die "the first run failed; see above"
peak=$(value room peak)
cap=$((peak * percent / 100 / 2097152 * 2097152))
echo "   Its peak was $(size "$peak")."

echo "2. The same on a GPU of $(size "$cap") ($percent % of that), without liboffload."
run capped "$cap"
capped=$?
if [ "$capped" -ne 0 ] && grep -q 'torch.OutOfMemoryError' "$folder/capped.err"; then
  capped_text="out of memory"
else
  capped_text="exit $capped"
fi

echo "3. The same again with offload run, which preloads liboffload.so."
run offload "$cap" OFFLOAD_REPORT=json OFFLOAD_REPORT_FILE="$folder/report.json" "$build/offload" run --
offload=$?
same=no
[ "$offload" -eq 0 ] && cmp -s <(results room) <(results offload) && same=yes

echo
line='%-22s %-14s %-14s %-12s %-12s %s\n'
# shellcheck disable=SC2059
{
  printf "$line" run "GPU memory" result "peak mapped" "moved out" "weights"
  printf "$line" "with room" "plenty" ok "$(size "$peak")" - "$(value room weights)"
  printf "$line" "capped" "$(size "$cap")" "$capped_text" - - -
  if [ "$offload" -eq 0 ] && [ -e "$folder/report.json" ]; then
    printf "$line" "capped, liboffload" "$(size "$cap")" ok "$(size "$(report peak_bytes_with)")" \
      "$(size "$(report bytes_out)")" "$(value offload weights)"
  else
    printf "$line" "capped, liboffload" "$(size "$cap")" "exit $offload" - - -
  fi
}
echo
if [ "$capped_text" = "out of memory" ] && [ "$same" = yes ]; then
  echo "The same losses, weights and optimizer state, on a GPU of $percent % of the memory."
  exit 0
fi
echo "Not as it should be: the capped run ended with '$capped_text', equal results: $same."
exit 1
