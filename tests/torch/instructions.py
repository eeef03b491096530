# SPDX-License-Identifier: Apache-2.0
"""Instructions of a training step, by valgrind's callgrind: of the whole process, and of the program without what the driver does in its
thread, because the simulated one says nothing of a real one (its executor thread stands for the device). However busy the machine is, what
liboffload adds comes out the same again to about a tenth: stale words on the stack name other buffers."""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from rig import clean_environment

# Each step begins with zero_grad; the mark does nothing but to end callgrind's list of counts, of the thread that calls it alone. So the
# backward pass, too, is done by that thread.
STEPWISE = """
import runpy, sys, torch
torch.autograd.set_multithreading_enabled(False)
begin = torch.optim.Optimizer.zero_grad
def zero_grad(self, *words, **more):
    torch.cuda.cudart().cudaProfilerStart()
    return begin(self, *words, **more)
torch.optim.Optimizer.zero_grad = zero_grad
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
MARK = "cudaProfilerStart"
EXECUTOR = "simgpu::Engine::executor_main"
DRIVER = "libcuda.so.1"
WARM_UP = 2  # steps that are not counted: state is made, kernels are loaded
COUNTED = 2
STEPS = WARM_UP + COUNTED + 1
OPTIONS = ["--memory", "1GiB", "--check", "off"]
# What can be pinned is reserved beforehand, and valgrind has no room for all of a large machine's memory. The stack is as on a GPU: to
# empty it at each call would be most of what is counted.
SETTINGS = {"SIMGPU_PIN_LIMIT": "256MiB", "SIMGPU_WIPE_STACK": "0", "PYTHONHASHSEED": "0"}


class CannotCount(Exception):
    pass


def can_count():
    return shutil.which("valgrind") is not None


class Counts:
    """From some of callgrind's files (the format: "Callgrind Format Specification" in its manual): `all` of it, and `program` without
    the executor and without calls of the driver."""

    def __init__(self):
        self.all = self.program = 0

    def add(self, path):
        text = path.read_text()
        names, own, calls = {}, collections.Counter(), collections.Counter()
        library = called = None
        of_a_call = False
        for line in text.splitlines():
            if found := re.match(r"(c?)ob=\((\d+)\)(?: (.*))?$", line):
                of_the_callee, number, name = found.groups()
                if name:
                    names[number] = pathlib.Path(name).name
                if of_the_callee:
                    called = number
                else:
                    library = number
            elif line.startswith("calls="):
                of_a_call = True
            elif line[:1] in set("0123456789+-*"):
                count = int(line.split()[1])
                if not of_a_call:
                    own[library] += count
                elif called is not None and called != library:
                    calls[library, called] += count
                of_a_call, called = False, None
        total = sum(own.values())
        self.all += total
        if EXECUTOR not in text:
            self.program += total - sum(count for (caller, callee), count in calls.items()
                                        if names.get(callee) == DRIVER and names.get(caller) != DRIVER)


def of_a_step(rig, words, offload, **settings):
    """Counts of a mean step. `words`: a script and its options, but for --steps."""
    settings = {**SETTINGS, **settings}
    if offload is None:
        settings["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        counting = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--dump-before={MARK}", f"--callgrind-out-file={folder}/counts"]
        line = rig.command([*counting, "python", "-c", STEPWISE, *words, "--steps", str(STEPS)], folder, OPTIONS, offload, **settings)
        done = subprocess.run(line, env=clean_environment(rig.build), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotCount(f"train.py under valgrind ended with {done.returncode}: {done.stderr[-500:]}")
        # The first list is of all before the first step, the last of the last step and the end.
        counts, others = Counts(), Counts()
        for step in range(WARM_UP, WARM_UP + COUNTED):
            file = folder / f"counts.{step + 2}-01"
            if not file.exists():
                raise CannotCount(f"callgrind has no counts of step {step}: {sorted(os.listdir(folder))}")
            counts.add(file)
        for file in folder.glob("counts-*"):
            if not file.name.endswith("-01"):
                others.add(file)
    if others.program > counts.program / 4:
        raise CannotCount("another thread than the first has worked for the program")
    # What the device does is the mean of all steps.
    counts.all, counts.program = counts.all / COUNTED + others.all / STEPS, counts.program / COUNTED
    return counts
