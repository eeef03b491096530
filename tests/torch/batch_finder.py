#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the largest batch that can be trained with: begins with much, and takes half each time that memory is out. An ordinary script:
it knows nothing of where it runs. With --accelerate the finder is accelerate's, which goes by the text of the error."""

import argparse

import torch

FIRST = 256


def train(batch_size):
    print("tried", batch_size, flush=True)
    torch.manual_seed(1)
    layers = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4))).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        layers(torch.ones(batch_size, 32, 256, device="cuda")).square().mean().backward()
        optimizer.step()
    return batch_size


def find(function):
    batch_size = FIRST
    while True:
        try:
            return function(batch_size)
        except torch.OutOfMemoryError:
            batch_size //= 2
        torch.cuda.empty_cache()


def find_by_accelerate(function):
    from accelerate.utils import find_executable_batch_size

    return find_executable_batch_size(function, starting_batch_size=FIRST)()


parser = argparse.ArgumentParser()
parser.add_argument("--accelerate", action="store_true")
print("found", (find_by_accelerate if parser.parse_args().accelerate else find)(train))
print("left", torch.cuda.memory_allocated() // (1 << 20))
