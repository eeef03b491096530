#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must hold when liboffload is loaded into a program: one check per name.

    tests/programs/check.py --build build NAME [NAME ...]

A check runs a program with and without liboffload and compares, or looks at the library's own file.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = ""


def path(*parts):
    return os.path.join(BUILD, *parts)


def library():
    return path("liboffload.so")


def clean_environment(**changes):
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OFFLOAD_", "SIMGPU_", "PYTORCH_", "LD_PRELOAD"))
    }
    environment.update(changes)
    return environment


def on_simulated_gpu(**changes):
    return clean_environment(LD_LIBRARY_PATH=path("simgpu"), SIMGPU_MEMORY="256MiB", **changes)


def run(command, environment, preload=()):
    environment = dict(environment)
    if preload:
        environment["LD_PRELOAD"] = ":".join(preload)
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout, result.stderr


def expect(condition, message):
    if not condition:
        sys.exit("FAILED: " + message)


def expect_same(command, environment=None, behind=()):
    """The program's status and output are the same with liboffload, and nothing else is printed."""
    environment = environment or clean_environment()
    without = run(command, environment, behind)
    with_us = run(command, environment, [library(), *behind])
    expect(with_us == without, f"{command}: without {without}, with {with_us}")
    return with_us


def tool_output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# --- the library's file


def exports():
    wanted = tool_output(path("programs", "print_exports")).split()
    lines = tool_output("nm", "-D", "--defined-only", library()).splitlines()
    found = sorted(line.split()[-1] for line in lines)
    expect(found == wanted, f"differs from hooks.def: {sorted(set(found) ^ set(wanted))}")
    expect(all("@" not in name for name in found), "an export has a version")
    expect("Version definition" not in tool_output("readelf", "-V", library()), "there is a named version node")


def needs():
    dynamic = tool_output("readelf", "-d", library())
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    expect(needed, "no needed library at all")
    for name in needed:
        expect(re.match(r"(libc|libm|ld-linux.*)\.so", name), f"needs {name}")
    expect("NODELETE" in dynamic, "can be unloaded")


def symbol_versions():
    wanted = set(re.findall(r"GLIBC_([0-9.]+)", tool_output("objdump", "-T", library())))
    expect(wanted, "no versioned symbol at all")
    newest = max(tuple(int(part) for part in version.split(".")) for version in wanted)
    expect(newest <= (2, 34), f"needs GLIBC_{newest}")
    expect("GLIBCXX" not in tool_output("objdump", "-T", library()), "needs libstdc++")


# --- programs without CUDA


def heap_owner():
    status, out, error = expect_same([path("programs", "heap_owner")])
    expect(status == 0 and "liboffload" not in out, out)
    owners = dict(re.findall(r"^(\w+): (\S+)$", out, re.M))
    for name in ("malloc", "free", "strdup", "dlopen"):
        expect(re.search(r"/libc[.-]", owners[name]), f"{name} belongs to {owners[name]}")
    expect(owners["mi_malloc"] == "nobody", "mimalloc is visible")


def without_driver():
    status, out, _ = expect_same([path("programs", "without_driver")])
    expect(status == 7, f"status {status}")
    expect("cuMemAlloc_v2: none, error" in out and "printf: there" in out, out)


def next_definition():
    status, out, _ = expect_same([path("programs", "next_definition")], behind=[path("programs", "next_library.so")])
    expect(status == 0 and "parent is found, 1 call" in out and "libc" in out, out)


def early_lookup():
    _, out, _ = expect_same([path("programs", "early_lookup")], behind=[path("programs", "early_library.so")])
    expect("findings 3" in out, out)


def ls():
    status, out, _ = expect_same(["ls", "-l", "/usr"])
    expect(status == 0 and out, "ls said nothing")
    status, _, error = expect_same(["ls", "/no/such/folder"])
    expect(status == 2 and error, f"status {status}")


