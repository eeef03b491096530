#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What happens to a process besides training: forks, children that die, signals, errors that are caught, a profiler. As without
liboffload, and the training that goes on has the same results.

    life_test.py --build DIR [name ...]      77: PyTorch is not there (make torch)"""

import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from rig import clean_environment, main

CAP = {"OFFLOAD_GPU_LIMIT": "4MiB"}
ROOM = ["--memory", "256MiB"]
SMALL_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "64"}

# Some steps of a model whose activations do not fit under the cap. What torch.optim does is tried elsewhere; to import it takes long.
TRAIN = """
import hashlib, os, sys, torch
torch.manual_seed(1)
def make():
    model = torch.nn.Sequential(*(layer for _ in range(6) for layer in (torch.nn.Linear(64, 64), torch.nn.GELU()))).cuda()
    return model, list(model.parameters())
def step(model, parameters, count):
    for parameter in parameters:
        parameter.grad = None
    loss = model(torch.full((2048, 64), float(count), device="cuda")).square().mean()
    loss.backward()
    with torch.no_grad():
        torch._foreach_add_(parameters, [parameter.grad for parameter in parameters], alpha=-0.01)
    return loss.item().hex()
def weights(model):
    return hashlib.sha256(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())).hexdigest()
"""


def same(rig, text, moved=True, status=0, **settings):
    """The program's output and exit status, on and off; returns both runs."""
    settings.update(SMALL_WORKSPACE)
    without = rig.run(text, ROOM, **settings)
    on = rig.run(text, ROOM, offload=CAP, **settings)
    assert (on.status, on.out) == (without.status, without.out), f"{on.status}:\n{on.out}{on.said}\ninstead of {without.status}:\n{without.out}{without.said}"
    assert on.status == status, on.said
    assert not on.lines_of_ours(), on.said
    if moved:
        assert on.report["bytes_out"] > 0, on.report
    return without, on


def fork_before_cuda(rig):
    """Children forked after the import each train for themselves."""
    with tempfile.TemporaryDirectory() as folder:
        same(rig, TRAIN + """
children = []
for child in range(2):
    children.append(os.fork())
    if children[-1] == 0:
        model, parameters = make()
        results = [step(model, parameters, count) for count in range(2)]
        with open(f"{os.environ['FOLDER']}/{child}", "w") as file:
            file.write(" ".join(results))
        sys.exit(0)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
print([open(f"{os.environ['FOLDER']}/{child}").read() for child in range(2)])
model, parameters = make()
print([step(model, parameters, count) for count in range(2)], weights(model))
""", FOLDER=folder)


def fork_after_cuda(rig):
    """PyTorch refuses CUDA in a child forked after its first use; the parent goes on, and the child may do all else and end."""
    without, _ = same(rig, TRAIN + """
model, parameters = make()
print([step(model, parameters, count) for count in range(2)])
sys.stdout.flush()
child = os.fork()
if child == 0:
    try:
        torch.ones(8, device="cuda")
    except RuntimeError as error:
        print(str(error)[:40])
    print(torch.ones(8).sum().item(), flush=True)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print([step(model, parameters, count) for count in range(2)], weights(model))
""")
    assert "Cannot re-initialize CUDA" in without.out, without.out


def spawned(rig):
    """torch.multiprocessing starts a fresh process, which brings liboffload along."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "spawning.py"
        file.write_text(TRAIN + """
import torch.multiprocessing
def child(queue):
    model, parameters = make()
    queue.put([step(model, parameters, count) for count in range(2)])
if __name__ == "__main__":
    context = torch.multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
    model, parameters = make()
    print(process.exitcode, [step(model, parameters, count) for count in range(2)])
""")
        same(rig, ["python", str(file)])


def data_loader_worker_dies(rig):
    """PyTorch's own error, caught, and training goes on."""
    without, _ = same(rig, TRAIN + """
import signal
from torch.utils.data import DataLoader, Dataset
class Dying(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((64,), float(index))
model, parameters = make()
print(step(model, parameters, 1))
try:
    for batch in DataLoader(Dying(), batch_size=2, num_workers=1, pin_memory=True):
        model(batch.cuda())  # how many come before the worker dies, nobody knows
except RuntimeError as error:
    print("exited unexpectedly" in str(error))
print(step(model, parameters, 2), weights(model))
""")
    assert "True" in without.out, without.out


