#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's allocator under liboffload: who may choose it, what is said, and what the stream-ordered one refuses.

    allocator_test.py --build DIR [name ...]      77: PyTorch is not there (make torch)"""

import pathlib
import sys
import tempfile
import threading

from rig import main

CAP = ["--memory", "16MiB"]
SMALL_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "64"}
SMALL_CARD = "18MiB"  # on which the captured step's memory has to be made room for
CUDA_CONF = "PYTORCH_CUDA_ALLOC_CONF"
CONF = "PYTORCH_ALLOC_CONF"

# 48 MiB on a device of 16.
USE = """
print("backend", torch.cuda.get_allocator_backend())
print("conf", os.environ.get("PYTORCH_CUDA_ALLOC_CONF"))
tensors = [torch.full((1 << 18,), float(i), device="cuda") for i in range(24)]
doubled = [tensor * 2 for tensor in tensors]
print("allocated", torch.cuda.memory_allocated() >> 20)
print("sum", sum(tensor.sum().item() for tensor in doubled))
"""


def program(before="", after=""):
    return f"import os\n{before}\nimport torch\n{after}\n{USE}"


def expect(rig, text, backend, allocated, offload=None, **settings):
    """Trains under the cap, silently; returns the run."""
    run = rig.must(text, CAP, offload=offload or {}, **settings)
    seen = run.values()
    assert (seen["backend"], seen["allocated"]) == (backend, str(allocated)), run.out
    assert run.report["bytes_out"] > 0, run.report
    assert not run.lines_of_ours(), run.said
    assert seen["sum"] == sum_with_room(rig)
    return seen


WITH_ROOM = threading.Lock()
SUMS = []


def sum_with_room(rig):
    """What all of them should print, without liboffload."""
    with WITH_ROOM:
        if not SUMS:
            SUMS.append(rig.must(program(), ["--memory", "256MiB"]).values()["sum"])
    return SUMS[0]


def nothing_set(rig):
    seen = expect(rig, program(), "cudaMallocAsync", 48)
    assert seen["conf"] == "backend:cudaMallocAsync", seen


def variable_of_the_shell(rig):
    """The keys stay, and ours is put before them."""
    seen = expect(rig, program(), "cudaMallocAsync", 48, **{CUDA_CONF: "expandable_segments:True"})
    assert seen["conf"] == "backend:cudaMallocAsync,expandable_segments:True", seen


def newer_variable_of_the_shell(rig):
    """PyTorch prefers the older one, so what stands in the newer one is copied there."""
    seen = expect(rig, program(), "cudaMallocAsync", 48, **{CONF: "max_split_size_mb:64"})
    assert seen["conf"] == "backend:cudaMallocAsync,max_split_size_mb:64", seen


def variable_of_the_script(rig):
    """Set before torch is imported it replaces ours; then each tensor comes from cudaMalloc, and PyTorch counts nothing."""
    for value in "expandable_segments:True", "backend:native":
        expect(rig, program(before=f'os.environ["{CUDA_CONF}"] = "{value}"'), "native", 0)
    for value in "expandable_segments:True", "backend:native":  # PyTorch prefers the older variable, which is ours
        expect(rig, program(before=f'os.environ["{CONF}"] = "{value}"'), "cudaMallocAsync", 48)


def settings_after_import(rig):
    """Keys are taken; another backend than the one that was loaded is PyTorch's own error."""
    text = program(after='torch.cuda.memory._set_allocator_settings("{}")')
    expect(rig, text.format("expandable_segments:True"), "cudaMallocAsync", 48)
    run = rig.run(text.format("backend:native"), CAP, offload={})
    assert run.status == 1 and "native != cudaMallocAsync" in run.said, run.said


def native_is_left_alone(rig):
    """Chosen by the user or by our option: PyTorch's own error under the cap, the reason beside it, and nothing moved."""
    for offload, settings in ({}, {CUDA_CONF: "backend:native"}), ({}, {CONF: "backend:native"}), ({"OFFLOAD_PYTORCH_ALLOC": "native"}, {}):
        run = rig.run(program(), CAP, offload=offload, **settings)
        assert run.status == 1 and "backend native" in run.out, run.out
        assert "torch.OutOfMemoryError: CUDA out of memory." in run.said, run.said
        assert run.lines_of_ours() and all("OFFLOAD_PYTORCH_ALLOC=native" in line for line in run.lines_of_ours()), run.said
        assert run.report["reason"] == "native_allocator" and run.report["bytes_out"] == 0, run.report
    run = rig.must(program(), ["--memory", "256MiB"], offload={"OFFLOAD_PYTORCH_ALLOC": "native", "OFFLOAD_LOG": "info"})
    assert "PyTorch's own cache hides its tensors: the driver serves it and nothing is moved" in run.said, run.said


