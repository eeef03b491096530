#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs by chance: each ends with the same results with liboffload, under a cap, as without it.

  random_programs.py --build DIR [--seconds N] [--seed N] [--operations N]
  random_programs.py --build DIR --one SEED        one of them, with the commands shown

A program's seed chooses its size, its threads, the cap, the schedule and the options. The simulated GPU's checker must be silent,
nothing may be said, and every so often a program runs a hundred times as long, in which the process must not grow beyond what it
grows without liboffload."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 1800  # the simulated GPU finds out sooner about what hangs
# How much more a process may grow than it does without liboffload.
GROWTH_KIB = 12 << 10  # the simulated GPU's own comes and goes
LONG_GROWTH_KIB = 4 << 10
OWN_MEMORY_KIB = 3 << 10  # what liboffload has allocated when a program ends, however long it was
# Some run a hundred times as long, to see that memory does not grow: without the simulated GPU's checker, which remembers who read
# what and grows itself.
LONG_EVERY = 50
LONG_FROM = 100_000  # operations


def settings_of(seed, operations):
    """What one program is."""
    rng = random.Random(seed)
    live = rng.choice([6, 12, 20])
    return {
        "seed": seed,
        "operations": operations,
        "threads": rng.choice([1, 2, 3]),
        "live": live,
        "captures": rng.random() < 0.3,
        "memory_kib": live * 1024 * rng.choice([60, 75, 90]) // 100,
        "schedule": rng.choice(["fifo", "late", f"random:{seed}"]),
        "evicted": rng.choice(["host", "unmapped"]),
        "victims": rng.choice(["ordered", "ordered", "finished"]),
        "verify": rng.choice([0, 0, 1]),
    }


class Programs:
    def __init__(self, build, verbose):
        self.build = pathlib.Path(build).resolve()
        self.verbose = verbose

    def run(self, program, environment):
        command = [str(self.build / "soak" / "random_program")]
        for name in ("seed", "operations", "threads", "live"):
            command += [f"--{name}", str(program[name])]
        if program["captures"]:
            command.append("--captures")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("OFFLOAD_", "SIMGPU_"))}
        environment = {"LD_LIBRARY_PATH": str(self.build / "simgpu"), "SIMGPU_GRANULARITY": "16KiB", "SIMGPU_WATCHDOG": "60",
                       **environment}
        if program["operations"] >= LONG_FROM:
            environment["SIMGPU_CHECK"] = "off"
        if self.verbose:
            print("+", *(f"{name}={value}" for name, value in environment.items()), *command, flush=True)
        return subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)

    def check(self, program):
        """(what was wrong or None, buffers that moved)"""
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            try:
                plain = self.run(program, {"SIMGPU_MEMORY": "256MiB", "SIMGPU_SCHEDULE": "fifo"})
                done = self.run(program, {
                    "SIMGPU_MEMORY": f"{program['memory_kib']}KiB",
                    "SIMGPU_SCHEDULE": program["schedule"],
                    "LD_PRELOAD": str(self.build / "liboffload.so"),
                    "OFFLOAD_MIN_SIZE": "16KiB",
                    "OFFLOAD_SLOT_CHUNK": "512KiB",
                    "OFFLOAD_EVICTED": program["evicted"],
                    "OFFLOAD_VICTIMS": program["victims"],
                    "OFFLOAD_VERIFY": str(program["verify"]),
                    "OFFLOAD_REPORT": "json",
                    "OFFLOAD_REPORT_FILE": str(report),
                })
            except subprocess.TimeoutExpired:
                return f"no end after {TIMEOUT_S} s", 0
            if plain.returncode != 0:
                return f"without liboffload status {plain.returncode}: {plain.stderr[-1000:]}", 0
            if done.returncode != 0:
                return f"status {done.returncode}: {done.stderr[-2000:]}", 0
            if done.stdout != plain.stdout:
                return "other results", 0
            lines = done.stderr.splitlines()
            if len(lines) != 1:
                return "said: " + done.stderr[-2000:], 0
            grown, allowed = (int(re.search(r"grown KiB (\d+)", each.stderr).group(1)) for each in (done, plain))
            if grown > allowed + (LONG_GROWTH_KIB if program["operations"] >= LONG_FROM else GROWTH_KIB):
                return f"grew by {grown} KiB, and by {allowed} without liboffload", 0
            seen = json.loads(report.read_text())
            if seen["verify_failures"]:
                return "a checksum differs", 0
            if seen["own_memory_bytes"] > OWN_MEMORY_KIB << 10:
                return f"has {seen['own_memory_bytes'] >> 10} KiB of its own at the end", 0
            return None, seen["copies_out"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1, help="of the first program; 0: by chance")
    parser.add_argument("--operations", type=int, default=1500)
    parser.add_argument("--one", type=int)
    arguments = parser.parse_args()
    if arguments.seed == 0:
        arguments.seed = int(time.time())
        print(f"--seed {arguments.seed}", flush=True)
    programs = Programs(arguments.build, arguments.one is not None)
    if arguments.one is not None:
        wrong, moved = programs.check(settings_of(arguments.one, arguments.operations))
        print(wrong or f"good; {moved} buffers left")
        sys.exit(wrong is not None)
    start = time.monotonic()
    counts = {"programs": 0, "moved": 0, "failed": 0}

    def play(seed):
        if time.monotonic() - start > arguments.seconds:
            return
        long = (seed - arguments.seed) % LONG_EVERY == LONG_EVERY - 1
        operations = arguments.operations * (100 if long else 1)
        wrong, moved = programs.check(settings_of(seed, operations))
        counts["programs"] += 1
        counts["moved"] += moved
        if wrong is not None:
            counts["failed"] += 1
            print(f"seed {seed}: {wrong}\nagain: tests/soak/random_programs.py --build {programs.build} --one {seed} "
                  f"--operations {operations}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(play, range(arguments.seed, arguments.seed + 100000)))
    print(f"{counts['programs']} programs, {counts['moved']} buffers left, {counts['failed']} failed, "
          f"{time.monotonic() - start:.0f} s")
    sys.exit(counts["failed"] != 0 or counts["moved"] == 0)


if __name__ == "__main__":
    main()
