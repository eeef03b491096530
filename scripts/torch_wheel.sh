#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches PyTorch's stock CUDA wheel into a virtual environment of its own, BUILD/torch-venv, without the NVIDIA libraries that it
# links: on the simulated GPU none of them runs. With it come transformers, accelerate and peft, for the tests that use them.
# Quick when all is there. Exit 1 where it cannot be had.
#
#   scripts/torch_wheel.sh [BUILD]      BUILD/torch-venv/wheel then holds the path of the wheel's libraries,
#                                       BUILD/torch-venv/huggingface the versions of the others
set -euo pipefail

torch_version=${TORCH_VERSION:-2.11.0}
needs=(filelock typing-extensions sympy mpmath networkx jinja2 markupsafe fsspec numpy)
# These ask for torch, so they come without what they ask for; that is named beside them.
huggingface=(transformers==5.24.0 accelerate==1.15.0 peft==0.21.0)
huggingface_needs=("huggingface-hub>=1.31,<3" "tokenizers>=0.23.1,<0.24" "safetensors>=0.8" regex pyyaml tqdm typer packaging psutil)
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
torch_is_there() { [ -e "$venv/wheel" ] && [ "$(sed -n 2p "$venv/wheel")" = "$torch_version" ] && [ -d "$(sed -n 1p "$venv/wheel")" ]; }
huggingface_is_there() { [ -e "$venv/huggingface" ] && [ "$(cat "$venv/huggingface")" = "${huggingface[*]}" ]; }
install() { "$venv/bin/python" -m pip install --disable-pip-version-check --no-compile "$@" >>"$log" 2>&1; }

# In place of pip, which compiles on one core, and hundreds of models that no test here is about: together as long as to fetch them.
# What is left out is compiled when it is imported.
compile_modules() {
  "$venv/bin/python" -m compileall -q -j 0 -x '/transformers/models/(?!auto/|gpt2/|llama/)|/torch/testing/|/tests?/' \
    "$venv"/lib/python3*/site-packages >>"$log" 2>&1 || true
}

# could_not WHAT: after pip has failed.
could_not() {
  tail -n 5 "$log" >&2
  fail "pip could not install $1" "is there a network? The whole output is in $log"
}

torch_is_there && huggingface_is_there && exit 0
[ "$(uname -m)" = x86_64 ] || fail "there is no such wheel for $(uname -m)"
python=$(command -v python3) || fail "python3 is missing"
: >"$log"
if ! torch_is_there; then
  rm -rf "$venv"
  "$python" -m venv "$venv" || fail "python3 -m venv $venv failed; is python3-venv installed?"
  echo "torch: installing PyTorch $torch_version (530 MB) into $venv"
  if ! install --no-deps "torch==$torch_version" "${needs[@]}"; then
    rm -rf "$venv"
    could_not "torch $torch_version"
  fi
  path=$(libraries) || fail "the wheel has no torch/lib"
  [ -e "$path/libtorch_cuda.so" ] || fail "this wheel is not built for CUDA: $path has no libtorch_cuda.so"
  printf '%s\n%s\n' "$path" "$torch_version" >"$venv/wheel"
fi
echo "torch: installing ${huggingface[*]}"
install "${huggingface_needs[@]}" || could_not "what transformers needs"
install --no-deps "${huggingface[@]}" || could_not "${huggingface[*]}"
compile_modules
echo "${huggingface[*]}" >"$venv/huggingface"
