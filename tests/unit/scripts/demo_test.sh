#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/demo.sh on a tiny model, and the judgements that it shares with the checks for a real GPU.
#
#   tests/unit/scripts/demo_test.sh BUILD
set -uo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
build=$(cd "$1" && pwd) || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for variable in "${!OFFLOAD_@}" "${!SIMGPU_@}" LD_PRELOAD LD_LIBRARY_PATH; do unset "$variable"; done
failures=0

# expect WHAT WANTED FOUND: a glob pattern
expect() {
  # shellcheck disable=SC2053  # a pattern
  [[ $3 == $2 ]] && return
  printf 'FAILED: %s: not "%s" but: %s\n' "$1" "$2" "$3"
  failures=$((failures + 1))
}

# The folder of the real runtime library.
. "$root/scripts/training_run.sh"
# runtime PLACE [NAME=VALUE...]: where the library is found when it lies only there
runtime() {
  local place=$1
  shift
  mkdir -p "$place"
  touch "$place/libcudart.so.13"
  # shellcheck disable=SC2016  # expanded there
  env CUDA_HOME= CUDA_USUAL_PLACE="$work/nowhere" "$@" bash -c \
    '. "$1/scripts/training_run.sh"; use_real_runtime "$2"; echo "$? ${LD_LIBRARY_PATH:-}"' - "$root" "$work/build"
  rm -r "$place"
}
# stub FILE TEXT: a program that says TEXT
stub() {
  mkdir -p "$(dirname "$1")"
  printf '#!/bin/sh\necho "%s"\n' "$2" >"$1"
  chmod +x "$1"
}
stub "$work/none/ldd" "libcudart.so.13 => not found"
stub "$work/found/ldd" "libcudart.so.13 => /there/libcudart.so.13 (0x7f)"
stub "$work/toolkit/bin/nvcc" ""
without_nvcc=PATH=$work/none:/usr/bin:/bin
venv=$work/build/venv/lib/python3.11/site-packages/nvidia/cu13
expect "in CUDA_HOME" "0 $work/home/lib64" "$(runtime "$work/home/lib64" "$without_nvcc" CUDA_HOME="$work/home")"
expect "beside nvcc" "0 $work/toolkit/lib64" "$(runtime "$work/toolkit/lib64" PATH="$work/none:$work/toolkit/bin:/usr/bin:/bin")"
expect "in the usual place" "0 $work/usual/lib64" "$(runtime "$work/usual/lib64" "$without_nvcc" CUDA_USUAL_PLACE="$work/usual")"
expect "in the virtual environment" "0 $venv/lib" "$(runtime "$venv/lib" "$without_nvcc")"
expect "behind what is set" "0 /there:$venv/lib" "$(runtime "$venv/lib" "$without_nvcc" LD_LIBRARY_PATH=/there)"
expect "nowhere" "1 " "$(runtime "$work/aside" "$without_nvcc")"
expect "found by the loader" "0 /there" "$(runtime "$venv/lib" PATH="$work/found:/usr/bin:/bin" LD_LIBRARY_PATH=/there)"

# judge PEAK OUT [may-fit], under a cap of 100
judge() {
  printf '{"peak_bytes_with": %s, "bytes_out": %s, "reason": "it fitted"}' "$1" "$2" >"$work/report.json"
  report_problem "$work/report.json" 100 "${@:3}"
}
expect "moved, below the cap" "" "$(judge 100 5)"
expect "above the cap" "101 bytes were mapped under a cap of 100" "$(judge 101 5)"
expect "nothing moved" "nothing was moved out: it fitted" "$(judge 90 0)"
expect "nothing had to move" "" "$(judge 90 0 may-fit)"
expect "above the cap though it may fit" "101 bytes*" "$(judge 101 0 may-fit)"
expect "no report" "no report was written" "$(report_problem "$work/missing.json" 100)"
echo '{' >"$work/broken.json"
expect "half a report" "the report cannot be read" "$(report_problem "$work/broken.json" 100 2>/dev/null)"

# The whole of it, for the simulated GPU, and as for a real one.
export SIMGPU_GRANULARITY=64KiB OFFLOAD_MIN_SIZE=64KiB SIMGPU_BUILD="$build"
export TRAIN_OPTIONS="--tiny --layers 6 --batch 64 --steps 1 --quiet"
last_line="capped, liboffload     1[56] MiB*ok * 1[56] MiB * [1-9]* MiB * [1-9]* MiB * [0-9a-f]*"
output=$("$root/scripts/demo.sh" "$build" 2>&1)
expect "the demonstration's status" 0 "$?"
expect "the demonstration" "*out of memory*$last_line*equal to the last bit*" "$output"
output=$(GPU=real "$root/scripts/simgpu" --memory 2GiB -- "$root/scripts/demo.sh" "$build" 2>&1)
expect "the status under GPU=real" 0 "$?"
expect "under GPU=real" "*out of memory*$last_line*equal to the last bit*" "$output"
output=$(CAP=120 "$root/scripts/demo.sh" "$build" 2>&1)
expect "the status when nothing is short" 1 "$?"
expect "when nothing is short" "*should have run out of memory" "$output"

# What liboffload must not do, each done by a program that behaves otherwise when it is loaded.
# spoilt COMMANDS: the demonstration with them in its third run
spoilt() {
  local bad=$work/spoilt
  rm -rf "$bad"
  mkdir -p "$bad/workloads"
  ln -s "$build/liboffload.so" "$build/offload" "$build/simgpu" "$bad"
  # shellcheck disable=SC2016  # expanded there
  printf '#!/bin/bash\ncase $LD_PRELOAD in *liboffload.so*) %s ;; esac\nexec "%s" "$@"\n' "$1" \
    "$build/workloads/train_gpt" >"$bad/workloads/train_gpt"
  chmod +x "$bad/workloads/train_gpt"
  SIMGPU_BUILD=$bad "$root/scripts/demo.sh" "$bad" 2>&1
}
output=$(spoilt 'set -- "$@" --seed 2')
expect "the status when the results differ" 1 "$?"
expect "when the results differ" "*NOT equal*the results differ" "$output"
output=$(spoilt 'echo broken >&2; exit 3')
expect "the status when the third run fails" 1 "$?"
expect "when the third run fails" "*broken*exit 3*the run with liboffload failed" "$output"
output=$(spoilt 'export OFFLOAD_GPU_LIMIT=1GiB SIMGPU_MEMORY=2GiB')
expect "the status above the cap" 1 "$?"
expect "above the cap" "*equal to the last bit*demo: * bytes were mapped under a cap of *" "$output"

[ "$failures" = 0 ] && echo "every case passed"
exit $((failures > 0))
