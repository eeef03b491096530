#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# runner.sh RUNNER BUILD: what scripts/simgpu makes of its options.
set -uo pipefail
runner=$1
export SIMGPU_BUILD=$2
unset SIMGPU_MEMORY SIMGPU_DEVICES SIMGPU_SCHEDULE SIMGPU_CLOCK SIMGPU_CHECK SIMGPU_REPORT LD_LIBRARY_PATH
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
expect 2 "--schedule wants fifo, late or random:SEED, not 'often'" "$runner" --schedule often -- true
expect 2 "--devices wants a number, not 'two'" "$runner" --devices two -- true
expect 2 "libcuda.so.1 is missing" env SIMGPU_BUILD=/nowhere "$runner" -- true
expect 7 "" "$runner" -- bash -c 'exit 7'
# shellcheck disable=SC2016 # for the command to expand
print='echo "$SIMGPU_MEMORY,$SIMGPU_DEVICES,$SIMGPU_SCHEDULE,$SIMGPU_CHECK,$LD_LIBRARY_PATH"'
expect 0 "512MiB,2,random:5,off,$(cd "$SIMGPU_BUILD/simgpu" && pwd)" \
  "$runner" --memory 512MiB --devices=2 --schedule random:5 --check=off bash -c "$print"
expect 0 "a b" "$runner" -- printf '%s %s' a b
exit $status