# What torch.compile(mode="reduce-overhead") is beside its kernels, which need Triton and so a GPU's compiler.
TREES = """
f = torch.compile(torch.nn.Linear(64, 64).cuda(), backend="cudagraphs")
    for count in range(4): f(torch.ones(64, 64, device="cuda")).sum().backward()
"""

REFUSED = {
    "checkPoolLiveAllocations": TREES.strip(),
    "recordHistory": "torch.cuda.memory._record_memory_history()",
    "snapshot": "torch.cuda.memory._snapshot()",
    "createOrIncrefPool": "torch.cuda.MemPool()",
    "shareIpcHandle": "x.untyped_storage()._share_cuda_()",
}


def refusals(rig):
    """What the stream-ordered backend cannot do it refuses before the driver is asked anything: PyTorch's error and no line of ours,
    the same as without us. The first three work with PyTorch's own cache."""
    text = "import torch\nx = torch.ones(1 << 18, device='cuda')\n"
    for name, call in REFUSED.items():
        text += f"try:\n    {call}\n    print('{name} done')\nexcept RuntimeError as error:\n    print('{name}', 'cudaMallocAsync' in str(error))\n"
    without, on = rig.must(text), rig.must(text, offload={})
    assert on.out == without.out and on.out.count("True") == len(REFUSED), on.out
    assert not on.lines_of_ours(), on.said
    native = rig.run(text, offload={"OFFLOAD_PYTORCH_ALLOC": "native"})
    assert native.out.count("done") >= 3, native.out + native.said


# What torch.multiprocessing does with a tensor that is sent to another process, which reads it and writes to it.
SHARING = """
import sys, torch, torch.multiprocessing
def child(queue, done):
    tensor = queue.get()
    print("child", tensor[:3].tolist(), flush=True)
    tensor.copy_(torch.arange(8.0))
    torch.cuda.synchronize()
    done.put(1)
    done.get()
    del tensor
if __name__ == "__main__":
    context = torch.multiprocessing.get_context("spawn")
    queue, done = context.SimpleQueue(), context.SimpleQueue()
    tensor = torch.tensor([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0], device="cuda")
    process = context.Process(target=child, args=(queue, done))
    process.start()
    try:
        queue.put(tensor)
    except RuntimeError as error:
        print("refused", str(error).splitlines()[0])
        process.terminate()
        sys.exit()
    done.get()
    print("parent", tensor.tolist(), flush=True)
    done.put(1)
    process.join()
    print("ended", process.exitcode)
"""

# The driver itself asked, which PyTorch's stream-ordered backend never does.
HANDLE = """
import ctypes, torch
x = torch.ones(1 << 18, device="cuda")
handle = (ctypes.c_char * 64)()
print("result", ctypes.CDLL("libcuda.so.1").cuIpcGetMemHandle(handle, ctypes.c_void_p(x.data_ptr())))
"""


def sharing_with_a_process(rig):
    """With PyTorch's own cache a tensor is shared as without us; what liboffload maps cannot be, and the one line says what helps."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "sharing.py"
        file.write_text(SHARING)
        words = ["python", str(file)]
        without = rig.must(words, **{CUDA_CONF: "backend:native"})
        native = rig.must(words, offload={"OFFLOAD_PYTORCH_ALLOC": "native"})
        assert "child [3.0, 1.0, 4.0]" in without.out and "parent [0.0, 1.0, 2.0" in without.out and "ended 0" in without.out, without.out
        assert native.out == without.out and not native.lines_of_ours(), native.out + native.said
        refused = rig.must(words, offload={})
        assert "refused cudaMallocAsync does not yet support shareIpcHandle" in refused.out and not refused.lines_of_ours(), refused.out + refused.said
    managed = rig.must(HANDLE, offload={"OFFLOAD_PYTORCH_ALLOC": "uncached"})
    assert "result 0" not in managed.out, managed.out
    assert len(managed.lines_of_ours()) == 1 and "OFFLOAD_PYTORCH_ALLOC=native" in managed.said, managed.said
    native = rig.must(HANDLE, offload={"OFFLOAD_PYTORCH_ALLOC": "native"})
    assert "result 0" in native.out and not native.lines_of_ours(), native.out + native.said


LIMITED = """
import torch
def free():
    free, total = torch.cuda.mem_get_info()
    assert total == 64 << 20, total
    return free >> 20
