#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch says of its memory under liboffload is true, and as without it wherever it can be.

    view_test.py --build DIR [name ...]      77: PyTorch is not there (make torch)"""

import sys

from rig import ROOT, main

VIEW = ["python", str(ROOT / "tests" / "torch" / "view.py")]
FINDER = ["python", str(ROOT / "tests" / "torch" / "batch_finder.py")]
LITTLE = ["--memory", "24MiB"]  # for a search that begins with a batch of which each layer takes 8
SMALL_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "64"}
MOST = 48  # MiB alive in view.py
# Whoever keeps the freed memory decides when it is given back: the driver's pool at the next synchronisation, liboffload on request.
KEPT_AT_WILL = (".reserved", ".free")


def as_without(rig):
    """All fits: what is allocated, the peaks, and the whole are the same numbers."""
    room = ["--memory", "256MiB"]
    without, on = rig.must(VIEW, room).values(), rig.must(VIEW, room, offload={})
    seen = on.values()
    assert on.report["bytes_out"] == 0, on.report
    other = {name: (without[name], seen[name]) for name in without
             if seen[name] != without[name] and not name.endswith(KEPT_AT_WILL)}
    assert not other and without.keys() == seen.keys(), other
    assert seen["backend"] == "cudaMallocAsync" and seen["full.allocated"] == str(MOST) and seen["empty.reserved"] == "0"
    assert seen["fraction"] == "torch.OutOfMemoryError"


def under_a_cap(rig):
    """More is alive than the device has: allocated counts all of it, reserved what is on the device, and the whole grows only by
    what has to be added."""
    cap = 24
    without = rig.must(VIEW, ["--memory", "256MiB"]).values()
    for schedule in ("fifo", "late"):
        run = rig.must(VIEW, ["--memory", f"{cap}MiB", "--schedule", schedule], offload={})
        seen = run.values()
        assert run.report["bytes_out"] > 0, run.report
        for name, value in without.items():
            if name.endswith("allocated") or name in ("fraction", "content"):
                assert seen[name] == value, (name, value, seen[name])
            if name.endswith(".sum_fits"):
                assert seen[name] == "True", name
            if name.endswith("reserved"):
                assert int(seen[name]) <= cap, (name, seen[name])
        assert (seen["full.total"], seen["full.free"]) == (str(MOST), "0"), seen
        assert (seen["half.total"], seen["half.free"]) == (str(cap), "0"), seen
        assert (seen["empty.total"], seen["empty.free"], seen["empty.reserved"]) == (str(cap), str(cap), "0"), seen
        assert int(seen["full.reserved"]) > cap * 3 // 4, seen


def limit_is_the_whole(rig):
    """OFFLOAD_GPU_LIMIT is what the program may have, so it is the whole of which mem_get_info tells."""
    seen = rig.must(VIEW, ["--memory", "256MiB"], offload={"OFFLOAD_GPU_LIMIT": "64MiB"}).values()
    assert seen["start.total"] == "64" and seen["full.total"] == "64", seen
    assert seen["total_memory"] == "256", seen  # a property of the card


def uncached_counts_nothing(rig):
    """With cudaMalloc per tensor PyTorch has no statistics, with liboffload or without."""
    seen = rig.must(VIEW, ["--memory", "256MiB"], offload={"OFFLOAD_PYTORCH_ALLOC": "uncached"})
    assert seen.values()["full.allocated"] == "0", seen.out


def batch_size_is_found(rig):
    """A smaller batch after torch.OutOfMemoryError: without liboffload, with it and little host memory (and then nothing is left
    behind), and the first batch fits with enough of it."""
    without = rig.must(FINDER, LITTLE, **SMALL_WORKSPACE).values()
    little = rig.must(FINDER, LITTLE, offload={"OFFLOAD_HOST_LIMIT": "35MiB"}, **SMALL_WORKSPACE)
    much = rig.must(FINDER, LITTLE, offload={}, **SMALL_WORKSPACE)
    found = [int(values["found"]) for values in (without, little.values(), much.values())]
    assert found[0] < found[1] < found[2] == 256, found
    assert little.values()["left"] == without["left"], (little.out, without)
    assert "OFFLOAD_HOST_LIMIT" in little.said, little.said


def finder_by_text(rig):
    """accelerate's finder looks for another text than PyTorch's stream-ordered allocator writes, with liboffload or without; the
    first batch fits with enough host memory."""
    command = [*FINDER, "--accelerate"]
    for run in rig.run(command, LITTLE, **SMALL_WORKSPACE), rig.run(command, LITTLE, offload={"OFFLOAD_HOST_LIMIT": "35MiB"}, **SMALL_WORKSPACE):
        assert run.status == 1 and "torch.OutOfMemoryError" in run.said and run.out.count("tried") == 1, run.out + run.said
    assert rig.must(command, LITTLE, offload={}, **SMALL_WORKSPACE).values()["found"] == "256"


TESTS = [as_without, under_a_cap, limit_is_the_whole, uncached_counts_nothing, batch_size_is_found, finder_by_text]

if __name__ == "__main__":
    sys.exit(main(TESTS, __doc__))
