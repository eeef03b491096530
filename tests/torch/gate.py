#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An unmodified PyTorch script under a memory cap ends with the same bits as one with room.

  gate.py --build DIR quick    every pair of choices, features several at once (make test-torch)
  gate.py pairs                what quick (or --of soak) consists of, and how many pairs that are; nothing is run
  gate.py --build DIR soak     every pair too, features one by one, several times, and longer (make soak-torch)
  gate.py --build DIR chance   by chance, for --seconds, as --seed says
  gate.py --build DIR one cap=45 precision=bf16 ...    one combination, what is not named being the first choice
  --script hf                  the one for Hugging Face's Trainer instead of the plain one (scripts.py)

Each combination runs the script twice on the simulated GPU with PyTorch's stock wheel: with room and without liboffload (in quick
forked from a Python that has imported torch, warm.py), and with it on a device of cap % of max_memory_allocated (but never less than its largest launch needs). Equal lines (losses to the last bit, hash of weights, hash of the optimizer's
state), no step of the optimizer left out by the gradient scaler, the same allocations named by the same launches, exit status 0 (the simulated GPU turns any report of its checker into 97),
nothing unexpected on standard error, and something moved. 77: PyTorch is not there (make torch)."""

import argparse
import itertools
import json
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time

from rig import GRANULARITY, ROOT, SKIPPED, clean_environment, missing, preloading
from scripts import SCRIPTS
from warm import Warm

sys.path.insert(0, str(ROOT / "tests" / "gate"))
import runner  # noqa: E402

TIMEOUT_S = 300
MOST_LIFTED = 34  # % of the combinations of a set
SIMGPU = str(ROOT / "scripts" / "simgpu")
AS_OURS = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}  # what liboffload chooses, for runs without it

# Where a script runs; what it does is in scripts.py.
CAPPED = {
    "cap": ["80", "60", "45"],
    "schedule": ["fifo", "late", "random:1", "random:2"],
    "evicted": ["host", "unmapped"],
    "allocator": ["async", "uncached"],
}
# The simulated GPU's note that kernels without a twin make up their results, and what transformers says of its configuration.
EXPECTED = ("simgpu: kernel ", "[transformers] ")


def variables(settings):
    return [f"{name}={value}" for name, value in settings.items()]


def soak(script, rounds, seed):
    """Every pair of the script's choices, features one by one, in each round; over all rounds every pair of all choices."""
    return runner.laid_over(runner.covering_set(script.choices) * rounds, CAPPED, seed=seed)


def quick(script):
    """Every pair of all choices, the script's once each: what is run without liboffload takes as long as the rest."""
    return runner.laid_over(runner.covering_set({**script.choices, "feature": script.together}), CAPPED)


def show_pairs(combinations, choices):
    """Exit status 1 if one is missing."""
    for combination in combinations:
        print(" ".join(f"{key}={value}" for key, value in combination.items()))
    wanted = {pair for keys in itertools.combinations(sorted(choices), 2)
              for pair in itertools.product(*([(key, value) for value in choices[key]] for key in keys))}
    missing = wanted.difference(*map(runner.pairs_of, combinations))
    print(f"{len(combinations)} combinations, {len(wanted) - len(missing)} of {len(wanted)} pairs", *(f"missing: {pair}" for pair in sorted(missing)))
    return 1 if missing else 0


def by_chance(script, generator):
    """Any combination, with one to three features at once."""
    combination = {key: generator.choice(values) for key, values in {**script.choices, **CAPPED}.items()}
    if script.together != script.choices["feature"]:
        combination["feature"] = "+".join(generator.sample(script.choices["feature"], generator.randint(1, 3)))
    return combination


class Result:
    def __init__(self, status, out, err, counts):
        self.status = status
        self.lines = [line for line in out.splitlines() if not line.startswith("peak ")]
        self.peak = next((int(line.split()[1]) for line in out.splitlines() if line.startswith("peak ")), 0)
        self.unexpected = [line for line in err.splitlines() if not line.startswith(EXPECTED)]
        self.counts = counts  # of the simulated GPU

    def failure(self):
        if self.status == 0:
            # A scaler that skips every step would do so with liboffload and without.
            taken = next((line.split() for line in self.lines if line.startswith("taken ")), None)
            return None if taken and taken[1] == taken[3] != "0" else "the optimizer left out steps: " + (" ".join(taken) if taken else "it took none")
        return f"exit status {self.status}: " + "\n".join(self.unexpected)[-3000:]