def python():
    status, out, _ = expect_same([sys.executable, "-c", "import ctypes, json, threading; print(6 * 7)"])
    expect(status == 0 and out == "42\n", out)
    status, _, _ = expect_same([sys.executable, "-c", "import sys; sys.exit(3)"])
    expect(status == 3, f"status {status}")
    status, _, _ = expect_same([sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"])
    expect(status == -15, f"status {status}")


def forks():
    status, out, _ = expect_same([path("programs", "forks")])
    expect(status == 9 and "child ended with 11" in out and "grandchild ended with 12" in out, out)
    status, out, _ = expect_same([path("programs", "forks"), "cuda"], on_simulated_gpu())
    expect(status == 9 and "memory holds 5, result 0, free 0" in out, out)
    # One report, from the process that used the GPU.
    environment = on_simulated_gpu(OFFLOAD_REPORT="text")
    _, _, error = run([path("programs", "forks"), "cuda"], environment, [library()])
    expect(error.count("liboffload ") == 1, error)


def fork_first():
    """CUDA in the child alone is served there, with a report of its own."""
    status, out, _ = expect_same([path("programs", "forks"), "first"], on_simulated_gpu())
    expect(status == 9 and "child's memory: 0 holds 5" in out, out)
    environment = on_simulated_gpu(OFFLOAD_REPORT="text", OFFLOAD_GPU_LIMIT="32MiB")
    _, _, error = run([path("programs", "forks"), "first"], environment, [library()])
    expect(error.count("liboffload ") == 1 and "limit 32 MiB" in error and "8 MiB of live buffers" in error, error)


def twice():
    """Preloaded under two names: the second is as if it were not there."""
    with tempfile.TemporaryDirectory() as folder:
        other = shutil.copy(library(), os.path.join(folder, "liboffload-other.so"))
        for preload in ([library(), other], [other, library()]):
            _, out, _ = run([sys.executable, "-c", "import ctypes; print(6 * 7)"], clean_environment(), preload)
            expect(out == "42\n", out)
            for program, gpu in (("without_driver", False), ("forks", True), ("door", True)):
                command = [path("programs", program)] + (["cuda"] if program == "forks" else [])
                environment = on_simulated_gpu() if gpu else clean_environment()
                once = run(command, environment, preload[:1])
                both = run(command, environment, preload)
                expect(both == once, f"{program}: once {once}, twice {both}")
            environment = on_simulated_gpu(OFFLOAD_REPORT="text")
            _, _, error = run([path("programs", "quiet_end")], environment, preload)
            expect(error.count("liboffload ") == 1 and "8 MiB of live buffers" in error, error)


def report_without_driver():
    """Whoever asked for a summary is told that there is none: once, whatever the program starts."""
    environment = clean_environment(OFFLOAD_REPORT="text")
    starts_others = "import subprocess; subprocess.run(['ls', '/'], stdout=subprocess.DEVNULL)"
    for command in ([path("programs", "without_driver")], [sys.executable, "-c", starts_others]):
        _, _, error = run(command, environment, [library()])
        name = os.path.basename(command[0])
        expect(error.count("\n") == 1 and f"{name} used no CUDA driver" in error, error)
        _, _, error = run(command, clean_environment(OFFLOAD_LOG="info"), [library()])
        expect(error.count("\n") == 1 and f"info: {name} used no CUDA driver" in error, error)
    for asked in ({"OFFLOAD_REPORT": "text"}, {"OFFLOAD_LOG": "info"}):
        _, _, error = run([path("programs", "quiet_end")], on_simulated_gpu(**asked), [library()])
        expect("no CUDA driver" not in error, error)
    # One that used a device, but no memory of it, gets its summary.
    status, _, error = run([path("programs", "quiet_end"), "without-memory"], on_simulated_gpu(OFFLOAD_REPORT="text"), [library()])
    expect(status == 6 and error.count("the program allocated no device memory") == 1, error)


def fork_and_exec():
    status, out, _ = expect_same(["sh", "-c", "ls / > /dev/null; (exit 3); echo $?; exec sh -c 'exit 6'"])
    expect(status == 6 and out == "3\n", out)


def deep_binding():
    status, out, _ = expect_same([path("programs", "deep_binding"), path("programs", "deep_library.so")])
    expect(status == 5 and out == "answer 42\n", out)


def pytorch_variables():
    show = [sys.executable, "-c", "import os; print(sorted((k, v) for k, v in os.environ.items() if k.startswith('PYTORCH')))"]
    plain = clean_environment()
    _, out, _ = run(show, plain, [library()])
    both = [("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"), ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")]
    expect(out == f"{both}\n", out)
    # A child of a child sees the same, not the backend twice.
    _, out, _ = run(["sh", "-c", f"exec {sys.executable} -c '{show[2]}'".replace("'PYTORCH'", '"PYTORCH"')], plain, [library()])
    expect(out == f"{both}\n", out)
    for value, expected in (("uncached", both[1:]), ("native", [])):
        _, out, _ = run(show, clean_environment(OFFLOAD_PYTORCH_ALLOC=value), [library()])
        expect(out == f"{expected}\n", f"{value}: {out}")
    names = "import os; print(sorted(os.environ))"
    _, without, _ = run([sys.executable, "-c", names], plain)
    _, with_us, _ = run([sys.executable, "-c", names], plain, [library()])
    added = set(eval(with_us)) - set(eval(without)) - {"LD_PRELOAD"}
    expect(added == {name for name, _ in both}, f"added {added}")


# What getenv says after each statement, of PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF and PYTORCH_NO_CUDA_MEMORY_CACHING.
SEEN_BY_C = """
import ctypes, os, sys
C = ctypes.CDLL(None, use_errno=True)
C.getenv.restype = ctypes.c_char_p
CONF, NEW, CACHING = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"
STRINGS = [ctypes.create_string_buffer(text.encode()) for text in (CONF + "=a:1", CONF + "=backend:native", CONF, "OF_MINE=1", "")]
for statement in sys.argv[1:]:
    exec(statement)
    print([value and value.decode()[:80] for value in map(C.getenv, (name.encode() for name in (CONF, NEW, CACHING)))])
"""
OURS = "backend:cudaMallocAsync"


def seen_by_c(statements, **settings):
    _, out, error = run([sys.executable, "-c", SEEN_BY_C, *statements], clean_environment(**settings), [library()])
    expect(error == "" and out.count("\n") == len(statements), out + error)
    return [eval(line) for line in out.splitlines()]


def expect_seen(steps, **settings):
    for (statement, *wanted), found in zip(steps, seen_by_c([statement for statement, *_ in steps], **settings)):
        expect(found == wanted, f"{settings} {statement}: {found} instead of {wanted}")


def pytorch_refusals():
    """Failed checks reach PyTorch's own function, whose exception passes through ours; one line where its allocator refuses."""
    refusal, line = "cudaMallocAsync does not yet support recordHistory", "OFFLOAD_PYTORCH_ALLOC=native has it"
    for message, settings, lines in (
        (refusal, {}, 1),
        ("Calling snapshot with backend:cudaMallocAsync is not meaningful.", {}, 1),
        ("invalid shape", {}, 0),
        ("Allocator backend parsed at runtime != allocator backend parsed at load time, native != cudaMallocAsync", {}, 0),
        (refusal, {"OFFLOAD_PYTORCH_ALLOC": "uncached"}, 0),
        (refusal, {"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}, 0),
        (refusal, {"OFFLOAD_DISABLE": "1"}, 0),
    ):
        command = [path("programs", "failed_checks"), path("programs", "checks_library.so"), message]
        status, out, error = run(command, clean_environment() | settings, [library()])
        expect((status, out) == (0, f"text: {message}\nstring: {message}\n"), f"{settings}: {status} {out} {error}")
        expect(error.count(line) == error.count("\n") == lines, f"{settings}: {error}")


def pytorch_variables_of_the_program():
    """What a program sets for PyTorch's allocator means what it would have meant in the shell; what it reads is what it wrote."""
    expect_seen((
        ("pass", OURS, None, "1"),
        ("os.environ[CONF] = 'a:1'; assert os.environ[CONF] == 'a:1'", f"{OURS},a:1", None, "1"),
        ("os.environ.setdefault(CONF, 'b:1')", f"{OURS},a:1", None, "1"),
        ("os.environ[CONF] = 'c:1,backend:cudaMallocAsync'", "c:1,backend:cudaMallocAsync", None, "1"),
        ("os.environ[CONF] = ''", OURS, None, "1"),
        ("os.environ[CONF] = 'a:1'; os.environ.pop(CONF); assert CONF not in os.environ", OURS, None, "1"),
        ("os.environ[NEW] = 'd:1'", OURS, "d:1", "1"),  # PyTorch prefers the older one
        ("os.environ[NEW] = 'backend:native'", OURS, "backend:native", "1"),
        ("del os.environ[NEW]", OURS, None, "1"),
        ("os.environ[CONF] = 'k' * 5000", "k" * 80, None, "1"),
        ("assert os.fork() or os.environ.update({CONF: 'e:1'}) or os._exit(C.getenv(CONF.encode()) != b'" + OURS + ",e:1'); assert os.wait()[1] == 0",
         "k" * 80, None, "1"),
        # PyTorch's own cache, which is not forbidden any more.
        ("os.environ[CONF] = 'backend:native'", "backend:native", None, None),
        ("del os.environ[CONF]", OURS, None, None),
    ))
    # The C library's functions by themselves, with their results.
    expect_seen((
        ("assert C.setenv(CONF.encode(), b'a:1', 0) == 0", OURS, None, "1"),
        ("assert C.setenv(CONF.encode(), b'a:1', 1) == 0", f"{OURS},a:1", None, "1"),
        ("assert C.unsetenv(CONF.encode()) == 0", OURS, None, "1"),
        ("assert C.putenv(STRINGS[0]) == 0", f"{OURS},a:1", None, "1"),
        ("assert C.putenv(STRINGS[1]) == 0", "backend:native", None, None),
        ("STRINGS[1].value = CONF.encode() + b'=b:1'", "b:1", None, None),  # it is the program's string
        ("assert C.putenv(STRINGS[2]) == 0", OURS, None, None),
        ("assert C.putenv(STRINGS[3]) == 0; STRINGS[3].value = b'OF_MINE=2'; assert C.getenv(b'OF_MINE') == b'2'", OURS, None, None),
        ("for name in (None, b'', b'A=B'): assert C.setenv(name, b'1', 1) == -1 and ctypes.get_errno() == 22, name", OURS, None, None),
        ("for name in (None, b'', b'A=B'): assert C.unsetenv(name) == -1 and ctypes.get_errno() == 22, name", OURS, None, None),
        ("assert C.clearenv() == 0", None, None, None),
        ("assert C.setenv(CONF.encode(), b'a:1', 0) == 0", f"{OURS},a:1", None, None),
    ))
    native = {"PYTORCH_ALLOC_CONF": "backend:native"}
    expect_seen((("os.environ[NEW] = 'a:1'", None, f"{OURS},a:1", None), ("del os.environ[NEW]", OURS, None, None)), **native)
    # What the user has forbidden stays so.
    user = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    expect_seen((("os.environ[CONF] = 'backend:native'", "backend:native", None, "1"),), **user)
    expect_seen((("os.environ[CACHING] = '1'", OURS, None, "1"), ("os.environ[CONF] = 'backend:native'", "backend:native", None, "1")))
    expect_seen((("os.environ[CONF] = 'a:1'", "a:1", None, "1"), ("os.environ[CONF] = 'backend:native'", "backend:native", None, None)),
                OFFLOAD_PYTORCH_ALLOC="uncached")
    for setting in "PYTORCH_ALLOC", "DISABLE":
        untouched = (("os.environ[CONF] = 'a:1'", "a:1", None, None), ("assert C.putenv(STRINGS[0]) == 0", "a:1", None, None),
                     ("os.environ.pop(CONF)", None, None, None), ("os.environ[CACHING] = '1'", None, None, "1"))
        expect_seen(untouched, **{f"OFFLOAD_{setting}": {"PYTORCH_ALLOC": "native", "DISABLE": "1"}[setting]})
    # What a child inherits is completed there; with the words of its parent, PyTorch's own cache is not forbidden either.
    child = "import os; os.environ['PYTORCH_CUDA_ALLOC_CONF'] = '{}'; os.execvp('env', ['env'])"
    for value, wanted in (("a:1", {f"PYTORCH_CUDA_ALLOC_CONF={OURS},a:1", "PYTORCH_NO_CUDA_MEMORY_CACHING=1"}), ("backend:native", {"PYTORCH_CUDA_ALLOC_CONF=backend:native"})):
        for shell in (), ("sh", "-c", 'exec "$0" "$@"'):
            _, out, _ = run([*shell, sys.executable, "-c", child.format(value)], clean_environment(), [library()])
            found = {line for line in out.splitlines() if line.startswith("PYTORCH")}
            expect(found == wanted, f"{value}: {found}")


def bad_options_are_silent():
    """Children of a shell script are not the ones to complain to."""
    environment = clean_environment(OFFLOAD_GPU_LIMIT="much", OFFLOAD_NO_SUCH="1")
    _, _, error = run(["ls", "/"], environment, [library()])
    expect(error == "", error)


def allocator_variables():
    """The program's mimalloc may be told to speak; ours stays silent."""
    for variable in ("MIMALLOC_VERBOSE", "MIMALLOC_SHOW_STATS", "MIMALLOC_SHOW_ERRORS"):
        status, _, error = expect_same(["/bin/true"], clean_environment(**{variable: "1"}))
        expect(status == 0 and error == "", f"{variable}: {error}")
        expect_same([path("programs", "quiet_end"), "normal"], on_simulated_gpu(**{variable: "1"}))


def start_time():
    """Less than 5 ms more per process, by the median of 50 pairs taken alternately."""
    environment = clean_environment()
    times = {False: [], True: []}
    for _ in range(50):
        for preloaded in (False, True):
            env = dict(environment, LD_PRELOAD=library()) if preloaded else environment
            begin = time.perf_counter()
            subprocess.run(["/bin/true"], env=env, check=True)
            times[preloaded].append(time.perf_counter() - begin)
    added_ms = (statistics.median(times[True]) - statistics.median(times[False])) * 1e3
    print(f"added {added_ms:.2f} ms")
    expect(added_ms < 5, f"{added_ms:.2f} ms more")


# --- several processes at once


def reports_of(pattern, count):
    """Runs `count` trainings at once under one OFFLOAD_REPORT_FILE, each of them long enough to be there with the others, and
    gives their process numbers and what each file in the folder says."""
    with tempfile.TemporaryDirectory() as folder:
        environment = on_simulated_gpu(SIMGPU_GRANULARITY="16KiB", OFFLOAD_MIN_SIZE="16KiB", OFFLOAD_GPU_LIMIT="2MiB", OFFLOAD_REPORT="json",
                                       OFFLOAD_REPORT_FILE=os.path.join(folder, pattern), LD_PRELOAD=library())
        command = [path("workloads", "train_gpt"), "--tiny", "--layers", "4", "--batch", "8", "--quiet"]
        running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(count)]
        ended = [process.communicate(timeout=60) for process in running]
        for process, (out, error) in zip(running, ended):
            expect(process.returncode == 0 and error == "", f"status {process.returncode}: {error}")
            expect(out == ended[0][0], f"other results:\n{out}instead of\n{ended[0][0]}")
        files = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as file:
                files[name] = json.load(file)
        return [process.pid for process in running], files


def one_report_each():
    """Every process writes its own report, whole, whether the name tells them apart or not."""
    pids, files = reports_of("of-%p.json", 2)
    expect(set(files) == {f"of-{pid}.json" for pid in pids}, f"{sorted(files)} of the processes {pids}")
    for pid in pids:
        expect(files[f"of-{pid}.json"]["process"] == pid, f"the report of {pid} is that of {files[f'of-{pid}.json']['process']}")
    pids, files = reports_of("report.json", 3)
    expect(set(files) == {"report.json", "report.json.1", "report.json.2"}, f"{sorted(files)}")
    expect({report["process"] for report in files.values()} == set(pids), f"not one of each of {pids}")
    for report in files.values():
        expect(report["bytes_out"] > 0, "nothing was moved")


def shared_host_memory():
    """Two processes share what the machine has for moved buffers, and one that is killed leaves its part to the other. In a
    process namespace of their own they share it with nobody else."""
    alone = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        print("waived: no process namespaces here")
        return
    command = [*alone, sys.executable, __file__, "--build", BUILD, "shared_host_memory_alone"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100)
    expect(result.returncode == 0, result.stdout + result.stderr)


class Holder:
    """A client that holds as many buffers as it is told to, or as it gets."""

    def __init__(self):
        environment = on_simulated_gpu(SIMGPU_GRANULARITY="64KiB", OFFLOAD_GPU_LIMIT="2560KiB", OFFLOAD_MIN_SIZE="64KiB", OFFLOAD_SLOT_CHUNK="1MiB",
                                       OFFLOAD_HOST_LIMIT="0.2%", LD_PRELOAD=library())
        self.process = subprocess.Popen([path("clients", "client"), "proc", "holds-what-it-can"], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def hold(self, wanted):
        self.process.stdin.write(f"{wanted}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline().removeprefix("holds "))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        out, error = self.process.communicate(timeout=60)
        expect(self.process.returncode == 0 and out == "ok\n", f"status {self.process.returncode}: {error}")


def shared_host_memory_alone():
    few, all_there_is = 16, 10000
    ledger = f"/dev/shm/liboffload-{os.geteuid()}-{os.stat('/proc/self/ns/pid').st_ino}"
    first, other = Holder(), Holder()
    try:
        expect((first.hold(few), other.hold(few)) == (few, few), "the first buffers were refused")
        held, by_other = first.hold(all_there_is), other.hold(all_there_is)
        print(f"{held} and {by_other} buffers")
        expect(held > 3 * few and 0.8 < held / by_other < 1.25, f"no equal parts: {held} and {by_other} buffers")
        other.kill()
        alone = first.hold(all_there_is)
        print(f"{alone} buffers without the other")
        expect(alone > 1.6 * held, f"{held} buffers beside the other, {alone} without")
        first.end()
    finally:
        first.kill()
        other.kill()
        if os.path.exists(ledger):
            os.unlink(ledger)


# --- programs with the simulated driver


def disabled():
    environment = on_simulated_gpu(OFFLOAD_DISABLE="1")
    _, out, error = run([path("programs", "door")], environment, [library()])
    owners = dict(re.findall(r"^(dlsym \w+): (\S+)$", out, re.M))
    expect(owners["dlsym cuMemAlloc_v2"].startswith("libcuda"), out)
    expect(error == "", error)
    status, out, _ = run([sys.executable, "-c", "import os; print([k for k in os.environ if k.startswith('PYTORCH')])"], environment, [library()])
    expect(out == "[]\n", out)
    expect_same([path("programs", "forks"), "cuda"], environment)


def strict():
    environment = on_simulated_gpu(OFFLOAD_GPU_LIMIT="much", OFFLOAD_STRICT="1")
    status, out, error = run([path("programs", "quiet_end")], environment, [library()])
    expect(status == 4 and "OFFLOAD_GPU_LIMIT" in error and error.count("error:") == 1, error)


def door():
    environment = on_simulated_gpu(SIMGPU_EXTRA_ENTRIES="cuSimgpuUnknownA")
    _, plain, _ = run([path("programs", "door")], environment)
    _, out, error = run([path("programs", "door")], environment, [library()])
    expect(error == "", error)
    # Exactly the owners differ.
    strip = lambda text: re.sub(r"(libcuda\.so\S*|liboffload\.so)(?=,|\n)", "X", text)
    expect(strip(out) == strip(plain), f"{out}\n--- without\n{plain}")
    ours = {
        "dlsym cuMemAlloc_v2": True, "dlsym cuLaunchKernel": True, "dlsym cuLaunchKernel_ptsz": True,
        "dlsym cuGetProcAddress_v2": True, "dlsym cuInit": False, "dlsym cuEventQuery": False,
    }
    owners = dict(re.findall(r"^([\w ]+): (\S+)$", out, re.M))
    for question, is_ours in ours.items():
        expect(owners[question].startswith("liboffload" if is_ours else "libcuda"), f"{question}: {owners[question]}")
    expect(owners["default cuMemAlloc_v2"] == "nobody", out)  # the driver was opened locally
    expect(owners["dlsym cuNoSuchEntry"] == "nobody", out)
    expect("self: 0, liboffload.so, status 0" in out, out)
    expect("kinds: two" in out and "same as by name: yes, yes" in out, out)
    expect("cuMemAlloc 13000: 0, liboffload.so" in out and "cuMemAlloc 3020: 0, liboffload.so" in out, out)
    expect("cuMemcpyHtoDAsync 13000: 0, liboffload.so" in out, out)
    expect("cuEventQuery 13000: 0, libcuda.so.1" in out, out)
    expect("cuSimgpuUnknownA 13000: 0, liboffload.so" in out, out)  # behind a trap
    expect(re.search(r"cuNoSuchEntry 13000: \d+, nobody", out), out)


def deep_binding_bypass():
    command = [path("programs", "deep_binding"), path("programs", "deep_library.so"), "cuda"]
    without = run(command, on_simulated_gpu())
    status, out, error = run(command, on_simulated_gpu(), [library()])
    expect((status, out) == without[:2], f"{out}\n--- without\n{without[1]}")
    expect(error.count("\n") == 1 and "deep_library.so" in error and "nothing is moved" in error, error)


def quiet_end():
    for how, wanted in (("normal", 4), ("late-free", 4), ("_exit", 5), ("kill", -15)):
        status, _, _ = expect_same([path("programs", "quiet_end"), how], on_simulated_gpu())
        expect(status == wanted, f"{how}: status {status}")
    _, _, error = run([path("programs", "quiet_end")], on_simulated_gpu(OFFLOAD_REPORT="text"), [library()])
    expect("everything fitted" in error, error)


def closed_stderr():
    """The number of a stderr that was closed is the program's to use."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "data")
        environment = on_simulated_gpu(OFFLOAD_REPORT="text", OFFLOAD_LOG="debug", LD_PRELOAD=library())
        command = f"exec 2>&-; exec {path('programs', 'quiet_end')} opens-a-file {file}"
        result = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=60)
        expect(result.returncode == 4 and "the file is 2" in result.stdout, result.stdout)
        with open(file) as data:
            text = data.read()
        expect(text == "", text)


def out_of_memory():
    """The line says what kept more from leaving, and the report does not say that everything fitted."""
    command = [path("clients", "client"), "proc", "too-much"]
    for variable, value, says in (
        ("POLICY", "none", "nothing is moved: OFFLOAD_POLICY=none"),
        ("MODE", "observe", "nothing is moved: OFFLOAD_MODE=observe"),
        ("HOST_LIMIT", "1MiB", "at its limit of 1 MiB (OFFLOAD_HOST_LIMIT)"),
        ("MIN_SIZE", "512MiB", "smaller than 512 MiB (OFFLOAD_MIN_SIZE)"),
    ):
        settings = {"OFFLOAD_GPU_LIMIT": "2560KiB", "OFFLOAD_MIN_SIZE": "64KiB", "OFFLOAD_SLOT_CHUNK": "1MiB"}
        settings[f"OFFLOAD_{variable}"] = value
        _, _, error = run(command, on_simulated_gpu(SIMGPU_GRANULARITY="64KiB", **settings), [library()])
        lines = [line for line in error.splitlines() if "out of memory" in line]
        expect(lines and says in lines[0], f"{variable}: {error}")
    environment = on_simulated_gpu(OFFLOAD_REPORT="text", OFFLOAD_GPU_LIMIT="4MiB")
    status, _, error = run([path("programs", "quiet_end")], environment, [library()])
    expect(status == 2 and "Nothing was moved: memory ran out, but no buffer was both" in error, error)


def main():
    global BUILD
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("checks", nargs="+")
    arguments = parser.parse_args()
    BUILD = os.path.abspath(arguments.build)
    for name in arguments.checks:
        globals()[name]()
        print(f"{name}: ok")


if __name__ == "__main__":
    main()
