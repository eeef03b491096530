#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches PyTorch's stock CUDA wheel into a virtual environment of its own, BUILD/torch-venv, without the NVIDIA libraries that it
# links: on the simulated GPU none of them runs. Quick when it is there. Exit 1 where it cannot be had.
#
#   scripts/torch_wheel.sh [BUILD]      BUILD/torch-venv/wheel then holds the path of the wheel's libraries
set -euo pipefail

torch_version=${TORCH_VERSION:-2.11.0}
needs=(filelock typing-extensions sympy mpmath networkx jinja2 markupsafe fsspec numpy)
build=${1:-$(dirname "$0")/../build}
mkdir -p "$build"
build=$(cd "$build" && pwd)
venv=$build/torch-venv
log=$build/torch-pip.log

fail() {
  printf 'torch: %s\n' "$@" >&2
  exit 1
}

libraries() { compgen -G "$venv/lib/python3*/site-packages/torch/lib"; }
there() { [ -e "$venv/wheel" ] && [ "$(sed -n 2p "$venv/wheel")" = "$torch_version" ] && [ -d "$(sed -n 1p "$venv/wheel")" ]; }

there && exit 0
[ "$(uname -m)" = x86_64 ] || fail "there is no such wheel for $(uname -m)"
python=$(command -v python3) || fail "python3 is missing"
rm -rf "$venv"
"$python" -m venv "$venv" || fail "python3 -m venv $venv failed; is python3-venv installed?"
echo "torch: installing PyTorch $torch_version (530 MB) into $venv"
if ! "$venv/bin/python" -m pip install --no-deps --disable-pip-version-check "torch==$torch_version" "${needs[@]}" >"$log" 2>&1; then
  tail -n 5 "$log" >&2
  rm -rf "$venv"
  fail "pip could not install torch $torch_version" "is there a network? The whole output is in $log"
fi
path=$(libraries) || fail "the wheel has no torch/lib"
[ -e "$path/libtorch_cuda.so" ] || fail "this wheel is not built for CUDA: $path has no libtorch_cuda.so"
printf '%s\n%s\n' "$path" "$torch_version" >"$venv/wheel"
