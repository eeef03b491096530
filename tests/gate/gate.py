#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The central gate: a training run under a memory cap ends with the same bits as one with room.

  gate.py --build DIR quick     every pair of choices, on a tiny model (part of `make test`)
  gate.py --build DIR soak      every combination, and the smallest caps by bisection
  gate.py --build DIR smallest  prints the smallest cap of each kind, for smallest_caps.json
  gate.py --build DIR races     threads held up inside the library, by --seeds N seeds from --first on
  gate.py --build DIR one cap=45 schedule=late evicted=host allocator=async feature=plain
                                one combination, with the commands shown

Each combination runs tests/workloads/train_gpt twice on the simulated GPU: with room and without liboffload, and with it on a
device of cap % of the peak. Equal standard output (losses to the last bit, peak, hash of all weights), exit status 0 (the
simulated GPU turns any report of its checker into 97), nothing on standard error, and something moved."""

import argparse
import concurrent.futures
import functools
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import runner

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRANULARITY = 16 << 10
TIMEOUT_S = 120
TOO_SMALL = ("out of memory", "an operation uses more than")  # what is said under caps below the smallest

CHOICES = {
    "cap": [80, 60, 45],
    "schedule": ["fifo", "late", "random:1", "random:2"],
    "evicted": ["host", "unmapped"],
    "allocator": ["sync", "async"],
    "feature": ["plain", "accumulate", "eval", "checkpoint", "optimizer-stream", "vary-sequence", "everything"],
}
SMALLEST_SCHEDULES = ["fifo", "late", "random:1"]
SOAK_CHOICES = dict(CHOICES, schedule=["fifo", "late"] + [f"random:{seed}" for seed in range(1, 7)])
FEATURES = {
    "plain": [],
    "accumulate": ["--accumulate", "2"],
    "eval": ["--eval-every", "1"],
    "checkpoint": ["--checkpoint-every", "2"],
    "optimizer-stream": ["--optimizer-stream"],
    "vary-sequence": ["--vary-sequence"],
    "everything": ["--accumulate", "2", "--eval-every", "1", "--checkpoint-every", "2", "--optimizer-stream", "--vary-sequence"],
}


RACING_CLIENTS = ["threads", "capture-beside-thread", "two-contexts", "two-devices-two-threads", "half-each"]


class Gate:
    def __init__(self, build, library=None, verbose=False):
        self.build = pathlib.Path(build).resolve()
        self.library = pathlib.Path(library or self.build / "liboffload.so").resolve()
        self.verbose = verbose

    def command(self, allocator, feature):
        return [str(self.build / "workloads" / "train_gpt"), "--tiny", "--layers", "4", "--batch", "8", "--quiet", "--allocator", allocator,
                *FEATURES[feature]]

    def run(self, command, memory, schedule, extra_environment):
        simgpu = [str(ROOT / "scripts" / "simgpu"), "--memory", str(memory), "--schedule", schedule,
                  "--granularity", str(GRANULARITY), "--"]
        settings = [f"{name}={value}" for name, value in extra_environment.items()]
        line = simgpu + (["env", *settings] if settings else []) + command
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("OFFLOAD_", "SIMGPU_"))}
        environment["SIMGPU_BUILD"] = str(self.build)
        if self.verbose:
            print("+ SIMGPU_BUILD=" + environment["SIMGPU_BUILD"], " ".join(line), flush=True)
        try:
            return subprocess.run(line, env=environment, capture_output=True, text=True,
                                  timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as expired:
            return subprocess.CompletedProcess(
                line, 124, expired.stdout or "", f"no end after {TIMEOUT_S} s")

    @functools.lru_cache(maxsize=None)
    def reference(self, allocator, feature):
        """Standard output and peak in bytes of the run with room."""
        done = self.run(self.command(allocator, feature), 1 << 30, "fifo", {})
        if done.returncode != 0:
            sys.exit(f"the run without liboffload failed ({done.returncode}):\n{done.stderr}")
        peak = next(int(line.split()[1]) for line in done.stdout.splitlines()
                    if line.startswith("peak "))
        return done.stdout, peak

    def with_liboffload(self, allocator, feature, memory, schedule, evicted, more=None):
        """(what went wrong or None, the report)"""
        expected, _ = self.reference(allocator, feature)
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            done = self.run(self.command(allocator, feature), memory, schedule, {
                "LD_PRELOAD": str(self.library),
                "OFFLOAD_EVICTED": evicted,
                "OFFLOAD_MIN_SIZE": str(GRANULARITY),
                "OFFLOAD_REPORT": "json",
                "OFFLOAD_REPORT_FILE": str(report),
                **(more or {}),
            })
            if done.returncode != 0:
                return f"exit status {done.returncode}: {done.stderr.strip()[-2000:]}", {}
            if done.stdout != expected:
                return f"other results:\n{done.stdout}instead of\n{expected}", {}
            if done.stderr:
                return f"said on standard error: {done.stderr.strip()[-2000:]}", {}
            if not report.exists():
                return "no report was written", {}
            return None, json.loads(report.read_text())

    def check(self, combination):
        _, peak = self.reference(combination["allocator"], combination["feature"])
        memory = peak * combination["cap"] // 100 // GRANULARITY * GRANULARITY
        wrong, report = self.with_liboffload(combination["allocator"], combination["feature"], memory,
                                             combination["schedule"], combination["evicted"], combination.get("more"))
        if wrong is None and report["bytes_out"] == 0:
            wrong = "nothing was moved, so nothing was tested"
        if wrong is None and report["evicted"] != combination["evicted"]:
            wrong = f"evicted memory was shown as {report['evicted']}"
        if wrong is None and report["peak_bytes_with"] > memory:
            wrong = f"{report['peak_bytes_with']} bytes were mapped on a device of {memory}"
        return wrong

    def smallest(self, allocator, evicted, low_percent=5):
        """The smallest cap in bytes at which the plain run works, by bisection."""
        _, peak = self.reference(allocator, "plain")
        low = peak * low_percent // 100 // GRANULARITY  # taken not to work
        high = peak // GRANULARITY + 1
        while high - low > 1:
            middle = (low + high) // 2
            wrong, _ = self.with_liboffload(allocator, "plain", middle * GRANULARITY, "fifo", evicted)
            low, high = (low, middle) if wrong is None else (middle, high)
        return high * GRANULARITY


def run_all(gate, combinations, jobs):
    for allocator, feature in sorted({(c["allocator"], c["feature"]) for c in combinations}):
        gate.reference(allocator, feature)
    return runner.run_all(gate.check, combinations, jobs, f"tests/gate/gate.py --build {gate.build} one")


def known_smallest():
    """{(allocator, evicted): bytes}"""
    known = json.loads((ROOT / "tests" / "gate" / "smallest_caps.json").read_text())
    return {tuple(kind.split("/")): expected for kind, expected in known.items()}


def check_smallest(gate, bisect, jobs):
    """The smallest caps are what is written down, to one granule: they may not get worse, and where they get better that is written
    down. With less, memory is out and that is said, no worse. And a run at the smallest cap is right in every order of execution."""

    def look(case):
        (allocator, evicted), expected, schedule = case
        if schedule is not None:
            wrong, report = gate.with_liboffload(allocator, "plain", expected + GRANULARITY, schedule, evicted)
            if wrong is None and report["peak_bytes_with"] > expected + GRANULARITY:
                wrong = f"{report['peak_bytes_with']} bytes were mapped"
            return wrong
        if bisect:
            found = gate.smallest(allocator, evicted)
            return None if abs(found - expected) <= GRANULARITY else f"now {found}"
        wrong, _ = gate.with_liboffload(allocator, "plain", expected - 2 * GRANULARITY, "fifo", evicted)
        if wrong is None:
            return "less is enough now: write down what `gate.py smallest` prints"
        return None if any(text in wrong for text in TOO_SMALL) else wrong

    cases = [(kind, expected, schedule) for kind, expected in known_smallest().items() for schedule in [None, *SMALLEST_SCHEDULES]]
    for allocator in CHOICES["allocator"]:
        gate.reference(allocator, "plain")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (kind, expected, schedule), wrong in zip(cases, pool.map(look, cases)):
            _, peak = gate.reference(kind[0], "plain")
            print(f"{'FAIL' if wrong else 'ok  '} smallest cap {'/'.join(kind)} {schedule or 'is as written down'}: {expected} bytes, "
                  f"{100 * expected / peak:.0f} % of the peak {wrong or ''}", flush=True)
            failed += wrong is not None
    return failed


def check_devices(gate):
    """The same training on two devices of one process at the same time, each with 60 % of its peak: the weights of both are those of
    one alone."""

    def look(case):
        allocator, schedule, evicted = case
        expected, peak = gate.reference(allocator, "plain")
        memory = peak * 60 // 100 // GRANULARITY * GRANULARITY
        command = [*gate.command(allocator, "plain"), "--devices", "2"]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.json"
            done = gate.run(command, memory, schedule, {
                "SIMGPU_DEVICES": "2", "LD_PRELOAD": str(gate.build / "liboffload.so"), "OFFLOAD_EVICTED": evicted,
                "OFFLOAD_MIN_SIZE": str(GRANULARITY), "OFFLOAD_REPORT": "json", "OFFLOAD_REPORT_FILE": str(file)})
            if done.returncode != 0 or done.stderr:
                return f"exit status {done.returncode}: {done.stderr.strip()[-2000:]}"
            if done.stdout != f"device 0\n{expected}device 1\n{expected}":
                return f"other results:\n{done.stdout}instead of twice\n{expected}"
            devices = json.loads(file.read_text())["devices"]
        if len(devices) != 2 or any(each["bytes_in"] == 0 or each["peak_bytes_with"] > memory for each in devices):
            return f"not each of two devices moved and kept to {memory} bytes: {devices}"
        return None

    failed = 0
    for case in [("sync", "fifo", "host"), ("async", "late", "host"), ("async", "random:1", "unmapped")]:
        wrong = look(case)
        print(f"{'FAIL' if wrong else 'ok  '} two devices {' '.join(case)} {wrong or ''}", flush=True)
        failed += wrong is not None
    return failed


def check_accounts(gate):
    """OFFLOAD_VERIFY finds nothing, and the list of transfers and the report tell of the same bytes."""
    _, peak = gate.reference("async", "plain")
    memory = peak // 2 // GRANULARITY * GRANULARITY
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "transfers.csv"
        wrong, report = gate.with_liboffload("async", "plain", memory, "late", "host", {
            "OFFLOAD_VERIFY": "1", "OFFLOAD_TRANSFERS": str(table)})
        if wrong is None:
            lines = [line.split(",") for line in table.read_text().splitlines()]
            rows = [dict(zip(lines[0], line)) for line in lines[1:]]
            for direction, key in (("out", "bytes_out"), ("in", "bytes_in")):
                listed = sum(int(row["bytes"]) for row in rows if row["direction"] == direction)
                if listed != report[key]:
                    wrong = f"{listed} bytes {direction} are listed, {report[key]} reported"
    print(f"{'FAIL' if wrong else 'ok  '} checksums, and the list of transfers {wrong or ''}", flush=True)
    return int(wrong is not None)


def check_races(gate, seeds, first, jobs):
    """The run and the clients with threads, whose threads give way and sleep inside the library as the seed has it. Each seed is
    another combination of the choices. Where two threads meet is the machine's doing too: a seed that failed may pass again."""
    gate.library = gate.build / "tests" / "liboffload-yield.so"
    choices = list(itertools.product(*CHOICES.values()))

    def look(seed):
        combination = dict(zip(CHOICES, choices[seed * 7919 % len(choices)]))
        with tempfile.TemporaryDirectory() as folder:
            count = pathlib.Path(folder) / "count"
            yields = {"YIELD_SEED": str(seed), "YIELD_COUNT": str(count)}
            wrong = gate.check({**combination, "more": yields})
            times = int(count.read_text()) if count.exists() else 0
            if wrong is None and times < 100:
                wrong = f"threads gave way {times} times"
            name = f"seed {seed}, {times} times: " + " ".join(f"{key}={value}" for key, value in combination.items())
            if wrong is None:
                scenario, schedule = RACING_CLIENTS[seed % len(RACING_CLIENTS)], combination["schedule"]
                name += f"; {scenario}"
                client = [sys.executable, str(ROOT / "tests" / "clients" / "run.py"), "--build", str(gate.build), "--library",
                          str(gate.library), "--schedule", schedule, "--set", f"YIELD_SEED={seed}", "client", "proc", scenario]
                done = subprocess.run(client, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
                if done.returncode != 0:
                    wrong = f"{' '.join(client)}: {done.stdout}{done.stderr}"
            return name, wrong

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, wrong in pool.map(look, range(first, first + seeds)):
            print(("FAIL " if wrong else "ok   ") + name + (f"\n     {wrong}" if wrong else ""), flush=True)
            failed += wrong is not None
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--library", help="in place of liboffload.so")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("what", choices=["quick", "soak", "races", "smallest", "one"])
    parser.add_argument("choice", nargs="*")
    arguments = parser.parse_args()
    gate = Gate(arguments.build, arguments.library, verbose=arguments.what == "one")
    if arguments.what == "smallest":
        print(json.dumps({f"{allocator}/{evicted}": gate.smallest(allocator, evicted)
                          for allocator in CHOICES["allocator"] for evicted in CHOICES["evicted"]},
                         indent=2))
        return 0
    if arguments.what == "one":
        combination = dict(choice.split("=", 1) for choice in arguments.choice)
        combination["cap"] = int(combination["cap"])
        return run_all(gate, [combination], 1)
    if arguments.what == "races":
        return runner.close(arguments.seeds, check_races(gate, arguments.seeds, arguments.first, arguments.jobs))
    if arguments.what == "quick":
        combinations = runner.covering_set(CHOICES)
    else:
        combinations = [dict(zip(SOAK_CHOICES, values))
                        for values in itertools.product(*SOAK_CHOICES.values())]
    failed = run_all(gate, combinations, arguments.jobs)
    failed += check_devices(gate)
    failed += check_accounts(gate)
    failed += check_smallest(gate, bisect=arguments.what == "soak", jobs=arguments.jobs)
    return runner.close(len(combinations), failed)


if __name__ == "__main__":
    sys.exit(main())
