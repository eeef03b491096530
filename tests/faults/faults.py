#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of the driver that fail: a program under a cap ends with the right bits, or with the driver's own code.

  faults.py --build DIR quick   each entry that liboffload calls fails once or twice (part of `make test`)
  faults.py --build DIR soak    the 1st to the 20th call of each, and later ones by chance
  faults.py --build DIR one cuMemMap:7=999 [program=train] [allocator=async] [evicted=host] [schedule=late]

The programs are a training run and clients (tests/clients) that capture, launch graphs, and use two devices. In the soak each entry
fails at least once, in one of them.

The simulated GPU makes the call fail without any other effect (SIMGPU_FAULTS). Then the program goes on and its losses and
weights are those of an undisturbed run; or it ends with its own message about that code, or about memory that ran out. Never
other results, a report of the checker, a signal, or no end."""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRANULARITY = 16 << 10
CAP_PERCENT = 45
TIMEOUT_S = 60
PROGRAM = ["--tiny", "--layers", "4", "--batch", "8", "--steps", "3", "--optimizer-stream", "--quiet"]

# Versions and per-thread variants of an entry count as one.
TABLE_CALLS = re.compile(r"real<Entry::(cu\w+?)(?:_v\d)?(?:_pt[sd][sz])?>")
OUT_OF_MEMORY, INVALID_VALUE, UNKNOWN = 2, 1, 999
CODES = {
    "cuMemCreate": [OUT_OF_MEMORY, UNKNOWN],
    "cuMemHostAlloc": [OUT_OF_MEMORY, UNKNOWN],
    "cuMemAddressReserve": [OUT_OF_MEMORY, UNKNOWN],
    "cuMemSetAccess": [INVALID_VALUE, UNKNOWN],
    "cuModuleLoadData": [OUT_OF_MEMORY, 209],
}
CLIENTS = ["capture-replay", "graph-by-hand", "graph-update", "node-parameters", "two-devices", "peer-copies", "graph-over-devices",
           "green-contexts", "copies-with-unmanaged", "table-in-own-pool"]
CLIENT_GRANULARITY = 64 << 10
# What a client says of a call's code, and nothing else that it may find wrong.
CLIENT_SAYS_CODE = re.compile(r"^client: \S+: .*\) is [1-9]\d*, not 0$", re.MULTILINE)
CHOICES = {"allocator": ["sync", "async"], "evicted": ["host", "unmapped", "auto"], "schedule": ["fifo", "late"]}
SOAK_CALLS = 20
SOAK_LATER_CALLS = 50
LATEST_CALL = 2000
NEVER_CAME = "never called that often"


def called_entries():
    """The entries that liboffload calls by itself, found in its sources."""
    found = set()
    for path in (ROOT / "interpose").rglob("*.cpp"):
        if "cli" not in path.parts:
            found |= set(TABLE_CALLS.findall(path.read_text()))
    found -= {"cuGetErrorName", "cuDriverGetVersion"}  # these cannot be made to fail
    found -= {"cuKernelGetName"}  # comes only where cuFuncGetName is refused
    return sorted(found)


class Faults:
    def __init__(self, build, verbose=False):
        self.build = pathlib.Path(build).resolve()
        self.verbose = verbose
        self.expected = {}

    def run(self, memory, choice, more):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("OFFLOAD_", "SIMGPU_"))}
        environment.update(
            LD_LIBRARY_PATH=str(self.build / "simgpu"),
            SIMGPU_MEMORY=str(memory),
            SIMGPU_GRANULARITY=str(GRANULARITY),
            SIMGPU_SCHEDULE=choice["schedule"],
            SIMGPU_WATCHDOG="20",
            **more,
        )
        if choice["program"] == "train":
            command = [str(self.build / "workloads" / "train_gpt"), *PROGRAM, "--allocator", choice["allocator"]]
        else:
            environment.update(SIMGPU_DEVICES="2", SIMGPU_GRANULARITY=str(CLIENT_GRANULARITY))
            command = [str(self.build / "clients" / "client"), "proc", choice["program"]]
        if self.verbose:
            print("+", " ".join(f"{k}={v}" for k, v in environment.items() if k.startswith(("LD_", "OFF", "SIM"))), *command)
        try:
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as expired:
            return subprocess.CompletedProcess(command, 124, "", f"no end after {TIMEOUT_S} s: {expired.stderr or ''}")

    def reference(self, allocator):
        if allocator not in self.expected:
            done = self.run(1 << 30, {"program": "train", "allocator": allocator, "schedule": "fifo"}, {})
            if done.returncode != 0:
                sys.exit(f"the undisturbed run failed ({done.returncode}): {done.stderr}")
            peak = int(re.search(r"^peak (\d+)$", done.stdout, re.MULTILINE).group(1))
            self.expected[allocator] = (done.stdout, peak * CAP_PERCENT // 100 // GRANULARITY * GRANULARITY)
        return self.expected[allocator]

    def disturbed(self, memory, granularity, fault, choice, more):
        """How the run ended, and whether the call came."""
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            done = self.run(memory, choice, {
                "LD_PRELOAD": str(self.build / "liboffload.so"),
                "OFFLOAD_EVICTED": choice["evicted"],
                "OFFLOAD_MIN_SIZE": str(granularity),
                "SIMGPU_FAULTS": fault,
                "SIMGPU_REPORT": str(report),
                **more,
            })
            # Whoever ended at once, without a report, saw it.
            came = not report.exists() or json.loads(report.read_text())["calls_failed_on_request"] > 0
        if self.verbose:
            print(done.stdout, done.stderr, f"status {done.returncode}", sep="\n")
        return done, came

    def check(self, fault, choice):
        """What was wrong, or None; and how it ended."""
        if choice["program"] != "train":
            return self.check_client(fault, choice)
        expected, memory = self.reference(choice["allocator"])
        done, came = self.disturbed(memory, GRANULARITY, fault, choice, {"OFFLOAD_SLOT_CHUNK": "256KiB"})
        status = done.returncode
        if status == 0:
            return (None if done.stdout == expected else "other results"), "went on" if came else NEVER_CAME
        if status < 0:
            return f"killed by {signal.Signals(-status).name}", ""
        # The program's own message: it saw an error, and no wrong result was printed before.
        if status in (3, 4) and expected.startswith(done.stdout):
            return None, "out of memory" if status == 3 else "the driver's code"
        return f"status {status}", ""


    def check_client(self, fault, choice):
        done, came = self.disturbed(64 << 20, CLIENT_GRANULARITY, fault, choice,
                                    {"OFFLOAD_SLOT_CHUNK": "1MiB", "OFFLOAD_GPU_LIMIT": "2560KiB"})
        if done.returncode == 0:
            return (None if done.stdout.endswith("ok\n") else "other results"), "went on" if came else NEVER_CAME
        if done.returncode < 0:
            return f"killed by {signal.Signals(-done.returncode).name}", ""
        if done.returncode == 1 and CLIENT_SAYS_CODE.search(done.stderr):
            return None, "the driver's code"
        return f"status {done.returncode}: {done.stderr[-300:]}", ""


def pairs(entries, calls, rng, all_over=0):
    """Each entry and call with one of the codes and one set of choices, turn by turn; the first `all_over` calls in every program and
    with every EVICTED."""
    sets = [dict(zip(CHOICES, values)) for values in itertools.product(*CHOICES.values())]
    turn = rng.randrange(len(sets))
    for entry in entries:
        for call in calls(entry):
            codes = CODES.get(entry, [UNKNOWN, OUT_OF_MEMORY])
            fault = f"{entry}:{call}={codes[turn // len(sets) % len(codes)]}"
            choice = sets[turn % len(sets)]
            first = call <= all_over
            for evicted in CHOICES["evicted"] if first else [choice["evicted"]]:
                yield fault, {**choice, "program": "train", "evicted": evicted}
            for client in CLIENTS if first else [CLIENTS[turn % len(CLIENTS)]]:
                yield fault, {**choice, "program": client}
            turn += 1


def run_all(faults, jobs, all_must_come):
    start = time.monotonic()
    ends = {}
    came = {}  # by entry
    failed = 0
    for allocator in CHOICES["allocator"]:
        faults.reference(allocator)
    jobs = list(jobs)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (fault, choice), (wrong, end) in zip(jobs, pool.map(lambda job: faults.check(*job), jobs)):
            ends[end] = ends.get(end, 0) + 1
            entry = fault.split(":")[0]
            came[entry] = came.get(entry, False) or end != NEVER_CAME
            if wrong is None:
                continue
            failed += 1
            print(f"{fault}: {wrong}; again: tests/faults/faults.py --build {faults.build} one {fault} "
                  + " ".join(f"{key}={value}" for key, value in choice.items()), flush=True)
    told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()) if end)
    print(f"{len(jobs)} failing calls ({told}), {failed} failed, {time.monotonic() - start:.0f} s")
    missed = sorted(entry for entry, it_did in came.items() if not it_did)
    if missed:
        print("no call of these came:", *missed)
    return failed == 0 and ends.get("went on", 0) > 0 and not (missed and all_must_come)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("what", choices=["quick", "soak", "one"])
    parser.add_argument("rest", nargs="*")
    arguments = parser.parse_args()
    faults = Faults(arguments.build, arguments.what == "one")
    rng = random.Random(arguments.seed)
    entries = called_entries()
    if arguments.what == "one":
        choice = {"program": "train", **{key: values[0] for key, values in CHOICES.items()}}
        choice.update(word.split("=") for word in arguments.rest[1:])
        wrong, end = faults.check(arguments.rest[0], choice)
        print(wrong or end)
        sys.exit(wrong is not None)
    if arguments.what == "quick":
        good = run_all(faults, pairs(entries, lambda entry: sorted({rng.randint(1, 4), rng.randint(5, 60)}), rng), False)
    else:
        later = lambda: sorted(rng.randint(SOAK_CALLS + 1, LATEST_CALL) for _ in range(SOAK_LATER_CALLS))
        good = run_all(faults, pairs(entries, lambda entry: list(range(1, SOAK_CALLS + 1)) + later(), rng, all_over=2), True)
    sys.exit(not good)


if __name__ == "__main__":
    main()
