#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch says of its memory under liboffload is true, and as without it wherever it can be.

    view_test.py --build DIR [name ...]      77: PyTorch is not there (make torch)"""

import re
import sys

from rig import ROOT, hugging_face, main

VIEW = ["python", str(ROOT / "tests" / "torch" / "view.py")]
FINDER = ["python", str(ROOT / "tests" / "torch" / "batch_finder.py")]
LITTLE = ["--memory", "24MiB"]  # for a search that begins with a batch of which each layer takes 8
SMALL_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "64"}
MOST = 48  # MiB alive in view.py
# Whoever keeps the freed memory decides when it is given back: the driver's pool at the next synchronisation, liboffload on request.
KEPT_AT_WILL = (".reserved", ".free")
ODD = (1, 513, 1000001)  # bytes of the tensors whose count is looked at
UNIT = 512  # of the driver's pool and of PyTorch's own cache
IN_UNITS = str(sum(-(-size // UNIT) * UNIT for size in ODD))


def as_without(rig):
    """All fits: what is allocated, the peaks, and the whole are the same numbers."""
    room = ["--memory", "256MiB"]
    without, on = rig.must(VIEW, room).values(), rig.must(VIEW, room, offload={})
    seen = on.values()
    assert on.report["bytes_out"] == 0, on.report
    other = {name: (without[name], seen[name]) for name in without
             if seen[name] != without[name] and not name.endswith((*KEPT_AT_WILL, "odd"))}
    assert not other and without.keys() == seen.keys(), other
    assert seen["backend"] == "cudaMallocAsync" and seen["full.allocated"] == str(MOST) and seen["empty.reserved"] == "0"
    assert seen["fraction"] == "torch.OutOfMemoryError"
    assert seen["content"] == " ".join("1" for _ in range(MOST // 8)), seen["content"]
    assert seen["within_fraction_1"] == str(MOST), seen
    assert seen["odd"] == seen["most_odd"] == str(sum(ODD)) and without["odd"] == without["most_odd"] == IN_UNITS, (seen["odd"], without["odd"])


def under_a_cap(rig):
    """More is alive than the device has: allocated counts all of it, reserved never less than that, and the whole grows only by
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
            if name.endswith(".free"):  # tensors of 4 MiB leave no gaps, so there is room for all that is left of the total
                step = name.removesuffix(".free")
                assert int(seen[name]) == int(seen[step + ".total"]) - int(seen[step + ".allocated"]), (name, seen)
            if name.endswith("reserved"):
                allocated = int(seen[name.replace("reserved", "allocated")])
                assert allocated <= int(seen[name]) <= max(cap, allocated), (name, seen[name], allocated)
        assert (seen["full.total"], seen["full.free"]) == (str(MOST), "0"), seen
        assert (seen["half.total"], seen["half.free"]) == (str(cap), "0"), seen
        for step in "growing", "shrinking":
            assert (seen[f"{step}.total"], seen[f"{step}.free"]) == (str(cap), str(cap - MOST // 4)), (step, seen)
        assert (seen["empty.total"], seen["empty.free"], seen["empty.reserved"]) == (str(cap), str(cap), "0"), seen
        assert seen["full.reserved"] == str(MOST), seen
        assert seen["odd"] == seen["most_odd"] == str(sum(ODD)), seen
        assert seen["within_fraction_1"] == str(cap), seen  # and MOST lived before it was set


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


BY_TEXT = [*FINDER, "--accelerate"]
BY_TEXT_NATIVELY = ["python", "-c", f"""
import runpy, sys, torch
odd = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in {ODD}]
print("backend", torch.cuda.get_allocator_backend())
print("odd", torch.cuda.memory_allocated())
del odd
torch.cuda.empty_cache()
sys.argv = {BY_TEXT[1:]}
runpy.run_path(sys.argv[0], run_name="__main__")
"""]


def found_natively(run):
    """By accelerate's finder with PyTorch's own cache, which counts in units."""
    values = run.values()
    assert values["backend"] == "native" and values["odd"] == IN_UNITS, run.out
    assert 0 < int(values["found"]) < 256 and values["left"] == "0", run.out
    return run.out


@hugging_face
def finder_by_text(rig):
    """accelerate's finder looks for another text than PyTorch's stream-ordered allocator writes, with liboffload or without. With
    PyTorch's own it finds."""
    for run in rig.run(BY_TEXT, LITTLE, **SMALL_WORKSPACE), rig.run(BY_TEXT, LITTLE, offload={"OFFLOAD_HOST_LIMIT": "35MiB"}, **SMALL_WORKSPACE):
        assert run.status == 1 and "torch.OutOfMemoryError" in run.said and run.out.count("tried") == 1, run.out + run.said
    found_natively(rig.must(BY_TEXT_NATIVELY, LITTLE, offload={"OFFLOAD_PYTORCH_ALLOC": "native"}, **SMALL_WORKSPACE))


@hugging_face
def finder_by_text_as_without(rig):
    """With PyTorch's own cache it finds the same batch with liboffload and without, where nothing chooses another allocator; and
    with liboffload's the first batch fits with enough host memory."""
    on = rig.must(BY_TEXT_NATIVELY, LITTLE, offload={"OFFLOAD_PYTORCH_ALLOC": "native"}, **SMALL_WORKSPACE)
    without = rig.must(BY_TEXT_NATIVELY, LITTLE, PYTORCH_CUDA_ALLOC_CONF=None, **SMALL_WORKSPACE)
    assert found_natively(on) == found_natively(without), on.out + without.out
    assert rig.must(BY_TEXT, LITTLE, offload={}, **SMALL_WORKSPACE).values()["found"] == "256"


LARGER = """
import torch
parts = [torch.full((1 << 20,), float(count), device="cuda") for count in range(3)]
sums = [part.cpu().sum().item() for part in parts]
for attempt in range(2):
    try:
        torch.cat(parts)
        print("joined", attempt)
    except torch.AcceleratorError as error:
        print("refused", attempt, error.error_code, str(error).splitlines()[0])
print("kept", [part.cpu().sum().item() for part in parts] == sums, torch.cuda.memory_allocated() >> 20)
print("smaller", (parts[0] + parts[1]).numel())
del parts
tall, wide = torch.ones(2048, 1024, device="cuda"), torch.ones(1024, 2048, device="cuda")
for attempt in range(2):
    try:
        product = torch.mm(wide, tall)
        print("product", attempt)
    except RuntimeError as error:
        print("product refused", attempt, type(error).__name__, str(error).split("`")[0])
print("smaller", torch.mm(wide[:64], tall).numel())
"""


def operation_beyond_the_limit(rig):
    """What one operation names is larger than the limit: where evicted memory cannot be used in place, that is the driver's error, each
    time, in a product cuBLAS's, and the program goes on with what it had; otherwise it is done, slowly."""
    options, limit = ["--memory", "64MiB"], {"OFFLOAD_GPU_LIMIT": "18MiB"}  # and 24 MiB are named, 20 by the product
    refused = rig.must(LARGER, options, offload={**limit, "OFFLOAD_EVICTED": "unmapped"}, **SMALL_WORKSPACE)
    assert refused.out == "".join(f"refused {attempt} 2 CUDA error: out of memory\n" for attempt in range(2)) + \
        f"kept True 12\nsmaller {1 << 20}\n" + \
        "".join(f"product refused {attempt} RuntimeError CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling \n" for attempt in range(2)) + \
        f"smaller {64 << 10}\n", refused.out
    assert len(refused.lines_of_ours()) == 4 and all("what one operation names" in line for line in refused.lines_of_ours()), refused.said
    done = rig.must(LARGER, options, offload=limit, **SMALL_WORKSPACE)
    assert done.out.startswith("joined 0\njoined 1\n") and "product 0\nproduct 1\n" in done.out and done.report["in_place_operations"] > 0, done.out + str(done.report)
    assert len(done.lines_of_ours()) == 1 and "stay in host memory while it runs" in done.said, done.said


# Most of the limit is taken when a model of 144 MiB is loaded. transformers wants 1.2 GiB beside it, so all of this is large.
PLANNED = """
import sys, tempfile, torch, accelerate
from transformers import GPT2Config, GPT2LMHeadModel
held = [torch.empty(100 << 20, dtype=torch.uint8, device="cuda") for _ in range(12)]
sizes = GPT2Config(n_layer=12, n_embd=512, n_head=4, vocab_size=256, n_positions=64, bos_token_id=0, eos_token_id=0)
with tempfile.TemporaryDirectory() as folder:
    torch.manual_seed(1)
    GPT2LMHeadModel(sizes).save_pretrained(folder)
    free = torch.cuda.mem_get_info()[0] >> 20
    print("seen", accelerate.utils.get_max_memory()[0] >> 20 in (free - 2, free - 1, free), free)
    for name, how in ("auto", {}), ("more", {"max_memory": {0: "2GiB"}}), ("0", {}):
        model = GPT2LMHeadModel.from_pretrained(folder, device_map=0 if name == "0" else "auto", **how)
        print(name, *sorted({parameter.device.type for parameter in model.parameters()}))
        print("sum", model(torch.ones(1, 16, dtype=torch.long, device="cuda")).logits.float().sum().item().hex())
        del model
"""


@hugging_face
def planned_by_accelerate(rig):
    """device_map="auto" plans with what mem_get_info shows to be free, and leaves the rest to the CPU (PyTorch's "meta" until it is used);
    a number of a device, or max_memory, leaves it to liboffload. The model computes the same."""
    run = rig.must(PLANNED, ["--memory", "4GiB", "--granularity", "2MiB"],
                   offload={"OFFLOAD_GPU_LIMIT": "1300MiB", "OFFLOAD_MIN_SIZE": "4MiB"}, TQDM_DISABLE="1", PYTHONWARNINGS="ignore")
    assert re.match(r"seen True (9\d|100)\n", run.out), run.out
    lines = dict(zip(run.out.splitlines()[1::2], run.out.splitlines()[2::2]))
    assert list(lines) == ["auto cuda meta", "more cuda", "0 cuda"], run.out
    assert len(set(lines.values())) == 1, run.out
    assert run.report["bytes_out"] > 0 and not run.lines_of_ours(), run.said


TESTS = [as_without, under_a_cap, limit_is_the_whole, uncached_counts_nothing, batch_size_is_found, finder_by_text, operation_beyond_the_limit]

if __name__ == "__main__":
    sys.exit(main(TESTS, __doc__, longer=[finder_by_text_as_without, planned_by_accelerate]))
