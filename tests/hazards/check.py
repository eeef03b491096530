#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program for each hazard, with buffers away: the same exit status and the same output as without liboffload.

    tests/hazards/check.py --build build NAME [NAME ...]

Each program runs on the simulated GPU with room and without liboffload, then under a cap with it. Nothing more may be
printed than what a hazard names, something must have moved where that can be known, and nothing may be left behind: no
file in the folder it ran in or in the one for temporary files, no shared memory but the one ledger of a user's processes.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

BUILD = ""
LIMIT = "2560KiB"
LEDGER = re.compile(r"liboffload-(\d+|test)-\d+$")  # and those of its own tests


def path(*parts):
    return os.path.join(BUILD, *parts)


def library():
    return path("liboffload.so")


def expect(condition, message):
    if not condition:
        sys.exit("FAILED: " + message)


def client(scenario):
    return [path("clients", "client"), "proc", scenario]


class Run:
    """What a program did: status, output, what it left behind and what it reported."""

    def __init__(self, command, preload, settings, limits, stdio):
        inherited = {name: value for name, value in os.environ.items()
                     if not name.startswith(("OFFLOAD_", "SIMGPU_", "PYTORCH_", "LD_PRELOAD", "MIMALLOC_", "TMPDIR"))}
        with tempfile.TemporaryDirectory() as folder:
            work, temporary, report = (os.path.join(folder, name) for name in ("work", "tmp", "report.json"))
            os.mkdir(work)
            os.mkdir(temporary)
            environment = {
                **inherited, "LD_LIBRARY_PATH": path("simgpu"), "SIMGPU_MEMORY": "64MiB", "SIMGPU_GRANULARITY": "64KiB",
                "SIMGPU_WATCHDOG": "20", "TMPDIR": temporary, "OFFLOAD_GPU_LIMIT": LIMIT, "OFFLOAD_MIN_SIZE": "64KiB",
                "OFFLOAD_SLOT_CHUNK": "1MiB", "OFFLOAD_REPORT": "json", "OFFLOAD_REPORT_FILE": report, **settings,
            }
            if preload:
                environment["LD_PRELOAD"] = ":".join(preload)

            def prepare():
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                for which, value in limits.items():
                    resource.setrlimit(which, (value, value))
                for number in stdio:
                    os.close(number)

            done = subprocess.run(command, env=environment, cwd=work, capture_output=True, text=True, errors="replace", timeout=100,
                                  preexec_fn=prepare)
            self.seen = (done.returncode, done.stdout, done.stderr)
            self.status, self.out, self.error = self.seen
            self.left = os.listdir(work) + os.listdir(temporary) + [name for name in os.listdir("/dev/shm") if "offload" in name and not LEDGER.match(name)]
            self.files = {}
            for name in os.listdir(work):
                with open(os.path.join(work, name)) as file:
                    self.files[name] = file.read()
            self.report = None
            if os.path.exists(report):
                with open(report) as file:
                    self.report = json.load(file)


def compare(command, wanted=0, says=(), before=(), behind=(), moved=True, limits=None, stdio=(), **settings):
    """Runs it without and with liboffload; `before` and `behind` are preloaded with it, both times. `says`: parts of the lines that
    are expected, one each, or what all of them are about, however many they are."""
    limits = limits or {}
    name = " ".join(os.path.basename(word) for word in command)
    without = Run(command, [*before, *behind], settings, limits, stdio)
    expect(without.status == wanted, f"{name} without liboffload: {without.seen}, not status {wanted}")
    of_driver = without.error.splitlines()
    expect(all(line.startswith("simgpu: illegal address") for line in of_driver), f"{name} without liboffload says {without.error}")
    run = Run(command, [*before, library(), *behind], settings, limits, stdio)
    expect(run.seen[:2] == without.seen[:2], f"{name}: without {without.seen}, with {run.seen}")
    lines = [line for line in run.error.splitlines() if line not in of_driver]
    texts = [says] * max(len(lines), 1) if isinstance(says, str) else says
    expect(len(lines) == len(texts) and all(text in line for text, line in zip(texts, lines)), f"{name} says {run.error}, not {says}")
    expect(run.left == without.left, f"{name} leaves {run.left}, without {without.left}")
    expect(run.files == without.files, f"{name} writes {run.files}, without {without.files}")
    if moved is not None:
        expect(run.report is not None, f"{name}: no report")
        expect((run.report["copies_out"] > 0) == moved, f"{name}: {run.report['copies_out']} buffers left")
    return run


# --- ways to end, while two threads work on more than fits

# What had been counted is known where the exit handlers run to their end.
ENDS = {"end-exit": (3, True), "end-exit-of-a-thread": (6, True), "end-at-once": (4, None), "end-quickly": (5, None), "end-abort": (-6, None),
        "end-crash": (-11, None), "end-terminated": (-15, None), "end-killed": (-9, None)}