def exception_in_backward(rig):
    """Thrown on the thread of the backward pass, caught, and training goes on."""
    without, _ = same(rig, TRAIN + """
class Failing(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        raise ValueError("on purpose")
model, parameters = make()
print(step(model, parameters, 1))
half = model[:6](torch.ones(2048, 64, device="cuda"))
loss = model[6:](Failing.apply(half)).sum()
try:
    loss.backward()
except ValueError as error:
    print(error)
del loss, half
print(step(model, parameters, 2), weights(model))
""")
    assert "on purpose" in without.out


OUT_OF_MEMORY = """
model, parameters = make()
print(step(model, parameters, 1))
try:
    torch.empty(1 << 40, device="cuda")
except torch.OutOfMemoryError:
    print("caught")
print(step(model, parameters, 2), weights(model))
"""


def out_of_memory_is_caught(rig):
    """More than there is, then on with what there was."""
    without = rig.must(TRAIN + OUT_OF_MEMORY, ROOM, **SMALL_WORKSPACE)
    on = rig.must(TRAIN + OUT_OF_MEMORY, ROOM, offload=CAP, **SMALL_WORKSPACE)
    assert on.out == without.out and "caught" in on.out, on.out
    assert len(on.lines_of_ours()) == 1 and "out of memory" in on.said, on.said


LOST = """
model, parameters = make()
print(step(model, parameters, 1))
class Wrong:
    # What another library may hand over: a pointer, and a shape that reaches far beyond it.
    __cuda_array_interface__ = {"shape": (8192, 8192), "typestr": "<f4", "data": (parameters[0].data_ptr(), False), "version": 3}
wrong, other = torch.as_tensor(Wrong(), device="cuda"), torch.ones(8192, 4, device="cuda")
product = wrong @ other  # nothing is freed after that: PyTorch ends the process where it cannot free
for call in torch.cuda.synchronize, lambda: torch.ones(4, device="cuda"), lambda: parameters[1].cpu():
    try:
        call()
        print("nothing")
    except torch.AcceleratorError as error:
        print(error.error_code, str(error).splitlines()[0], flush=True)
"""


def context_is_lost(rig):
    """A kernel of the program's touches what is not its: torch.AcceleratorError from then on, and the end that PyTorch makes of it, which
    cannot free its tensors any more. liboffload says one line at most."""
    without = rig.run(TRAIN + LOST, ROOM, **SMALL_WORKSPACE)
    on = rig.run(TRAIN + LOST, ROOM, offload=CAP, **SMALL_WORKSPACE)
    assert without.out.count("700 CUDA error: an illegal memory access was encountered") == 3, without.out + without.said
    assert (on.status, on.out) == (without.status, without.out), f"{on.status}:\n{on.out}{on.said}"
    assert without.status == -signal.SIGABRT, without.said
    assert len(on.lines_of_ours()) <= 1 and all("the context is lost" in line for line in on.lines_of_ours()), on.said


def interrupted(rig):
    """Ctrl-C in the middle: Python ends itself by the same signal, so no exit handler runs, ours neither."""
    text = TRAIN + """
model, parameters = make()
for count in range(1 << 30):
    step(model, parameters, count)
    if count == 2:
        print("going", flush=True)
"""
    ends = []
    for offload in None, CAP:
        with tempfile.TemporaryDirectory() as folder:
            settings = dict(SMALL_WORKSPACE, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
            process = subprocess.Popen(rig.command(["python", "-c", text], folder, ROOM, offload, **settings), env=clean_environment(rig.build),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                assert process.stdout.readline() == "going\n"
                time.sleep(0.2)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
            finally:
                process.kill()
            assert "KeyboardInterrupt" in err and "liboffload" not in err, err
            ends.append((process.returncode, out))
    assert ends[0] == ends[1] == (-signal.SIGINT, ""), ends


def profiled(rig):
    """torch.profiler sees the same operators, and training has the same results."""
    same(rig, TRAIN + """
from torch.profiler import ProfilerActivity, profile
model, parameters = make()
print(step(model, parameters, 1))
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as seen:
    print(step(model, parameters, 2))
rows = {row.key: row.count for row in seen.key_averages()}
print(sorted((key, count) for key, count in rows.items() if key.startswith("aten::")))
print(step(model, parameters, 3), weights(model))
""")


TESTS = [fork_before_cuda, fork_after_cuda, spawned, data_loader_worker_dies, exception_in_backward, out_of_memory_is_caught, context_is_lost,
         interrupted, profiled]

if __name__ == "__main__":
    sys.exit(main(TESTS, __doc__))
