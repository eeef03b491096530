#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the small GPT of train.py on several GPUs. An ordinary PyTorch script: it knows nothing of where it runs.

  several_train.py layers                                             one process, the layers alternate between all GPUs
  torchrun --standalone --nproc-per-node 2 several_train.py copies    DistributedDataParallel: a process and a GPU for each copy
  several_train.py data-parallel                                      torch.nn.DataParallel: one process, a copy on each GPU

Standard output: one line per step, a hash of all weights, and what each GPU had allocated at most. Processes begin theirs with their rank."""

import argparse
import os
import struct
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from train import GPT, TEXT, VOCABULARY, Pieces, hash_of, make_optimizer

RANK = int(os.environ.get("RANK", "0"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=["layers", "copies", "data-parallel"])
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16, help="of each process")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--optimizer", choices=["adamw-foreach", "adamw-fused", "adamw-single", "sgd"], default="adamw-foreach")
    parser.add_argument("--bucket-mb", type=float, default=0.1, help="gradients that DistributedDataParallel sends together")
    parser.set_defaults(attention="sdpa", checkpointing="none", dropout=0.0)
    return parser.parse_args()


class Spread(GPT):
    """Each block on the next GPU; what comes first is on the first, what comes last on the last."""

    def __init__(self, options):
        super().__init__(options)
        self.homes = [f"cuda:{index % torch.cuda.device_count()}" for index in range(options.layers)]
        self.last = f"cuda:{torch.cuda.device_count() - 1}"
        for block, home in zip(self.blocks, self.homes):
            block.to(home)
        self.tokens.to("cuda:0")
        self.positions.to("cuda:0")
        self.norm.to(self.last)
        self.head.to(self.last)

    def forward(self, inputs, targets):
        inputs = inputs.to("cuda:0")
        x = self.tokens(inputs) + self.positions(torch.arange(inputs.size(1), device=inputs.device))
        for block, home in zip(self.blocks, self.homes):
            x = block(x.to(home, non_blocking=True))
        logits = self.head(self.norm(x.to(self.last, non_blocking=True)))
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.to(self.last).reshape(-1))


def say(*words):
    # In one piece: processes share standard output.
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def main():
    options = arguments()
    torch.manual_seed(1)
    pieces = Pieces(TEXT, options.sequence, options.steps * options.batch * int(os.environ.get("WORLD_SIZE", "1")), 1)
    sampler, prefix = None, []
    if options.how == "copies":
        # NCCL where there is one to use; Gloo sends gradients by way of host memory.
        dist.init_process_group("gloo")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        sampler, prefix = DistributedSampler(pieces, shuffle=False), ["rank", RANK]
        plain = GPT(options).cuda()
        model = DistributedDataParallel(plain, bucket_cap_mb=options.bucket_mb)
    elif options.how == "layers":
        plain = model = Spread(options)
    else:
        plain = GPT(options).cuda()
        model = DataParallel(plain)
    optimizer = make_optimizer(options, plain.parameters())
    for step, (inputs, targets) in enumerate(DataLoader(pieces, batch_size=options.batch, sampler=sampler)):
        if options.how != "layers":
            inputs, targets = inputs.cuda(), targets.cuda()
        optimizer.zero_grad(set_to_none=True)
        loss = model(inputs, targets).mean()
        loss.backward()
        optimizer.step()
        say(*prefix, "step", step, "loss", struct.pack(">d", loss.item()).hex())
    say(*prefix, "weights", hash_of(plain.parameters()))
    states = [value for _, state in sorted(optimizer.state_dict()["state"].items()) for value in state.values()]
    say(*prefix, "optimizer", hash_of(value for value in states if isinstance(value, torch.Tensor)))
    say(*prefix, "peak", *(torch.cuda.max_memory_allocated(device) for device in range(torch.cuda.device_count())))
    if options.how == "copies":
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
