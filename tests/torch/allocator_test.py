#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's allocator under liboffload: who may choose it, what is said, and what the stream-ordered one refuses.

    allocator_test.py --build DIR [name ...]      77: PyTorch is not there (make torch)"""

import pathlib
import sys
import tempfile
import threading

from rig import ROOT, main

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
            SUMS.append(rig.must_without(program(), ["--memory", "256MiB"]).values()["sum"])
    return SUMS[0]


# Keys are taken; another backend than the one that was loaded is PyTorch's own error.
SETTINGS = """
torch.cuda.memory._set_allocator_settings("expandable_segments:True")
try:
    torch.cuda.memory._set_allocator_settings("backend:native")
except RuntimeError as error:
    print("native", "native != cudaMallocAsync" in str(error))
"""


def nothing_set(rig):
    """And settings after the import."""
    seen = expect(rig, program(after=SETTINGS), "cudaMallocAsync", 48)
    assert seen["conf"] == "backend:cudaMallocAsync" and seen["native"] == "True", seen


def variable_of_the_shell(rig):
    """The keys stay, and ours is put before them."""
    seen = expect(rig, program(), "cudaMallocAsync", 48, **{CUDA_CONF: "expandable_segments:True"})
    assert seen["conf"] == "backend:cudaMallocAsync,expandable_segments:True", seen


SET_BY_THE_SCRIPT = 'os.environ["{}"] = "{}"'


def newer_variable(rig):
    """PyTorch prefers the older one, so what stands in the newer one is copied there; what the script sets there changes nothing."""
    by_script = SET_BY_THE_SCRIPT.format(CONF, "backend:native")
    seen = expect(rig, program(before=by_script), "cudaMallocAsync", 48, **{CONF: "max_split_size_mb:64"})
    assert seen["conf"] == "backend:cudaMallocAsync,max_split_size_mb:64", seen


def variable_of_the_script(rig):
    """Set before torch is imported it means what it would have meant in the shell; the script sees what it wrote."""
    seen = expect(rig, program(before=SET_BY_THE_SCRIPT.format(CUDA_CONF, "expandable_segments:True")), "cudaMallocAsync", 48)
    assert seen["conf"] == "expandable_segments:True", seen


FINDER = f"""
import os, runpy
{SET_BY_THE_SCRIPT.format(CUDA_CONF, "expandable_segments:True")}
seen = runpy.run_path({str(ROOT / "tests" / "torch" / "batch_finder.py")!r}, run_name="__main__")
print("peak", seen["torch"].cuda.max_memory_allocated() >> 20)
"""


def batch_size_is_found_by_such_a_script(rig):
    """Out of memory is the error that it looks for, as often as it takes, and nothing is left behind."""
    run = rig.must(FINDER, ["--memory", "24MiB"], offload={"OFFLOAD_HOST_LIMIT": "35MiB", "OFFLOAD_LOG": "info"}, **SMALL_WORKSPACE)
    seen = run.values()
    assert "\ntried 128\n" in run.out and int(seen["found"]) < 256 and int(seen["peak"]) > 24, run.out
    assert seen["left"] == "0" and run.report["bytes_out"] > 0, run.out
    assert "OFFLOAD_HOST_LIMIT" in run.said, run.said
    assert run.said.count("PyTorch's allocator is async: backend:cudaMallocAsync was put before what the program set") == 1, run.said


# The driver itself asked, which PyTorch's stream-ordered backend never does.
HANDLE = """
import ctypes
handle = (ctypes.c_char * 64)()
print("result", ctypes.CDLL("libcuda.so.1").cuIpcGetMemHandle(handle, ctypes.c_void_p(x.data_ptr())))
"""

UNCACHED = f"""
import torch
x = torch.ones(1 << 18, device="cuda")
{HANDLE}
tensors = []
try:
    while True: tensors.append(torch.full((1 << 18,), float(len(tensors))).cuda())
