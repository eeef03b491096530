#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The prepared check for a machine with one NVIDIA GPU, stock PyTorch and nothing else: a bf16 GPT of some 20 GB, deterministic, with
# PyTorch's own allocator, with the stream-ordered one, and with liboffload, uncapped and at 75 and 55 % of the peak. Losses and weights
# must be equal to the last bit. Under six minutes. Needs build/liboffload.so.
#
#   tests/device/torch_check.sh [BUILD] > result.json     one line per run on standard error; exit status 0: all equal, the capped ones
#                                                        moved memory and stayed below their caps
#   PYTHON=python3.12                                     the Python that has torch
#   TRAIN_OPTIONS="--layers 12 ..."                       another model (tests/torch/train.py)
#
# A dry run without a GPU, where made-up kernels give another result with PyTorch's own allocator (make torch first):
#   DRY_RUN=1 TRAIN_OPTIONS="--layers 3 --width 64 --sequence 64 --batch 8 --steps 3" OFFLOAD_MIN_SIZE=16KiB \
#     CUBLAS_WORKSPACE_CONFIG=:16:8 CUBLASLT_WORKSPACE_SIZE=64 scripts/simgpu --torch --granularity 16KiB -- tests/device/torch_check.sh
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$root/build}" && pwd) || exit 1
python=${PYTHON:-python3}
[ -e "$build/liboffload.so" ] || { echo "$build/liboffload.so is missing: run make first" >&2; exit 1; }
"$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' ||
  { echo "$python has no torch with a GPU; set PYTHON" >&2; exit 1; }
exec "$python" "$root/tests/device/torch_check.py" --build "$build"
