#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# runner.sh RUNNER BUILD: what scripts/simgpu makes of its options.
set -uo pipefail
runner=$1
export SIMGPU_BUILD=$2
unset SIMGPU_MEMORY SIMGPU_DEVICES SIMGPU_SCHEDULE SIMGPU_CLOCK SIMGPU_CHECK SIMGPU_PINNING_WAITS SIMGPU_REPORT LD_LIBRARY_PATH
status=0

# expect STATUS TEXT command...: how it ends, and part of what it says.
expect() {
  local wanted=$1 text=$2 said got
  shift 2
  said=$("$@" 2>&1)
  got=$?
  if [[ $got -ne $wanted || $said != *"$text"* ]]; then
    printf '%s\n  status %d instead of %d, or without "%s":\n%s\n' "$*" "$got" "$wanted" "$text" "$said"
    status=1
  fi
}

expect 0 "Usage: scripts/simgpu" "$runner" --help
expect 2 "unknown option --frequency" "$runner" --frequency 3 -- true
expect 2 "option --memory needs a value" "$runner" --memory
expect 2 "option --memory needs a value" "$runner" --memory -- true
expect 2 "no command given" "$runner" --devices 2
expect 2 "--memory wants a size such as 512MiB, not 'much'" "$runner" --memory much -- true
expect 2 "--granularity wants a size such as 512MiB, not '2MiBs'" "$runner" --granularity 2MiBs -- true
expect 0 "" "$runner" --memory 1.5GiB --granularity 64KiB -- true
expect 2 "--schedule wants fifo, late or random:SEED, not 'often'" "$runner" --schedule often -- true
expect 2 "--devices wants a number, not 'two'" "$runner" --devices two -- true
expect 2 "--pinning-waits wants 0, 1 or timed, not 'often'" "$runner" --pinning-waits often -- true
# shellcheck disable=SC2016 # for the command to expand
expect 0 "waits 1" "$runner" --pinning-waits 1 bash -c 'echo "waits $SIMGPU_PINNING_WAITS"'
expect 2 "libcuda.so.1 is missing" env SIMGPU_BUILD=/nowhere "$runner" -- true
expect 7 "" "$runner" -- bash -c 'exit 7'
# shellcheck disable=SC2016 # for the command to expand
print='echo "$SIMGPU_MEMORY,$SIMGPU_DEVICES,$SIMGPU_SCHEDULE,$SIMGPU_CHECK,$LD_LIBRARY_PATH"'
expect 0 "512MiB,2,random:5,off,$(cd "$SIMGPU_BUILD/simgpu" && pwd)" \
  "$runner" --memory 512MiB --devices=2 --schedule random:5 --check=off bash -c "$print"
expect 0 "a b" "$runner" -- printf '%s %s' a b

# --torch, on a build with and without PyTorch.
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mkdir -p "$build/simgpu/torch" "$build/torch-venv/bin"
touch "$build"/simgpu/{libcuda.so.1,libcudart.so.13}
expect 77 "make torch" env SIMGPU_BUILD="$build" "$runner" --torch -- true
touch "$build/simgpu/torch/libcublas.so.13"
ln -s "$(command -v bash)" "$build/torch-venv/bin/python"
# shellcheck disable=SC2016 # for the command to expand
print='echo "$LD_LIBRARY_PATH,$SIMGPU_WIPE_STACK,$SIMGPU_TWINS,${LD_PRELOAD:-none}"'
expect 0 "$build/simgpu/torch:$build/simgpu,1,$build/simgpu/torch/gemm.twins.so,none" \
  env SIMGPU_BUILD="$build" LD_LIBRARY_PATH= "$runner" --torch -- python -c "$print"
exit $status
