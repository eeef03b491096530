#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts that run workloads/train_gpt and judge what liboffload did to it.

# use_real_runtime BUILD: train_gpt has no run path, so the folder of a real libcudart.so.13 is put behind LD_LIBRARY_PATH, unless
# the loader finds one anyway. The places are those of scripts/cmake/cuda.cmake. Status 1: there is none.
use_real_runtime() {
  local build=$1 nvcc root place
  ! ldd "$build/workloads/train_gpt" 2>/dev/null | grep -q 'libcudart\.so\.13 => not found' && return 0
  nvcc=$(command -v nvcc) && nvcc=$(readlink -f "$nvcc")
  for root in "${CUDA_HOME:-}" "${nvcc:+${nvcc%/bin/nvcc}}" "${CUDA_USUAL_PLACE:-/usr/local/cuda}" \
    "$build"/venv/lib/python3*/site-packages/nvidia/cu13; do
    [ -n "$root" ] || continue
    for place in "$root/lib64" "$root/lib"; do
      if [ -e "$place/libcudart.so.13" ]; then
        export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$place
        return 0
      fi
    done
  done
  return 1
}

# report_value FILE KEY
report_value() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }

# report_problem FILE CAP_BYTES [may-fit]: what is wrong with the report of a run under that cap; nothing where all is as it must be.
# A run that moved nothing has tested nothing, unless it may fit.
report_problem() {
  [ -s "$1" ] || {
    echo "no report was written"
    return
  }
  local mapped
  mapped=$(report_value "$1" peak_bytes_with) || {
    echo "the report cannot be read"
    return
  }
  if [ "$mapped" -gt "$2" ]; then
    echo "$mapped bytes were mapped under a cap of $2"
  elif [ "${3:-}" != may-fit ] && [ "$(report_value "$1" bytes_out)" -eq 0 ]; then
    echo "nothing was moved out: $(report_value "$1" reason)"
  fi
}