def ends():
    for scenario, (status, moved) in ENDS.items():
        compare(client(scenario), status, moved=moved)
        compare(client(scenario), status, moved=moved, SIMGPU_SCHEDULE="late", OFFLOAD_EVICTED="unmapped")


def end_exec():
    compare(client("end-exec"))


# --- children


def forks_while_busy():
    run = compare(client("forks-while-busy"), 9)
    expect(run.out.count("child: 3\n") == 7, run.out)  # CUDA_ERROR_NOT_INITIALIZED, whatever is asked


def commands_while_busy():
    run = compare(client("commands-while-busy"), 9)
    expect(run.out.count("from a shell") == 3 and run.out.count("exec: 0") == 3 and run.out.count("spawn: 6") == 3, run.out)


# --- threads and signals


def threads_come_and_go():
    compare(client("threads-come-and-go"))
    compare(client("threads-come-and-go"), SIMGPU_SCHEDULE="late")


def small_stack():
    compare(client("small-stack"))


def signal_handlers():
    compare(client("signal-handlers"))
    compare(client("signal-handlers"), SIMGPU_SCHEDULE="late", OFFLOAD_EVICTED="unmapped")


# --- memory that is short


def half_each():
    for schedule in ("fifo", "late", "random:5"):
        compare(client("half-each"), SIMGPU_SCHEDULE=schedule, OFFLOAD_GPU_LIMIT="2688KiB")


def op_over_the_limit():
    compare(client("op-over-the-limit"), says=["an operation uses more than"])
    compare(client("op-over-the-limit"), says=["an operation uses more than"], SIMGPU_SCHEDULE="late")


def op_refused():
    run = Run(client("op-refused"), [library()], {"OFFLOAD_EVICTED": "unmapped"}, {}, ())
    expect(run.status == 0 and run.error.count("\n") == 1 and "out of memory" in run.error, str(run.seen))


def retry_with_less():
    run = compare(client("retry-with-less"), says=["more than the limit"] * 7, SIMGPU_MEMORY="32MiB", moved=None)
    expect(run.report["allocations_refused"] >= 7, str(run.report))


def host_limit():
    for settings in ({"OFFLOAD_HOST_LIMIT": "4MiB"}, {"OFFLOAD_HOST_LIMIT": "0"}):
        compare(client("full-to-the-brim"), says=["out of memory"], moved=settings["OFFLOAD_HOST_LIMIT"] != "0", **settings)
    compare(client("full-to-the-brim"), says=["the system pins no more", "out of memory"], SIMGPU_PIN_LIMIT="4MiB")


def freed_by_another_thread():
    for schedule in ("fifo", "late", "random:5"):
        compare(client("freed-by-another-thread"), SIMGPU_SCHEDULE=schedule)


def wrong_frees():
    compare(client("wrong-frees"))


def after_a_fault():
    run = compare(client("after-a-fault"), says=["the context is lost"], moved=None)
    expect("free: 700" in run.out, run.out)
    expect("the context was lost" in (run.report["incomplete"] or ""), f"the report says {run.report['incomplete']}")


def lost_in_a_call_of_ours():
    """A sticky error that our own calls meet is told as that and nothing else: not as a lack of memory of either kind."""
    for fault in [f"cuMemMap:{call}+=700" for call in range(30, 60, 5)] + [f"cuMemUnmap:{call}+=700" for call in range(1, 22, 3)]:
        run = Run(client("stash"), [library()], {"SIMGPU_FAULTS": fault}, {}, ())
        lines = [line for line in run.error.splitlines() if "liboffload[" in line]
        expect(run.status == 1 and "is 700, not 0" in run.error, f"{fault}: {run.seen}")
        expect(len(lines) == 1 and "the context is lost" in lines[0], f"{fault}: {run.error}")


def stray_access():
    compare(client("stray-access"), OFFLOAD_EVICTED="host")


def runtime_answers():
    compare([path("clients", "runtime_answers")], says="out of memory")


# --- other libraries


def other_allocator():
    """Blocks are marked: one that comes from another heap would end the process. Ours is another heap, and never calls it."""
    malloc = path("hazards", "malloc_library.so")
    for order in ({"before": [malloc]}, {"behind": [malloc]}):
        run = compare(client("stash"), **order)
        expect("marked: yes, calls by liboffload: 0" in run.out, run.out)
        compare([sys.executable, "-c", "import ctypes, json, threading; print(6 * 7)"], moved=None, OFFLOAD_REPORT="off", **order)


def other_dlsym():
    """Another interposer of dlsym, in front and behind. In front it asks the C library for its version of dlsym, which is not ours:
    then nothing is moved, and that is said."""
    other = path("hazards", "dlsym_library.so")
    compare(client("stash"), behind=[other])
    run = compare(client("stash"), before=[other], moved=None, says=["past liboffload"], OTHER_DLSYM="tell")
    expect("other dlsym: called" in run.out, run.out)