class Gate:
    """Runs of one script. `warm`: those without liboffload are forked from a Python that is kept; close() ends it."""

    def __init__(self, build, script, longer=False, verbose=False, warm=False):
        self.build = pathlib.Path(build).resolve()
        self.script = script
        self.longer = longer
        self.verbose = verbose
        self.references = {}
        self.lock = threading.Lock()
        self.lifted = []  # combinations whose cap could not be had
        self.tried = 0
        self.environment = clean_environment(self.build)
        self.environment.update(CUBLAS_WORKSPACE_CONFIG=":16:8", CUBLASLT_WORKSPACE_SIZE="64", PYTHONWARNINGS="ignore::FutureWarning")
        self.warm = None
        if warm:
            self.warm = Warm([SIMGPU, "--torch", "--", "env", *variables(AS_OURS)], script.modules, self.environment)

    def close(self):
        if self.warm:
            self.warm.close()

    def device(self, folder, memory, schedule):
        return {"memory": str(memory), "schedule": schedule, "granularity": str(GRANULARITY), "report": str(folder / "simgpu.%p.json")}

    def start(self, command, folder, memory, schedule, settings):
        options = (word for name, value in self.device(folder, memory, schedule).items() for word in ("--" + name, value))
        line = [SIMGPU, "--torch", *options, "--", "env", *variables(settings), *command]
        if self.verbose:
            print("+ SIMGPU_BUILD=" + self.environment["SIMGPU_BUILD"], shlex.join(line), flush=True)
        return subprocess.run(line, env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)

    def start_with_us(self, command, *where):
        return self.start(preloading(self.build / "liboffload.so", command), *where)

    def fork(self, command, folder, memory, schedule, _):
        settings = {"SIMGPU_" + name.upper(): value for name, value in self.device(folder, memory, schedule).items()}
        return self.warm.run(command[1:], settings, folder, TIMEOUT_S)

    def run(self, begin, command, folder, *where):
        try:
            done = begin(command, folder, *where)
        except subprocess.TimeoutExpired as expired:
            return Result(124, "", f"no end after {TIMEOUT_S} s; so far {expired.stderr}", {})
        # Processes that only loaded data have used no kernel.
        reports = [json.loads(file.read_text()) for file in folder.glob("simgpu.*.json")]
        for file in folder.glob("simgpu.*.json"):
            file.unlink()
        return Result(done.returncode, done.stdout, done.stderr, max(reports, key=lambda r: r["kernels"], default={}))

    def together(self, begin, chosen, folder, *where):
        results = []
        for command in self.script.parts(chosen, self.longer, folder):
            results.append(self.run(begin, command, folder, *where))
            if results[-1].status != 0:
                break
        return results

    def reference(self, chosen):
        key = tuple(sorted(chosen.items()))
        with self.lock:
            if key not in self.references:
                self.references[key] = threading.Lock(), []
            lock, results = self.references[key]
        with lock:
            if not results:
                with tempfile.TemporaryDirectory() as folder:
                    results += self.together(self.fork if self.warm else self.start, chosen, pathlib.Path(folder), 2 << 30, "fifo", AS_OURS)
        return results

    def note_cap(self, combination, peak, wanted, memory):
        with self.lock:
            self.tried += 1
            if memory > wanted:
                self.lifted.append(f"cap {combination['cap']} % ({memory * 100 / peak:.0f} %)")

    def close_caps(self):
        """1 if so many caps were lifted that they are no longer what they are called."""
        if not self.tried:
            return 0
        share = 100 * len(self.lifted) // self.tried
        print(f"caps that the largest launch has lifted: {len(self.lifted)} of {self.tried}, at most {MOST_LIFTED} % may be;", ", ".join(sorted(self.lifted)) or "none")
        return 1 if share > MOST_LIFTED else 0

    def check(self, combination):
        chosen = {key: combination[key] for key in self.script.choices}
        expected = self.reference(chosen)
        for result in expected:
            if wrong := result.failure():
                return "without liboffload: " + wrong
            if result.counts["dead_names"]:
                return f"without liboffload launches named {result.counts['dead_names']} dead addresses: the stack is not wiped"
        # Nothing runs in less than what its largest launch names, and a little beside it.
        peak = max(result.peak for result in expected)
        largest = max(result.counts["largest_launch_bytes"] for result in expected)
        wanted = peak * int(combination["cap"]) // 100
        memory = max(wanted, largest * 5 // 4 + (512 << 10)) // GRANULARITY * GRANULARITY
        self.note_cap(combination, peak, wanted, memory)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            results = self.together(self.start_with_us, chosen, folder, memory, combination["schedule"], {
                "OFFLOAD_EVICTED": combination["evicted"],
                "OFFLOAD_PYTORCH_ALLOC": combination["allocator"],
                "OFFLOAD_MIN_SIZE": str(GRANULARITY),
                "OFFLOAD_REPORT": "json",
                "OFFLOAD_REPORT_FILE": str(folder / "offload.%p.json"),
            })
            reports = [json.loads(file.read_text()) for file in folder.glob("offload.*.json")]
        for result, other in zip(results, expected):
            if wrong := result.failure():
                return wrong
            if result.lines != other.lines:
                return "other results:\n" + "\n".join(result.lines) + "\ninstead of\n" + "\n".join(other.lines)
            if result.unexpected:
                return "said on standard error: " + "\n".join(result.unexpected)[-2000:]
            if result.counts["dead_names"]:
                return f"launches named {result.counts['dead_names']} dead addresses: the stack is not wiped"
            if result.counts["names_hash"] != other.counts["names_hash"]:
                return "the launches named other allocations than without liboffload"
        if not any(report["bytes_out"] for report in reports):
            return "nothing was moved, so nothing was tested"
        if any(report["peak_bytes_with"] > memory for report in reports):
            return f"more was mapped than the device of {memory} bytes has"
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--script", choices=sorted(SCRIPTS), default="train")
    parser.add_argument("--rounds", type=int, default=3, help="of soak, each with every pair of the script's choices, and together with every pair")
    parser.add_argument("--of", choices=["quick", "soak"], default="quick", help="what pairs shows")
    parser.add_argument("--seconds", type=float, default=600, help="of chance: none is begun after that")
    parser.add_argument("--seed", type=int, help="of chance, soak and pairs; it is printed")
    parser.add_argument("what", choices=["quick", "pairs", "soak", "chance", "one"])
    parser.add_argument("choice", nargs="*")
    arguments = parser.parse_args()
    script = SCRIPTS[arguments.script]
    if arguments.what == "pairs":
        if arguments.of == "soak":
            return show_pairs(soak(script, arguments.rounds, arguments.seed or 0), {**script.choices, **CAPPED})
        return show_pairs(quick(script), {**script.choices, "feature": script.together, **CAPPED})
    if lack := missing(arguments.build, script.hugging_face):
        print(lack)
        return SKIPPED
    gate = Gate(arguments.build, script, longer=arguments.what == "soak", verbose=arguments.what == "one", warm=arguments.what == "quick")
    again = f"tests/torch/gate.py --build {gate.build} --script {script.name} one"
    if arguments.what == "one":
        combination = {key: values[0] for key, values in {**script.choices, **CAPPED}.items()}
        combination.update(choice.split("=", 1) for choice in arguments.choice)
        return runner.run_all(gate.check, [combination], 1, again)
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
    if arguments.what in ("chance", "soak"):
        print(f"--seed {seed}", flush=True)
    if arguments.what == "chance":
        generator, end = random.Random(seed), time.monotonic() + arguments.seconds
        tried = failed = 0
        while time.monotonic() < end:
            combinations = [by_chance(script, generator) for _ in range(2 * arguments.jobs)]
            failed += runner.run_all(gate.check, combinations, arguments.jobs, again)
            tried += len(combinations)
        return runner.close(tried, failed)
    if arguments.what == "quick":
        combinations = quick(script)
    else:
        combinations = soak(script, arguments.rounds, seed)
    failed = runner.run_all(gate.check, combinations, arguments.jobs, again)
    gate.close()
    failed += gate.close_caps()
    return runner.close(len(combinations), failed)


if __name__ == "__main__":
    sys.exit(main())
