# SPDX-License-Identifier: Apache-2.0
"""Runs little PyTorch programs on the simulated GPU, each in a process of its own, with or without liboffload; and what the tests
that do so have in common."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import traceback

from warm import Warm

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
NOTE = "simgpu: kernel "  # results without a twin are made up
GRANULARITY = 16 << 10  # small enough for little programs to be moved in many pieces
TIMEOUT_S = 200
# $0 before what is preloaded already.
PRELOADED = 'LD_PRELOAD=$0${LD_PRELOAD:+:$LD_PRELOAD} exec "$@"'


def missing(build, hugging_face=False):
    """What is not there of PyTorch, its stand-ins, and if asked for transformers and what goes with it, in words; None if all is."""
    build = pathlib.Path(build)
    if not (build / "torch-venv" / "wheel").exists() or not (build / "simgpu" / "torch").exists():
        return "PyTorch is not there: make torch"
    if hugging_face and not (build / "torch-venv" / "huggingface").exists():
        return "transformers, accelerate and peft are not there: make torch"
    return None


def hugging_face(test):
    """Marks a test that needs transformers, accelerate or peft."""
    test.hugging_face = True
    return test


def preloading(library, words):
    """The command line that runs `words` with the library before what is preloaded already."""
    return ["sh", "-c", PRELOADED, str(library), *words]


def clean_environment(build):
    """This process's, without what would decide about the run."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("OFFLOAD_", "SIMGPU_", "PYTORCH_", "LD_", "CUDA_", "HF_"))}
    environment.update(SIMGPU_BUILD=str(build), OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    return environment


class Run:
    """How a run ended. `said` is standard error without the simulated GPU's note, `counts` what that GPU counted, `report` what
    liboffload did (empty without it); of the process that used most. `all_counts` and `reports` are of each that launched something."""

    def __init__(self, status, out, err, all_counts, reports):
        self.status = status
        self.out = out
        self.said = "\n".join(row for row in err.splitlines() if not row.startswith(NOTE))
        self.all_counts = [counts for counts in all_counts if counts["kernels"]]
        self.reports = [report for report in reports if report["launches"]]
        self.counts = max(all_counts, key=lambda counts: counts["kernels"], default={})
        self.report = max(reports, key=lambda report: report["launches"], default={})

    def values(self):
        """What the program printed as `name value` lines."""
        return dict(line.split(" ", 1) for line in self.out.splitlines() if " " in line)

    def lines_of_ours(self):
        """What liboffload said, but for what it says of processes without CUDA because a report was asked for."""
        return [line for line in self.said.splitlines() if line.startswith("liboffload") and "there is no summary" not in line]


def read_all(folder, pattern):
    return [json.loads(file.read_text()) for file in pathlib.Path(folder).glob(pattern)]


class Rig:
    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.lock = threading.Lock()
        self.warm = None

    def close(self):
        if self.warm:
            self.warm.close()

    def command(self, words, folder, options=(), offload=None, **settings):
        if offload is not None:
            words = preloading(self.build / "liboffload.so", words)
            settings = {"OFFLOAD_MIN_SIZE": str(GRANULARITY), "OFFLOAD_REPORT": "json",
                        "OFFLOAD_REPORT_FILE": f"{folder}/offload.%p.json", **offload, **settings}
            settings = {name: value for name, value in settings.items() if value is not None}
        return [str(ROOT / "scripts" / "simgpu"), "--torch", "--granularity", str(GRANULARITY), "--report", f"{folder}/simgpu.%p.json",
                *options, "--", "env", *(f"{name}={value}" for name, value in settings.items()), *words]

    def run(self, program, options=(), offload=None, **settings):
        """`program` is text for python -c, or a list of words. `offload`: None without liboffload, else its variables. `settings`:
        other variables. One that is None is not set. The stream-ordered backend is chosen for runs without liboffload unless they say otherwise."""
        words = ["python", "-c", program] if isinstance(program, str) else program
        if offload is None:
            settings.setdefault("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync")
        settings = {name: value for name, value in settings.items() if value is not None}
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(self.command(words, folder, options, offload, **settings), env=clean_environment(self.build),
                                  capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            return Run(done.returncode, done.stdout, done.stderr, read_all(folder, "simgpu.*.json"), read_all(folder, "offload.*.json"))

    def must(self, program, options=(), offload=None, **settings):
        return succeeded(self.run(program, options, offload, **settings))

    def without(self, text, options=(), **settings):
        """Runs a program without liboffload, with the stream-ordered backend; forked from a Python that has imported torch."""
        with self.lock:
            if not self.warm:
                self.warm = Warm([str(ROOT / "scripts" / "simgpu"), "--torch", "--granularity", str(GRANULARITY), "--", "env",
                                  "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"], ["torch"], clean_environment(self.build))
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "program.py").write_text(text)
            settings["SIMGPU_REPORT"] = f"{folder}/simgpu.%p.json"
            settings.update(("SIMGPU_" + option.removeprefix("--").upper(), value) for option, value in zip(options[::2], options[1::2]))
            done = self.warm.run([str(folder / "program.py")], settings, folder, TIMEOUT_S)
            return Run(done.returncode, done.stdout, done.stderr, read_all(folder, "simgpu.*.json"), [])

    def must_without(self, text, options=(), **settings):
        return succeeded(self.without(text, options, **settings))


def succeeded(run):
    assert run.status == 0, f"exit status {run.status}:\n{run.out}{run.said}"
    return run


def failure_of(test, rig):
    try:
        test(rig)
    except AssertionError as error:
        return str(error) or traceback.format_exc()
    except Exception:  # one wrong test says nothing of the others
        return traceback.format_exc()
    return None


def main(tests, about, longer=()):
    """The command line of a file of tests, functions of a Rig. The longer ones are tried only where they are named."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("name", nargs="*")
    arguments = parser.parse_args()
    chosen, lacking = [], None
    for test in [test for test in [*tests, *longer] if test.__name__ in arguments.name] if arguments.name else tests:
        if lack := missing(arguments.build, hasattr(test, "hugging_face")):
            lacking = lack
        else:
            chosen.append(test)
    if lacking:
        print(lacking)
    if not chosen:
        return SKIPPED
    failed = 0
    rig = Rig(arguments.build)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for test, wrong in zip(chosen, pool.map(lambda test: failure_of(test, rig), chosen)):
            print(("FAIL " if wrong else "ok   ") + test.__name__, (wrong or "").replace("\n", "\n     "), flush=True)
            failed += wrong is not None
    rig.close()
    return 1 if failed else 0
