#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch says of its memory while a program uses it. An ordinary script: it knows nothing of where it runs.

Standard output: lines of a name and what was seen under it. Sizes are MiB; `--most` of them are alive at once."""

import argparse
import gc

import torch

MIB = 1 << 20
parser = argparse.ArgumentParser()
parser.add_argument("--most", type=int, default=48)
options = parser.parse_args()


def say(name, *values):
    print(name, *values, flush=True)


def mib(count, value=1.0):
    return torch.full((count * MIB // 4,), value, device="cuda")


def pattern(index):
    """4 MiB that are others for each index, on the host."""
    return torch.arange(MIB, dtype=torch.int32) * 3 + index


def keep(index):
    return pattern(index).cuda()


def row(title):
    """The current and peak figures of a row of memory_summary."""
    line = next(line for line in torch.cuda.memory_summary().splitlines() if line.strip("| ").startswith(title))
    return [cell.strip() for cell in line.split("|")[2:4]]


def look(name):
    free, total = torch.cuda.mem_get_info()
    say(name + ".allocated", torch.cuda.memory_allocated() // MIB)
    say(name + ".max_allocated", torch.cuda.max_memory_allocated() // MIB)
    say(name + ".reserved", torch.cuda.memory_reserved() // MIB)
    say(name + ".max_reserved", torch.cuda.max_memory_reserved() // MIB)
    say(name + ".free", free // MIB)
    say(name + ".total", total // MIB)
    say(name + ".sum_fits", free + torch.cuda.memory_allocated() <= total)


say("backend", torch.cuda.get_allocator_backend())
say("total_memory", torch.cuda.get_device_properties(0).total_memory // MIB)
look("start")

kept = [keep(index) for index in range(options.most // 16)]
look("growing")
kept += [keep(index) for index in range(len(kept), options.most // 4)]
look("full")
say("summary.allocated", *row("Allocated memory"))
del kept[1::2]
look("half")
torch.cuda.reset_peak_memory_stats()
look("reset")
say("content", *(int(torch.equal(tensor.cpu(), pattern(2 * index))) for index, tensor in enumerate(kept)))
del kept[options.most // 16:]
look("shrinking")
del kept
gc.collect()
torch.cuda.synchronize()
torch.cuda.empty_cache()
look("empty")

# A share of the device as a limit, which PyTorch itself watches over.
torch.cuda.set_per_process_memory_fraction(8.5 * MIB / torch.cuda.mem_get_info()[1])
held = mib(4)
try:
    mib(8)
    say("fraction", "nothing")
except torch.OutOfMemoryError:
    say("fraction", "torch.OutOfMemoryError")
torch.cuda.set_per_process_memory_fraction(1.0)
del held

# A buffer that another stream still reads while it is freed, and its memory asked for again.
side = torch.cuda.Stream()
source = mib(4, 7.0)
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(20):
        copied = source * 1.0
source.record_stream(side)
del source
others = [mib(4, 0.0) for _ in range(4)]
torch.cuda.synchronize()
say("record_stream.allocated", torch.cuda.memory_allocated() // MIB)
del others, copied
torch.cuda.synchronize()
look("end")

# What three sizes that are no multiples of anything count as, in bytes.
torch.cuda.reset_peak_memory_stats()
odd = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (1, 513, 1000001)]
say("odd", torch.cuda.memory_allocated())
say("most_odd", torch.cuda.max_memory_allocated())
del odd

# All of the device as that limit.
kept = []
try:
    while len(kept) < options.most // 4:
        kept.append(keep(len(kept)))
except torch.OutOfMemoryError:
    pass
say("within_fraction_1", len(kept) * 4)
