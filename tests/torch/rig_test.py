#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rig on which PyTorch's stock wheel runs without a GPU: what it maps, what it computes, what it refuses.

    rig_test.py --build DIR [name ...]

Each test is a small program, run on the simulated GPU in a process of its own. 77: PyTorch is not there (make torch)."""

import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile

from rig import ROOT, SKIPPED, TIMEOUT_S, Rig, clean_environment, main, missing

SMALL_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "64"}


def mapped_libraries(out):
    """Of what stands after MAPS, those whose names are a toolkit's or a driver's. (cuDNN and others of the wheel's own begin with
    "lib(torch|c10)_"; ld.so may show a deleted file's name.)"""
    paths = {pathlib.Path(row.split()[5]) for row in out.split("MAPS")[1].splitlines() if len(row.split()) > 5}
    return {path for path in paths if re.match(r"lib(cu[a-z]|nv|nccl|accinj)", path.name)}


def only_stand_ins(rig):
    """No library of an installed toolkit or driver is mapped after everything has been called."""
    out = rig.must("""
import torch, torch.nn.functional as F
x = torch.randn(8, 8, device="cuda")
y = F.linear(x, x, x[0]) @ x
torch.backends.cudnn.version()
print(torch.linalg.inv.__name__, y.sum().item())
print("MAPS")
print(open("/proc/self/maps").read())
""").out
    suspects = mapped_libraries(out)
    foreign = {path for path in suspects if not str(path).startswith(str(rig.build / "simgpu"))}
    assert not foreign, f"mapped, and not ours: {foreign}"
    names = {path.name for path in suspects}
    for expected in ("libcuda.so.1", "libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9"):
        assert expected in names, f"{expected} is not among {sorted(names)}"


def versions(rig):
    out = rig.must("""
import torch
print(torch.__version__, torch.backends.cudnn.version(), torch.cuda.get_device_capability(), torch.cuda.device_count())
""").out
    assert out.split(None, 1)[1].strip() == "91900 (8, 0) 1", out


def products(rig):
    """SIMGPU_GEMM=compute: what cuBLAS and cuBLASLt are asked for comes out as on the CPU. No other kernel runs."""
    rig.must("""
import torch, torch.nn.functional as F
torch.manual_seed(1)
def near(got, expected, tolerance):
    error = (got.cpu().float() - expected.float()).abs().max().item()
    assert error < tolerance, (error, got.cpu(), expected)
for kind, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.1), (torch.float16, 0.02), (torch.float64, 1e-4)):
    a, b, bias = (torch.randn(*size).to(kind) for size in ((9, 5), (5, 7), (7,)))
    exact = a.double() @ b.double()
    c, d = torch.randn(4, 3, 5).to(kind), torch.randn(4, 5, 6).to(kind)
    moved = [x.cuda() for x in (a, b, bias, c, d)]
    near(moved[0] @ moved[1], exact, tolerance)
    near(moved[1].t() @ moved[0].t(), exact.t(), tolerance)
    near(torch.bmm(moved[3], moved[4]), torch.bmm(c.double(), d.double()), tolerance)
    if kind != torch.float64:
        weight = b.t().contiguous()
        near(F.linear(moved[0], weight.cuda(), moved[2]), exact + bias.double(), tolerance)
""", SIMGPU_GEMM="compute")


def one_wrong_element(rig):
    """By default a product's result depends on every element that goes in."""
    out = rig.must("""
import torch
a = torch.arange(64.).reshape(8, 8)
b = a.clone()
b[7, 7] += 1
one, two, again = ((x.cuda() @ a.cuda()).cpu() for x in (a, b, a))
print((one == again).all().item(), (one == two).any().item())
""").out
    assert out.split() == ["True", "False"], out


def refusals(rig):
    """What is not modelled says its name once and ends as PyTorch's own error."""
    run = rig.run("""
import torch
x = torch.ones(8, device="cuda")
for _ in range(2):
    try:
        torch.fft.fft(x)
    except RuntimeError as error:
        print("caught", str(error)[:60])
""")
    assert run.status == 0, run.said
    assert run.out.count("caught cuFFT error") == 2, run.out
    assert run.said.count("is not modelled") == 1 and "cufftCreate" in run.said, run.said


def out_of_memory(rig):
    out = rig.must("""
import torch
try:
    x = torch.empty(1 << 30, device="cuda")
except torch.OutOfMemoryError as error:
    print("caught", "out of memory" in str(error))
y = torch.ones(1024, device="cuda")
print(torch.cuda.memory_allocated())
""", ["--memory", "64MiB"]).out
    assert out.split() == ["caught", "True", "4096"], out


STALE = """
import torch
ones = [torch.ones(1000 + i, device="cuda") for i in range(40)]
for step in range(20):
    more = [torch.ones(2000 + i, device="cuda") for i in range(30)]
    torch._foreach_add_(ones, 1.0)
    torch.cat(more).sum().item()
    torch._foreach_mul_(more, ones[:30][0][0].item())
    del more
"""


def empty_stack(rig):
    """Launches name nothing that is dead, and that is because the stack is emptied: without that they do."""
    wiped = rig.must(STALE).counts
    assert wiped["names"] > 1000, wiped
    assert wiped["dead_names"] == 0, wiped
    again = rig.must(STALE).counts
    assert wiped["names_hash"] == again["names_hash"]
    dirty = rig.must(STALE, SIMGPU_WIPE_STACK="0").counts
    assert dirty["dead_names"] > 0, "launches name no dead address on a full stack either, so this test shows nothing"


def training_changes_everything(rig):
    """One byte of one weight, and the run ends elsewhere."""
    program = """
import sys
sys.argv = ["train.py", "--layers", "2", "--width", "32", "--heads", "2", "--sequence", "32", "--batch", "4", "--steps", "2"]
import torch, runpy
if {change}:
    real = torch.nn.Module.to
    def to(self, *words):
        with torch.no_grad():
            self.blocks[0].wide.bias[17] += 0.001
        return real(self, *words)
    torch.nn.Module.to = to
runpy.run_path({path!r}, run_name="__main__")
"""
    path = str(ROOT / "tests" / "torch" / "train.py")
    runs = [rig.must(program.format(change=change, path=path)).out for change in (False, False, True)]
    assert runs[0] == runs[1]
    weights = [next(row for row in run.splitlines() if row.startswith("weights")) for run in runs]
    assert weights[0] != weights[2], weights


# PyTorch opens by path what it finds, once there is a libcudart in the process (torch._preload_cuda_deps). It wants these too, which
# have no stand-in, and does not open that one.
UNUSED = ["libnvrtc-builtins.so.13.0", "libnvJitLink.so.13"]
NOT_OPENED = {"libnvidia-ml.so.1"}
LOADED = "a decoy's load-time code: "
DECOY = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void load(void) {
  if (getenv("DECOYS_TELL")) fputs(TEXT, stderr);
}
"""


@contextlib.contextmanager
def nvidia_packages(rig):
    """A Rig in whose build folder NVIDIA's packages are installed beside PyTorch: libraries of which there is load-time code only,
    which tells its name with DECOYS_TELL."""
    with tempfile.TemporaryDirectory(dir=rig.build) as name:
        folder = pathlib.Path(name)
        subprocess.run(["cp", "-al", str((rig.build / "torch-venv").resolve()), str(folder / "torch-venv")], check=True)
        for name in "simgpu", "liboffload.so", "offload":
            (folder / name).symlink_to(rig.build / name)
        packages, = (folder / "torch-venv").glob("lib/python3*/site-packages")
        decoys = packages / "nvidia" / "cu13" / "lib"
        decoys.mkdir(parents=True)
        stand_ins = [rig.build / "simgpu" / "libcudart.so.13", *(rig.build / "simgpu" / "torch").glob("lib*.so.[0-9]*")]
        for library in [file.name for file in stand_ins] + UNUSED:
            subprocess.run(["gcc", "-shared", "-fPIC", f'-DTEXT="{LOADED}{library}\\n"', "-o", str(decoys / library), f"-Wl,-soname,{library}", "-x", "c", "-"],
                           input=DECOY, text=True, check=True)
        other = Rig(folder)
        other.build = folder  # as it is named, not where its links lead
        yield other


def beside_nvidia_packages(rig):
    """Where PyTorch's own search path finds other libraries first, the stand-ins are called all the same. PyTorch opens the others by
    path, so they are mapped too, and their load-time code runs; nothing else of them does, because there is nothing else."""
    program = """
import torch
x = torch.randn(8, 8, device="cuda")
print((x @ x).shape)
print("MAPS")
print(open("/proc/self/maps").read())
"""
    with nvidia_packages(rig) as other:
        for offload in None, {}:
            run = other.must(program, offload=offload, DECOYS_TELL="1")
            assert "[8, 8]" in run.out and (offload is None or run.report["launches"] > 0), run.out + run.said
            mapped = mapped_libraries(run.out)
            stand_ins = {path.name for path in mapped if path.is_relative_to(rig.build / "simgpu")}
            decoys = {path.name for path in mapped if "nvidia" in path.parts and path.is_relative_to(other.build)}
            foreign = [path for path in mapped if not path.is_relative_to(rig.build / "simgpu") and not path.is_relative_to(other.build)]
            assert not foreign, f"mapped, and neither ours nor of PyTorch's search path: {foreign}"
            loaded = {line.removeprefix(LOADED) for line in run.said.splitlines() if line.startswith(LOADED)}
            made = {path.name for path in other.build.glob("torch-venv/lib/python3*/site-packages/nvidia/cu13/lib/*")}
            assert decoys == loaded == made - NOT_OPENED, f"mapped: {decoys}, with load-time code run: {loaded}"
            assert decoys - stand_ins == set(UNUSED), f"no stand-in of that name is mapped: {decoys - stand_ins}"
        run = other.run(program, LD_PRELOAD="")
        assert run.status != 0 and "undefined symbol" in run.said, f"{run.said}\nthe decoys were not found first, so this test shows nothing"


def scripts_beside_nvidia_packages(rig):
    """The gate and the demonstration keep what is preloaded there."""
    with nvidia_packages(rig) as other:
        for line in [sys.executable, ROOT / "tests" / "torch" / "gate.py", "--build", other.build, "one", "cap=60"], \
                [ROOT / "scripts" / "demo_torch.sh", other.build]:
            environment = clean_environment(other.build)
            environment.update(CAP="70", OFFLOAD_MIN_SIZE="256KiB", TRAIN_OPTIONS="--layers 3 --width 192 --sequence 192 --batch 8 --steps 2", **SMALL_WORKSPACE)
            done = subprocess.run(list(map(str, line)), env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            assert done.returncode == 0, done.stdout + done.stderr


def without_hugging_face(rig):
    """Where only transformers and what goes with it is missing, only what needs it is skipped, with one line."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in "torch-venv", "simgpu/torch":
            (folder / part).mkdir(parents=True)
        (folder / "torch-venv" / "wheel").touch()
        assert missing(folder) is None
        for script, words in ("gate.py", ["--script", "hf", "one"]), ("view_test.py", ["finder_by_text"]), ("record.py", ["llama-lora"]):
            done = subprocess.run([sys.executable, str(ROOT / "tests" / "torch" / script), "--build", name, *words],
                                  capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            assert (done.returncode, done.stdout, done.stderr) == (SKIPPED, "transformers, accelerate and peft are not there: make torch\n", ""), \
                script + done.stdout + done.stderr
        (folder / "torch-venv" / "wheel").unlink()
        assert missing(folder, hugging_face=True) == "PyTorch is not there: make torch"


def as_installed(rig):
    """Pages of 2 MiB and tensors moved from the size on that is the default, larger ones than the gate's: as a user has it."""
    command = ["python", str(ROOT / "tests" / "torch" / "train.py"), "--layers", "4", "--width", "768", "--sequence", "512", "--batch", "4", "--steps", "2"]
    without = rig.must(command, ["--granularity", "2MiB", "--memory", "4GiB"], **SMALL_WORKSPACE)
    peak = int(without.values()["peak"])
    for cap in 60, 45:
        memory = peak * cap // 100 >> 21 << 21
        on = rig.must(command, ["--granularity", "2MiB", "--memory", str(memory), "--schedule", "late"],
                      offload={"OFFLOAD_MIN_SIZE": None}, **SMALL_WORKSPACE)
        results, expected = ([line for line in run.out.splitlines() if not line.startswith("peak ")] for run in (on, without))
        assert results == expected, "\n".join([*results, "instead of", *expected])
        assert not on.lines_of_ours() and on.counts["names_hash"] == without.counts["names_hash"], on.said
        assert on.report["bytes_out"] > 0 and on.report["peak_bytes_with"] <= memory, on.report
        print(f"{peak >> 20} MiB in {memory >> 20}: {on.report['bytes_out'] >> 20} out, {on.report['bytes_in'] >> 20} in")


# Preloaded: says which library asks for an entry of the driver, by dlsym and by cuGetProcAddress.
DOORS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
typedef int get_t(const char*, void**, int, unsigned long long, void*);
static get_t* get;
static const char* library(void* caller) {
  Dl_info info;
  const char* slash = dladdr(caller, &info) ? strrchr(info.dli_fname, '/') : NULL;
  return slash ? slash + 1 : "-";
}
static int ask(const char* name, void** entry, int version, unsigned long long flags, void* status) {
  fprintf(stderr, "door %s address %s\n", library(__builtin_return_address(0)), name);
  return get(name, entry, version, flags, status);
}
void* dlsym(void* handle, const char* name) {
  static void* (*real)(void*, const char*);
  if (!real) real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  const char* caller = library(__builtin_return_address(0));
  void* found = real(handle, name);
  if (strncmp(name, "cu", 2) || strncmp(caller, "libcublas", 9)) return found;
  fprintf(stderr, "door %s symbol %s\n", caller, name);
  if (strcmp(name, "cuGetProcAddress_v2")) return found;
  get = (get_t*)found;
  return (void*)ask;
}
"""


def doors(rig):
    """cuBLAS has its launches from cuGetProcAddress, cuBLASLt from the symbol, as the real ones do."""
    program = """
import torch
x = torch.randn(8, 8, device="cuda")
print((x @ x).sum().item(), torch.nn.functional.linear(x, x, x[0]).sum().item())
"""
    with tempfile.TemporaryDirectory() as folder:
        source, library = pathlib.Path(folder) / "doors.c", pathlib.Path(folder) / "doors.so"
        source.write_text(DOORS)
        subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-fPIC", "-shared", "-o", str(library), str(source), "-ldl"], check=True)
        said = rig.must(program, LD_PRELOAD=str(library)).said.splitlines()
    asked = {tuple(line.split()[1:]) for line in said if line.startswith("door ") and line.endswith(" cuLaunchKernel")}
    assert asked == {("libcublas.so.13", "address", "cuLaunchKernel"), ("libcublasLt.so.13", "symbol", "cuLaunchKernel")}, said


TESTS = [only_stand_ins, doors, beside_nvidia_packages, without_hugging_face, versions, products, one_wrong_element, refusals, out_of_memory, empty_stack, training_changes_everything]


if __name__ == "__main__":
    sys.exit(main(TESTS, __doc__, longer=[scripts_beside_nvidia_packages, as_installed]))