def stub_driver():
    """The driver proper is a file behind libcuda.so.1, which looks names up in it itself and must find what is there."""
    with tempfile.TemporaryDirectory() as folder:
        proper = os.path.join(folder, "libcuda.so.1.1")
        os.symlink(path("simgpu", "libcuda.so.1"), proper)
        compare(client("stash"), LD_LIBRARY_PATH=path("hazards"), STUB_DRIVER=proper)


def old_driver():
    """One that has no cuGetProcAddress_v2 yet."""
    with tempfile.TemporaryDirectory() as folder:
        proper = os.path.join(folder, "libcuda.so.1.1")
        os.symlink(path("simgpu", "libcuda.so.1"), proper)
        compare(client("stash"), LD_LIBRARY_PATH=path("hazards", "old"), STUB_DRIVER=proper)


def foreign_library():
    run = compare(client("foreign-library"))
    expect(run.report["pass_through"]["foreign_library"] == 1, str(run.report["pass_through"]))


def own_mappings():
    compare(client("own-mappings"))
    compare(client("own-mappings"), SIMGPU_SCHEDULE="late", OFFLOAD_EVICTED="unmapped")


def flat():
    """After ninety-six steps hardly more is held than after six. How much is held at once depends on how far the GPU gets meanwhile, and
    the most of more steps is more, so the most of a few short runs and as much again is held against the least of as many long ones: what
    grows with the steps is sixteen times as much in each of them."""
    keys = ("pinned_peak_bytes", "host_peak_bytes", "peak_bytes_with", "peak_bytes_without")
    short, long = [], []
    for _ in range(5):
        short.append(compare(client("few-steps")).report)
        long.append(compare(client("many-steps")).report)
        expect(long[-1]["copies_out"] > 3 * short[-1]["copies_out"], f"{long[-1]['copies_out']} buffers left")
        grown = [key for key in keys if min(run[key] for run in long) > 2 * max(run[key] for run in short)]
        if not grown:
            return
    expect(False, "; ".join(f"{key} is {[run[key] for run in long]}, after six steps {[run[key] for run in short]}" for key in grown))


def closed_library():
    compare(client("closed-library"))
    compare(client("closed-library"), SIMGPU_SCHEDULE="late", OFFLOAD_EVICTED="unmapped")


def deep_library():
    compare(client("deep-library"), says=["plugin.so reaches the driver past liboffload"], OFFLOAD_EVICTED="host")


# --- surroundings


def closed_streams():
    """Descriptors 0 to 2 that are closed are the program's to use: nothing of ours goes there, whatever is to be said."""
    for numbers in ((1,), (2,), (0, 1, 2)):
        run = compare(client("own-files"), stdio=numbers)
        expect(len(run.left) == len(numbers) and "".join(run.files.values()) == ("" if numbers == (2,) else "ok\n"), str(run.files))
        compare(client("own-files"), stdio=numbers, moved=None, says=() if 2 in numbers else "", OFFLOAD_LOG="trace", OFFLOAD_REPORT="text",
                OFFLOAD_REPORT_FILE="")


def few_files():
    """No descriptor is left, not even for twins of kernels. Nothing more is needed than without; only the report cannot be written then."""
    linked = [path("clients", "client_linked"), "linked"]
    compare([*linked, "no-descriptors"], limits={resource.RLIMIT_NOFILE: 64})
    compare([*linked, "no-descriptors-any-more"], limits={resource.RLIMIT_NOFILE: 64}, moved=None, says=["report"])


def little_memory():
    """Address space at its limit. It must not be what liboffload takes that makes the difference."""
    for megabytes in (20, 40, 100):
        compare(["ls", "/usr"], moved=None, limits={resource.RLIMIT_AS: megabytes << 20})


def tiny_stack():
    """The stack's limit is also the size of new threads' stacks, ours included."""
    compare(client("stash"), limits={resource.RLIMIT_STACK: 128 << 10})


def variables():
    """The program's mimalloc may be told to speak; ours stays silent."""
    names = ("VERBOSE", "SHOW_STATS", "SHOW_ERRORS", "TRACE", "RESERVE_HUGE_OS_PAGES", "ARENA_EAGER_COMMIT", "MAX_ERRORS", "MAX_WARNINGS")
    compare(client("stash"), **{f"MIMALLOC_{name}": "1" for name in names})
    compare(client("stash"), MALLOC_CHECK_="3", MALLOC_PERTURB_="165", GLIBC_TUNABLES="glibc.malloc.check=3", LD_BIND_NOW="1")


def main():
    global BUILD
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("checks", nargs="+")
    arguments = parser.parse_args()
    BUILD = os.path.abspath(arguments.build)
    for name in arguments.checks:
        globals()[name]()
        print(f"{name}: ok")


if __name__ == "__main__":
    main()
