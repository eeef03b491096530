#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what training scripts submit, as fixtures for whatever learns from it: tests/torch/streams/NAME.ops.gz, in the format that
streams/README.md describes. Needs PyTorch (make torch); without names it records all.

    record.py [--build DIR] [--output FOLDER] [NAME ...]"""

import argparse
import gzip
import pathlib
import subprocess
import sys
import tempfile

from rig import GRANULARITY, ROOT, SKIPPED, clean_environment, missing

GPT = ["train.py", "--layers", "6", "--width", "64", "--sequence", "64", "--batch", "8", "--steps", "5"]
HUGGING_FACE = ["hf_train.py", "--layers", "4", "--width", "64", "--sequence", "64", "--batch", "8", "--steps", "4"]
STREAMS = {
    "gpt-fp32": GPT,
    "gpt-bf16-fused": [*GPT, "--precision", "bf16", "--optimizer", "adamw-fused", "--clip", "1"],
    "gpt-fp16-scaler": [*GPT, "--precision", "fp16", "--attention", "manual"],
    "gpt-checkpointing": [*GPT, "--checkpointing", "nonreentrant", "--dropout", "0.1"],
    "gpt-micro-batches-eval": [*GPT, "--accumulate", "3", "--eval-every", "2"],
    "gpt-fp32-lengths": [*GPT, "--vary-sequence", "--steps", "8"],
    "gpt-bf16-lengths": [*GPT, "--vary-sequence", "--precision", "bf16", "--steps", "8"],
    "gpt-side-stream": [*GPT, "--side-stream", "--optimizer", "sgd"],
    "llama-lora": [*HUGGING_FACE, "--model", "llama", "--lora", "--checkpointing", "reentrant", "--precision", "bf16"],
    "gpt2-trainer": [*HUGGING_FACE, "--optimizer", "adamw_torch_fused"],
}


def compact(lines):
    """The simulated GPU's list of names, kernels and streams by number."""
    kernels, streams, out = {}, {}, []
    for line in lines:
        words = line.split()
        if words[0] in ("launch", "copy", "fill"):
            words[1] = str(streams.setdefault(words[1], len(streams)))
        if words[0] == "launch":
            kernel = words.pop(3)
            if kernel not in kernels:
                kernels[kernel] = len(kernels)
                out.append(f"k {kernels[kernel]} {kernel}")
            words.insert(2, str(kernels[kernel]))
            words[4:] = [word.removesuffix("+0") for word in words[4:]]
        out.append(" ".join([{"alloc": "a", "free": "f", "launch": "l", "copy": "c", "fill": "z"}[words[0]], *words[1:]]))
    return out


def record(build, words):
    with tempfile.TemporaryDirectory() as folder:
        line = [str(ROOT / "scripts" / "simgpu"), "--torch", "--granularity", str(GRANULARITY), "--", "python",
                str(ROOT / "tests" / "torch" / words[0]), *words[1:]]
        environment = clean_environment(build)
        environment.update(SIMGPU_NAMES=f"{folder}/names.%p", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync",
                           CUBLAS_WORKSPACE_CONFIG=":16:8", CUBLASLT_WORKSPACE_SIZE="64")
        subprocess.run(line, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lists = [file.read_text().splitlines() for file in pathlib.Path(folder).glob("names.*")]
    return max(lists, key=len)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "tests" / "torch" / "streams")
    parser.add_argument("name", nargs="*")
    arguments = parser.parse_args()
    names = arguments.name or list(STREAMS)
    if lack := missing(arguments.build, any(STREAMS[name][0] == HUGGING_FACE[0] for name in names)):
        print(lack)
        return SKIPPED
    for name in names:
        words = STREAMS[name]
        head = [f"# liboffload op stream 1: {' '.join(words)}"]
        text = "\n".join(head + compact(record(arguments.build.resolve(), words))) + "\n"
        file = arguments.output / f"{name}.ops.gz"
        file.write_bytes(gzip.compress(text.encode(), mtime=0))
        print(name, len(text.splitlines()), "lines,", file.stat().st_size, "bytes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