torch.cuda.init()
print("first", free())
tensors = [torch.full((5 << 20,), float(i), device="cuda") for i in range(2)]
print("reserved", torch.cuda.memory_reserved() >> 20, "free", free())
try:
    torch.empty(30 << 20, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    print("caught")
del tensors[0]
torch.cuda.empty_cache()
print("one", torch.cuda.memory_reserved() >> 20, "free", free())
print("again", torch.empty(30 << 20, dtype=torch.uint8, device="cuda").numel() >> 20)
"""


def native_within_the_limit(rig):
    """The driver serves, by cudaMalloc or in expandable segments; OFFLOAD_GPU_LIMIT holds, and PyTorch is told what is left."""
    for keys in "", "expandable_segments:True":
        run = rig.must(LIMITED, ["--memory", "256MiB"], offload={"OFFLOAD_PYTORCH_ALLOC": "native", "OFFLOAD_GPU_LIMIT": "64MiB"}, **{CUDA_CONF: keys})
        assert run.out == "first 64\nreserved 40 free 24\ncaught\none 20 free 44\nagain 30\n", keys + run.out
        assert len(run.lines_of_ours()) >= 1 and all("OFFLOAD_PYTORCH_ALLOC=native" in line for line in run.lines_of_ours()), run.said
        assert run.report["peak_bytes_with"] <= 64 << 20 and run.report["bytes_out"] == 0, run.report


# Some steps without a graph, whose activations do not fit under the cap; then one step is captured and replayed.
GRAPH = """
import hashlib, os, torch
torch.manual_seed(1)
model = torch.nn.Sequential(*(layer for _ in range(8) for layer in (torch.nn.Linear(64, 64), torch.nn.GELU()))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def step(batch):
    optimizer.zero_grad(set_to_none=True)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    return loss
for count in range(3):
    print("eager", step(torch.full((4096, 64), float(count), device="cuda")).item().hex())
batch = torch.ones(64, 64, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step(batch)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = step(batch)
for count in range(3):
    batch.fill_(float(count))
    graph.replay()
    print("replayed", loss.item().hex())
    if os.environ["BETWEEN"] == "1":
        print("between", step(torch.full((4096, 64), count + 0.5, device="cuda")).item().hex())
print("weights", hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest())
"""


def captured_step(rig):
    """A training step in a CUDA graph computes the same, with room, and where memory moves before it is captured and between its
    replays; also on a card that has no more, where the launch has to be given memory for what the graph allocates."""
    without = rig.must(GRAPH, ["--memory", "256MiB"], BETWEEN="1", **SMALL_WORKSPACE)
    card = rig.run(GRAPH, ["--memory", SMALL_CARD], BETWEEN="1", **SMALL_WORKSPACE)
    assert card.status != 0 and "out of memory" in card.said.lower(), card.said
    on = rig.must(GRAPH, ["--memory", SMALL_CARD], offload={}, BETWEEN="1", **SMALL_WORKSPACE)
    assert on.out == without.out and not on.lines_of_ours(), on.out + without.out + on.said
    assert on.report["bytes_out"] > 0, on.report
    without = rig.must(GRAPH, ["--memory", "256MiB"], BETWEEN="1")
    for schedule, limit in ("fifo", "100%"), ("fifo", "12MiB"), ("late", "12MiB"):
        options = ["--memory", "256MiB", "--schedule", schedule]
        on = rig.run(GRAPH, options, offload={"OFFLOAD_GPU_LIMIT": limit}, BETWEEN="1")
        assert on.status == 0 and on.out == without.out, on.out + without.out + on.said
        assert not on.lines_of_ours(), on.said
        if limit == "100%":
            assert on.report["bytes_out"] == 0, on.report
            continue
        before = rig.must(GRAPH, options, offload={"OFFLOAD_GPU_LIMIT": limit}, BETWEEN="0")
        assert on.report["bytes_out"] > before.report["bytes_out"] > 0, (on.report, before.report)
        print(schedule, {cause: wait for cause, wait in on.report["host_waits"].items() if wait["count"]})


# A script that tries a graph and goes on without. The stream has computed products before: what PyTorch's products need beside their
# operands is allocated at the first on a stream, and must not be memory of the graph that never was.
FALLS_BACK = """
import gc, os, torch
torch.manual_seed(1)
model = torch.nn.Sequential(*(layer for _ in range(4) for layer in (torch.nn.Linear(64, 64), torch.nn.GELU()))).cuda()
batch, stream = torch.ones(4096, 64, device="cuda"), torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    model(batch).sum().item()
    if os.environ["TRIED"] == "1":
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
                result = model(batch)
                result.sum().item()
        except RuntimeError as error:
            print("caught", type(error).__name__)
        result = None
        gc.collect()
    for count in range(3):
        loss = model(torch.full((4096, 64), float(count), device="cuda")).square().mean()
        loss.backward()
        print("eager", loss.item().hex(), model[0].weight.grad.sum().item().hex())
"""


def capture_that_fails(rig):
    """PyTorch's own cache survives that; its stream-ordered backend ends the process when it frees what was captured, but for
    liboffload's answer."""
    options = ["--memory", "256MiB"]
    without = rig.must(FALLS_BACK, options, TRIED="0", **SMALL_WORKSPACE)
    assert rig.run(FALLS_BACK, options, TRIED="1", **SMALL_WORKSPACE).status != 0
    for limit in "100%", "10MiB":
        on = rig.must(FALLS_BACK, options, offload={"OFFLOAD_GPU_LIMIT": limit}, TRIED="1", **SMALL_WORKSPACE)
        assert on.out == "caught AcceleratorError\n" + without.out, on.out + without.out
        assert not on.lines_of_ours() and (on.report["bytes_out"] > 0) == (limit != "100%"), on.said


# Another library's stream, which that library destroys while PyTorch has tensors that were born on it.
OTHERS_STREAM = """
import ctypes, os, torch
runtime, kept = ctypes.CDLL("libcudart.so.13"), []
for count in range(4):
    stream = ctypes.c_void_p()
    assert runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1) == 0
    with torch.cuda.stream(torch.cuda.ExternalStream(stream.value)):
        kept += [torch.full((1 << 16,), float(8 * count + i), device="cuda") * 2 for i in range(8)]
    torch.cuda.synchronize()
    assert runtime.cudaStreamDestroy(stream) == 0
    if os.environ["FREED"] == "1":
        del kept[:4]
        print("allocated", torch.cuda.memory_allocated() >> 20)
print("sum", sum(tensor.sum().item() for tensor in kept[-16:]).hex(), flush=True)
if os.environ["FREED"] == "0":
    os._exit(0)  # what is kept is not freed
"""


def stream_destroyed_first(rig):
    """PyTorch's own cache does not ask about it; its stream-ordered backend frees on that stream, and ends the process when the driver
    refuses."""
    options = ["--memory", "256MiB"]
    without = rig.must(OTHERS_STREAM, options, FREED="0")
    assert rig.run(OTHERS_STREAM, options, FREED="1").status != 0
    for limit in "100%", "3MiB":
        on = rig.must(OTHERS_STREAM, options, offload={"OFFLOAD_GPU_LIMIT": limit}, FREED="1")
        assert on.out == "allocated 1\nallocated 2\nallocated 3\nallocated 4\n" + without.out, on.out + without.out
        assert not on.lines_of_ours() and (on.report["bytes_out"] > 0) == (limit != "100%"), on.said


NEVER_LAUNCHED = """
import gc, torch
x, stream = torch.ones(256, 64, device="cuda"), torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = x * 2
del result, graph
gc.collect()
print("goes on", (x * 2).sum().item().hex())
"""


def graph_never_launched(rig):
    """What it would have allocated is freed without ever having been there."""
    assert rig.run(NEVER_LAUNCHED).status != 0
    on = rig.must(NEVER_LAUNCHED, offload={})
    assert on.out.startswith("goes on") and not on.lines_of_ours(), on.out + on.said


TESTS = [nothing_set, variable_of_the_shell, newer_variable_of_the_shell, variable_of_the_script, settings_after_import,
         native_is_left_alone, native_within_the_limit, refusals, sharing_with_a_process, captured_step,
         capture_that_fails, graph_never_launched, stream_destroyed_first]

if __name__ == "__main__":
    sys.exit(main(TESTS, __doc__))