except Exception as error:
    print("error", type(error).__module__, type(error).__name__, str(error).splitlines()[0])
print("kept", all(bool((tensor.cpu() == index).all()) for index, tensor in enumerate(tensors)), len(tensors) > 20)
print("backend", torch.cuda.get_allocator_backend(), torch.cuda.memory_allocated())
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()): x + 1
except Exception as error:
    print("capture", type(error).__name__)
"""


def uncached(rig):
    """Memory moves, but PyTorch counts nothing, refuses a capture's memory, and its error is another when memory is out. What liboffload maps
    cannot be shared with a process, and a line says what helps."""
    run = rig.must(UNCACHED, CAP, offload={"OFFLOAD_PYTORCH_ALLOC": "uncached", "OFFLOAD_HOST_LIMIT": "16MiB"})
    assert "error torch AcceleratorError CUDA error: out of memory\nkept True True\nbackend native 0\ncapture AcceleratorError\n" in run.out, run.out
    assert run.report["bytes_out"] > 0 and "result 0" not in run.out, run.out
    lines = run.lines_of_ours()
    assert len(lines) == 2 and "OFFLOAD_PYTORCH_ALLOC=native" in lines[0] and "OFFLOAD_HOST_LIMIT" in lines[1], run.said


def native_is_left_alone(rig):
    """Chosen by the user, by the script or by our option: PyTorch's own error under the cap, the reason beside it, and nothing moved."""
    by_script = SET_BY_THE_SCRIPT.format(CUDA_CONF, "backend:native")
    for before, offload, settings in (("", {}, {CUDA_CONF: "backend:native"}), ("", {}, {CONF: "backend:native"}),
                                      ("", {"OFFLOAD_PYTORCH_ALLOC": "native"}, {}), (by_script, {}, {})):
        run = rig.run(program(before), CAP, offload=offload, **settings)
        assert run.status == 1 and "backend native" in run.out, run.out
        assert "torch.OutOfMemoryError: CUDA out of memory." in run.said, run.said
        assert run.lines_of_ours() and all("OFFLOAD_PYTORCH_ALLOC=native" in line for line in run.lines_of_ours()), run.said
        assert run.report["reason"] == "native_allocator" and run.report["bytes_out"] == 0, run.report


# What torch.compile(mode="reduce-overhead") is beside its kernels, which need Triton and so a GPU's compiler.
TREES = """
model = torch.nn.Linear(64, 64).cuda()
    f = torch.compile(model, backend="cudagraphs")
    for count in range(4):
        model.zero_grad()
        f(torch.ones(64, 64, device="cuda")).sum().backward()
"""

REFUSED = {
    "checkPoolLiveAllocations": TREES.strip(),
    "recordHistory": "torch.cuda.memory._record_memory_history()",
    "snapshot": "torch.cuda.memory._snapshot()",
    "createOrIncrefPool": "torch.cuda.MemPool()",
    # As to a process.
    "shareIpcHandle": "queue = multiprocessing.get_context('spawn').SimpleQueue(); queue.put(x)",
}
SNAPSHOT = "print('segments', len(torch.cuda.memory._snapshot()['segments']) > 0)"
POOL = "pool = torch.cuda.MemPool()\nwith torch.cuda.use_mem_pool(pool): y = torch.ones(1 << 18, device='cuda')\nprint('in pool', len(pool.snapshot()) > 0)"


