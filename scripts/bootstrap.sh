#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Brings what the build needs and is not there: tools through apt (as root), mimalloc and, where no CUDA toolkit is found,
# CUDA's headers and nvcc into a virtual environment under build/. Says nothing when nothing is missing. What it cannot
# install it names, and exits with 1.
#
#   scripts/bootstrap.sh          what building and testing needs
#   scripts/bootstrap.sh --lint   also the formatter and the linters
#   scripts/bootstrap.sh --fuzz   also clang with its fuzzer
set -euo pipefail
cd "$(dirname "$0")/.."

venv=build/venv
mimalloc_wheel='cmeel-mimalloc==3.4.*'
cuda_version='13.0.*'
cuda_wheels=(nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl)
cuda_usual_place=${CUDA_USUAL_PLACE:-/usr/local/cuda}

fail() {
  printf 'bootstrap: %s\n' "$@" >&2
  exit 1
}

found() { compgen -G "$1" >/dev/null; }
have() { command -v "$1" >/dev/null 2>&1; }

# Packages of Debian and its relatives, each with the test that it is there.
missing_packages() {
  have g++ || echo g++
  have cmake || echo cmake
  have ninja || echo ninja-build
  have make || echo make
  have objcopy || echo binutils
  have readelf || echo binutils
  have git || echo git
  { have python3 && python3 -c 'import ensurepip, venv'; } >/dev/null 2>&1 || echo python3-venv
  { [ -e /usr/include/gtest/gtest.h ] || [ -e /usr/local/include/gtest/gtest.h ]; } || echo libgtest-dev
  found '/usr/lib/*/libzstd.so.1' || found '/usr/lib*/libzstd.so.1' || found '/lib/*/libzstd.so.1' || echo libzstd1
  if [ "$lint" = yes ]; then
    have clang-format || echo clang-format
    have clang-tidy || echo clang-tidy
    have shellcheck || echo shellcheck
  fi
  if [ "$fuzz" = yes ]; then
    have clang++ || echo clang
    found '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a' || echo libclang-rt-dev
  fi
}

install_packages() {
  local wanted
  wanted=$(missing_packages | sort -u | tr '\n' ' ')
  [ -n "$wanted" ] || return 0
  have apt-get || fail "these are missing, by their Debian names: $wanted" \
    "this system has no apt-get: install them with its own package manager, then run make again"
  [ "$(id -u)" = 0 ] || fail "these packages are missing: $wanted" \
    "install them with: sudo apt-get install $wanted"
  echo "bootstrap: installing $wanted"
  export DEBIAN_FRONTEND=noninteractive
  local log=build/bootstrap-apt.log
  mkdir -p build
  # shellcheck disable=SC2086  # a list of names
  if ! { apt-get update && apt-get install -y --no-install-recommends $wanted; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "apt-get could not install: $wanted" "is there a network? The whole output is in $log"
  fi
}

make_venv() {
  [ -x $venv/bin/python3 ] && $venv/bin/python3 -c 'import pip' >/dev/null 2>&1 && return 0
  rm -rf $venv
  python3 -m venv $venv || fail "python3 -m venv $venv failed; is python3-venv installed?"
}

install_wheels() {
  make_venv
  echo "bootstrap: installing $*"
  local log=build/bootstrap-pip.log
  if ! $venv/bin/python3 -m pip install --no-deps --disable-pip-version-check "$@" >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "pip could not install: $*" "is there a network? The whole output is in $log"
  fi
}

install_mimalloc() {
  local prefix="$venv/lib/python3*/site-packages/cmeel.prefix"
  if found "$prefix/include/mimalloc.h" || found "$prefix/include/mimalloc-*/mimalloc.h"; then
    { found "$prefix/lib*/libmimalloc.a" || found "$prefix/lib*/mimalloc-*/libmimalloc.a"; } && return 0
  fi
  install_wheels "$mimalloc_wheel"
}

has_cuda() { [ -e "$1/include/cuda.h" ] && [ -x "$1/bin/nvcc" ]; }

install_cuda() {
  [ -n "${CUDA_HOME:-}" ] && has_cuda "$CUDA_HOME" && return 0
  if have nvcc; then
    has_cuda "$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")" && return 0
  fi
  has_cuda "$cuda_usual_place" && return 0
  local root
  for root in "$venv"/lib/python3*/site-packages/nvidia/cu13; do
    has_cuda "$root" && found "$root/include/crt/host_runtime.h" && found "$root/nvvm/bin/cicc" && return 0
  done
  install_wheels "${cuda_wheels[@]/%/==$cuda_version}"
}

lint=no
fuzz=no
case "${1:-}" in
  '') ;;
  --lint) lint=yes ;;
  --fuzz) fuzz=yes ;;
  *) fail "usage: scripts/bootstrap.sh [--lint | --fuzz]" ;;
esac
install_packages
install_mimalloc
install_cuda
