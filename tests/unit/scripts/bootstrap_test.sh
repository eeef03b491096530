#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What scripts/bootstrap.sh says and returns on machines that lack this or that. Each case is a folder of its own with a PATH of stubs, so
# nothing is installed and nothing outside is touched.
# shellcheck disable=SC2016  # what stubs do is written here and expanded there
set -uo pipefail
script=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
unset CUDA_HOME MORE_PATH  # what a case sets

# new_machine NAME: a machine that has everything but apt-get, CUDA and wheels.
new_machine() {
  machine=$work/$1
  mkdir -p "$machine/scripts" "$machine/bin"
  cp "$script" "$machine/scripts/bootstrap.sh"
  local tool
  for tool in bash cat cp dirname env id ls mkdir readlink rm sort tail tr; do
    ln -s "$(command -v $tool)" "$machine/bin/$tool"
  done
  for tool in g++ cmake ninja make objcopy readelf git clang-format clang-tidy shellcheck; do
    stub $tool 'exit 0'
  done
  # A python3 that makes a virtual environment out of itself, whose pip is $PIP.
  stub python3 'case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python3" ;;
    "-m pip install "*) echo "$@" >>"$MACHINE/pip-calls"; eval "$PIP" ;;
  esac'
  stub id 'echo 0'
  mkdir -p "$machine/cuda/include" "$machine/cuda/bin"
  touch "$machine/cuda/include/cuda.h"
  ln -s /bin/true "$machine/cuda/bin/nvcc"
  prefix=$machine/build/venv/lib/python3.11/site-packages/cmeel.prefix
  mkdir -p "$prefix/include" "$prefix/lib"
  touch "$prefix/include/mimalloc.h" "$prefix/lib/libmimalloc.a"
}

stub() {
  rm -f "$machine/bin/$1"
  printf '#!/bin/bash\n%s\n' "$2" >"$machine/bin/$1"
  chmod +x "$machine/bin/$1"
}

# boot [argument]: runs the script there; $output and $status tell.
boot() {
  output=$(env -i PATH="$machine/bin${MORE_PATH:+:$MORE_PATH}" ${CUDA_HOME:+CUDA_HOME="$CUDA_HOME"} MACHINE="$machine" PIP="${PIP:-exit 1}" \
    CUDA_USUAL_PLACE="$machine/cuda" "$machine/scripts/bootstrap.sh" "$@" 2>&1)
  status=$?
}

expect() {
  if [ "$status" != "$1" ]; then
    echo "FAILED: $machine: status $status, not $1; it said: $output"
    failures=$((failures + 1))
  fi
  shift
  local text
  for text in "$@"; do
    case $output in
      *"$text"*) ;;
      *)
        echo "FAILED: $machine: did not say '$text' but: $output"
        failures=$((failures + 1))
        ;;
    esac
  done
}

new_machine complete
boot
expect 0
[ -z "$output" ] || { echo "FAILED: it spoke though nothing was missing: $output"; failures=$((failures + 1)); }

new_machine not_root
rm "$machine/bin/cmake" "$machine/bin/ninja"
stub apt-get 'exit 0'
stub id 'echo 1000'
boot
expect 1 'missing: cmake ninja-build' 'sudo apt-get install cmake ninja-build'

new_machine unknown_distribution
rm "$machine/bin/g++"
boot
expect 1 'these are missing, by their Debian names: g++' 'no apt-get'

new_machine no_network
rm "$machine/bin/make"
stub apt-get 'echo "E: Could not resolve" >&2; exit 100'
boot
expect 1 'E: Could not resolve' 'apt-get could not install: make' 'is there a network?'

new_machine apt_installs
rm "$machine/bin/g++"
stub apt-get 'echo "$@" >>"$MACHINE/apt-calls"'
boot
expect 0 'installing g++'
grep -q 'install -y --no-install-recommends g++' "$machine/apt-calls" || { echo "FAILED: no install"; failures=$((failures + 1)); }

new_machine linters
rm "$machine/bin/clang-tidy"
boot
expect 0
boot --lint
expect 1 'clang-tidy'

new_machine no_mimalloc
rm -r "$machine/build"
boot
expect 1 "pip could not install: cmeel-mimalloc==3.4.*" 'is there a network?'

new_machine no_cuda
rm -r "$machine/cuda"
PIP='exit 0' boot
expect 0 'installing nvidia-cuda-nvcc==13.0.* nvidia-cuda-crt==13.0.* nvidia-nvvm==13.0.* nvidia-cuda-runtime==13.0.* nvidia-cuda-cccl==13.0.*'
grep -q -- '--no-deps' "$machine/pip-calls" || { echo "FAILED: dependencies too"; failures=$((failures + 1)); }

# nothing_installed: the toolkit that lies elsewhere was found.
nothing_installed() {
  expect 0
  [ -z "$output$(cat "$machine/pip-calls" 2>/dev/null)" ] && return
  echo "FAILED: $machine: CUDA was not found: $output"
  failures=$((failures + 1))
}

new_machine cuda_home
mv "$machine/cuda" "$machine/elsewhere"
CUDA_HOME=$machine/elsewhere boot
nothing_installed

# A toolkit without its headers is none, so the search goes on.
new_machine cuda_home_without_headers
mkdir -p "$machine/broken/bin"
ln -s /bin/true "$machine/broken/bin/nvcc"
CUDA_HOME=$machine/broken boot
nothing_installed
rm -r "$machine/cuda"
CUDA_HOME=$machine/broken PIP='exit 0' boot
expect 0 'installing nvidia-cuda-nvcc'

new_machine nvcc_on_path
mkdir "$machine/toolkit"
mv "$machine/cuda" "$machine/toolkit/cuda-13.0"
rm "$machine/toolkit/cuda-13.0/bin/nvcc"
cp /bin/true "$machine/toolkit/cuda-13.0/bin/nvcc"
MORE_PATH=$machine/toolkit/cuda-13.0/bin boot
nothing_installed

# As distributions do it: what stands on PATH is a link into the toolkit.
new_machine nvcc_linked_on_path
mv "$machine/cuda" "$machine/toolkit"
rm "$machine/toolkit/bin/nvcc"
cp /bin/true "$machine/toolkit/bin/nvcc"
ln -s "$machine/toolkit/bin/nvcc" "$machine/bin/nvcc"
boot
nothing_installed

# A wrapper that is not in a toolkit.
new_machine nvcc_without_headers
rm -r "$machine/cuda"
stub nvcc 'exit 0'
PIP='exit 0' boot
expect 0 'installing nvidia-cuda-nvcc'

new_machine usage
boot --nonsense
expect 1 'usage: scripts/bootstrap.sh'

[ "$failures" = 0 ] && echo "every case passed"
exit $((failures > 0))
