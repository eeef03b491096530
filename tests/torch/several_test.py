#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on two GPUs, each capped at 60 % of what it would hold: the same bits as with room and without liboffload.

    several_test.py --build DIR [name ...]      77: PyTorch is not there (make torch)

One process whose layers alternate between the GPUs, and a process for each GPU under torchrun, whose gradients Gloo sends."""

import sys

from rig import GRANULARITY, ROOT, main

SCRIPT = str(ROOT / "tests" / "torch" / "several_train.py")
LAYERS = ["python", SCRIPT, "layers"]
COPIES = ["python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", SCRIPT, "copies"]
SMALL_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "64"}
SHORT = ["--steps", "2"]
TWO = ["--devices", "2"]
CAP = 60  # % of what the GPU with the lower peak holds
PLACES = [("fifo", "host"), ("late", "unmapped"), ("random:1", "host")]
MORE_PLACES = [(schedule, evicted) for schedule in ("fifo", "late", "random:1", "random:2", "random:3") for evicted in ("host", "unmapped")]


def results(run):
    """What must not change: all lines but the peaks. Processes take turns as they like."""
    return sorted(line for line in run.out.splitlines() if "peak" not in line.split())


def peaks(run):
    """By GPU, what some process had allocated there at most."""
    rows = [line.split("peak ")[1].split() for line in run.out.splitlines() if "peak" in line.split()]
    return [max(int(value) for value in column) for column in zip(*rows)]


def same(rig, command, processes, places, allocator="async"):
    """With room and without, and then in each of the places; prints what was moved where."""
    without = rig.must(command, [*TWO, "--memory", "1GiB"], **SMALL_WORKSPACE)
    assert "weights" in without.out and len(results(without)) % processes == 0 and len(peaks(without)) == 2, without.out
    assert len(without.all_counts) == processes, without.all_counts
    largest = max(counts["largest_launch_bytes"] for counts in without.all_counts)
    memory = max(min(peaks(without)) * CAP // 100, largest * 5 // 4 + (512 << 10)) // GRANULARITY * GRANULARITY
    assert memory < min(peaks(without)) * 70 // 100, f"{memory} of {peaks(without)} is no cap"
    for schedule, evicted in places:
        on = rig.must(command, [*TWO, "--memory", str(memory), "--schedule", schedule],
                      offload={"OFFLOAD_EVICTED": evicted, "OFFLOAD_PYTORCH_ALLOC": allocator}, **SMALL_WORKSPACE)
        where = f"{schedule} {evicted} {allocator}: "
        assert results(on) == results(without), where + "\n".join([*results(on), "instead of", *results(without)])
        assert not on.lines_of_ours(), where + on.said
        assert all(counts["dead_names"] == 0 for counts in on.all_counts), where + str(on.all_counts)
        devices = [device for report in on.reports for device in report["devices"] if device["peak_bytes_without"]]
        assert sorted(device["device"] for device in devices) == [0, 1], where + str(devices)
        for device in devices:
            assert device["bytes_out"] > 0 and device["bytes_in"] > 0, where + str(device)
            assert device["peak_bytes_with"] <= memory, where + str(device)
        print(where + ", ".join(f"GPU {device['device']}: {device['peak_bytes_without'] >> 10} KiB in {memory >> 10}, "
                                f"out {device['bytes_out'] >> 10}, in {device['bytes_in'] >> 10}" for device in devices))


def layers(rig):
    """One process; tensors go from GPU to GPU, and the backward pass has a thread for each."""
    same(rig, [*LAYERS, *SHORT], 1, PLACES)


def layers_everywhere(rig):
    same(rig, LAYERS, 1, MORE_PLACES)
    same(rig, LAYERS, 1, MORE_PLACES, "uncached")


def copies(rig):
    """torchrun, DistributedDataParallel and Gloo, whose threads copy gradients to the host and back on streams of their own."""
    same(rig, [*COPIES, *SHORT], 2, PLACES[1:2])


def copies_everywhere(rig):
    same(rig, COPIES, 2, MORE_PLACES)
    same(rig, COPIES, 2, MORE_PLACES, "uncached")


if __name__ == "__main__":
    sys.exit(main([layers, copies], __doc__, longer=[layers_everywhere, copies_everywhere]))