def refusals(rig):
    """What the stream-ordered backend cannot do it refuses before the driver is asked anything: PyTorch's error, the same as without
    us, and one line of ours. All of it works with PyTorch's own cache, and the driver's own handles do. Other failed checks say nothing."""
    text = "import torch\nfrom torch import multiprocessing\nx = torch.ones(1 << 18, device='cuda')\n"
    for name, call in REFUSED.items():
        text += f"try:\n    {call}\n    print('{name} done')\nexcept RuntimeError as error:\n    print('{name}', 'cudaMallocAsync' in str(error))\n"
    without, on = rig.must_without(text), rig.must(text, offload={})
    assert on.out == without.out == "".join(f"{name} True\n" for name in REFUSED), on.out
    assert len(on.lines_of_ours()) == 1 and "OFFLOAD_PYTORCH_ALLOC=native has it" in on.said, on.said
    native = rig.must(text + HANDLE + SNAPSHOT + "\n" + POOL, ["--memory", "256MiB"],
                      offload={"OFFLOAD_PYTORCH_ALLOC": "native", "OFFLOAD_LOG": "info"})
    assert native.out == "".join(f"{name} done\n" for name in REFUSED) + "result 0\nsegments True\nin pool True\n", native.out + native.said
    assert "PyTorch's own cache hides its tensors: the driver serves it and nothing is moved" in native.said, native.said
    assert "PyTorch's allocator is native\n" in native.said, native.said
    other = rig.must("import torch\ntry:\n    torch.ones(3).cuda().reshape(5)\nexcept RuntimeError as error:\n    print(error)\n", offload={})
    assert other.out == "shape '[5]' is invalid for input of size 3\n" and not other.lines_of_ours(), other.out + other.said


# What torch.multiprocessing does with a tensor that is sent to another process, which reads it and writes to it.
SHARING = """
import torch, torch.multiprocessing
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
    queue.put(tensor)
    done.get()
    print("parent", tensor.tolist(), flush=True)
    done.put(1)
    process.join()
    print("ended", process.exitcode)
"""

def sharing_with_a_process(rig):
    """With PyTorch's own cache a tensor is shared as without us."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "sharing.py"
        file.write_text(SHARING)
        words = ["python", str(file)]
        without = rig.must(words, **{CUDA_CONF: "backend:native"})
        native = rig.must(words, offload={"OFFLOAD_PYTORCH_ALLOC": "native"})
        assert "child [3.0, 1.0, 4.0]" in without.out and "parent [0.0, 1.0, 2.0" in without.out and "ended 0" in without.out, without.out
        assert native.out == without.out and not native.lines_of_ours(), native.out + native.said


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
    without = rig.must_without(GRAPH, ["--memory", "256MiB"], BETWEEN="1", **SMALL_WORKSPACE)
    card = rig.without(GRAPH, ["--memory", SMALL_CARD], BETWEEN="1", **SMALL_WORKSPACE)
    assert card.status != 0 and "out of memory" in card.said.lower(), card.said
    on = rig.must(GRAPH, ["--memory", SMALL_CARD], offload={}, BETWEEN="1", **SMALL_WORKSPACE)
    assert on.out == without.out and not on.lines_of_ours(), on.out + without.out + on.said
    assert on.report["bytes_out"] > 0, on.report
    without = rig.must_without(GRAPH, ["--memory", "256MiB"], BETWEEN="1")
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
    without = rig.must_without(FALLS_BACK, options, TRIED="0", **SMALL_WORKSPACE)
    assert rig.without(FALLS_BACK, options, TRIED="1", **SMALL_WORKSPACE).status != 0
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
    without = rig.must_without(OTHERS_STREAM, options, FREED="0")
    assert rig.without(OTHERS_STREAM, options, FREED="1").status != 0
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
    assert rig.without(NEVER_LAUNCHED).status != 0
    on = rig.must(NEVER_LAUNCHED, offload={})
    assert on.out.startswith("goes on") and not on.lines_of_ours(), on.out + on.said


TESTS = [nothing_set, variable_of_the_shell, newer_variable, variable_of_the_script,
         batch_size_is_found_by_such_a_script, uncached, native_is_left_alone, native_within_the_limit, refusals, sharing_with_a_process, captured_step,
         capture_that_fails, graph_never_launched, stream_destroyed_first]

if __name__ == "__main__":
    sys.exit(main(TESTS, __doc__))
