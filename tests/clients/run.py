#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one client scenario on the simulated GPU, with liboffload under a cap that its buffers exceed.

    tests/clients/run.py --build build CLIENT ROAD SCENARIO

The client compares every word itself. Here it is checked that buffers really left, that nothing was said that should
not be, and that the simulated GPU's checker found nothing (it would make the status non-zero).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

# Each of two devices was kept within the limit, and the totals are theirs.
BOTH_MOVED = (
    "[each['device'] for each in devices] == [0, 1]",
    "all(each['copies_out'] > 0 and each['copies_in'] > 0 for each in devices)",
    "all(each['peak_bytes_with'] <= gpu_limit_bytes < each['peak_bytes_without'] for each in devices)",
    "sum(each['bytes_out'] for each in devices) == bytes_out",
    "peak_bytes_with <= sum(each['peak_bytes_with'] for each in devices)",
)

# The first call of each asks for memory that there is not, and gets 16 pages of what liboffload holds.
REFUSED_ONCE = (
    "cuModuleGetGlobal", "cuFuncGetAttribute", "cuFuncSetAttribute", "cuFuncGetModule", "cuFuncLoad", "cuMemAllocManaged",
    "cuMemPoolCreate", "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuCtxCreate", "cuGraphAddMemsetNode",
    "cuGraphExecUpdate", "cuGraphLaunch",
)

# What differs from the rule: buffers move and nothing is printed.
EXPECTED = {
    "unknown-entry": {"lines": ["cuSimgpuUnknownA"], "environment": {"SIMGPU_EXTRA_ENTRIES": "cuSimgpuUnknownA"}},
    "unknown-entry-not-called": {"environment": {"SIMGPU_EXTRA_ENTRIES": "cuSimgpuUnknownA"}},
    "too-much": {"lines": ["out of memory"]},
    "peer-access": {"environment": {"SIMGPU_DEVICES": "2"}},
    "peer-access-taken": {"environment": {"SIMGPU_DEVICES": "2"}},
    "pool-access": {"environment": {"SIMGPU_DEVICES": "2"}},
    "pool-access-first": {"environment": {"SIMGPU_DEVICES": "2"}},
    "unknown-entry-on-devices": {
        "lines": ["cuSimgpuUnknownA"],
        "environment": {"SIMGPU_DEVICES": "2", "SIMGPU_EXTRA_ENTRIES": "cuSimgpuUnknownA"},
    },
    "answers-by-device": {"environment": {"SIMGPU_DEVICES": "2"}},
    "freed-from-other-device": {"environment": {"SIMGPU_DEVICES": "2"}},
    "flag-on-other-device": {"environment": {"SIMGPU_DEVICES": "2"}, "holds": ["devices[1]['copies_out'] > 0"]},
    "flag-before-device": {"environment": {"SIMGPU_DEVICES": "2"}, "holds": ["devices[1]['copies_out'] > 0"]},
    **{
        name: {"environment": {"SIMGPU_DEVICES": "2"}, "holds": BOTH_MOVED}
        for name in (
            "devices-in-turn", "devices-in-threads", "two-devices", "two-devices-two-threads", "peer-copies",
            "device-reset", "stream-ordered-on-devices", "crossed-threads", "crossed-halves", "graph-over-devices",
            "table-of-other-device", "captured-copies-over-devices", "copies-of-other-device",
        )
    },
    "copies-with-unmanaged": {"environment": {"SIMGPU_DEVICES": "2"}},
    "copies-with-mapped": {"environment": {"SIMGPU_DEVICES": "2"}},
    "copy-behind-flag": {"lines": ["an operation uses more than there is room for"]},
    **{
        name: {"environment": {"SIMGPU_DEVICES": "2"}}
        for name in ("flag-on-idle-device", "flag-on-new-device", "device-during-capture", "per-thread-flag-before-device")
    },
    "pitched": {"moves": False},
    # What moved just before is not counted.
    "sticky-error": {"lines": ["the context is lost"], "moves": None,
                     "report": {"incomplete": "the context was lost, and what moved just before may not be counted"}},
    "refused-calls": {"lines": ["out of memory", "out of memory"]},
    "memory-of-own-context": {
        "moves": False,
        "report": {"reason": "other_memory_ran_out", "refused_elsewhere": 1, "pass_through": {"unmanaged_memory": 1}},
    },
    "refused-once": {
        "environment": {"SIMGPU_FAULTS": ",".join(f"{name}:1=2" for name in REFUSED_ONCE)},
        # What cuModuleGetGlobal got did not help: there is no such variable.
        "report": {"given_way_bytes": (len(REFUSED_ONCE) - 1) << 20},
    },
    # What had been counted when the signal came is not known.
    "exit-in-handler": {"moves": None},
}


def differences(report, wanted):
    found = []
    for key, value in wanted.items():
        if isinstance(value, dict):
            found += differences(report.get(key, {}), value)
        elif report.get(key) != value:
            found.append(f"{key} is {report.get(key)}, not {value}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--library", help="in place of liboffload.so")
    parser.add_argument("--limit", default="2560KiB")
    parser.add_argument("--schedule", default="fifo")
    parser.add_argument("--evicted", default="auto")
    parser.add_argument("--seconds", type=int, default=100, help="after which it hangs")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable")
    parser.add_argument("--says", action="append", default=[], help="part of the one line expected for it")
    parser.add_argument("--still", action="store_true", help="nothing is to move")
    parser.add_argument("--pytorch", action="store_true", help="let the process look like PyTorch's")
    parser.add_argument("--same", action="store_true", help="without liboffload it prints the same")
    parser.add_argument("--fails", metavar="TEXT", help="the client is to fail, with this in its message")
    parser.add_argument("--report", action="append", default=[], metavar="CONDITION",
                        help="what must hold for the report's members, a Python expression")
    parser.add_argument("client")
    parser.add_argument("road")
    parser.add_argument("scenario")
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    expected = EXPECTED.get(arguments.scenario, {})

    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OFFLOAD_", "SIMGPU_", "PYTORCH_"))}
    environment.update(
        LD_LIBRARY_PATH=os.path.join(build, "simgpu"),
        SIMGPU_MEMORY="64MiB",
        SIMGPU_GRANULARITY="64KiB",
        SIMGPU_SCHEDULE=arguments.schedule,
        SIMGPU_WATCHDOG="20",
        **expected.get("environment", {}),
    )
    command = [os.path.join(build, "clients", arguments.client)]
    command += [word for word in (arguments.road, arguments.scenario) if word != "-"]
    with tempfile.TemporaryDirectory() as folder:
        report_file = os.path.join(folder, "report.json")
        environment.update(
            LD_PRELOAD=" ".join([arguments.library or os.path.join(build, "liboffload.so")]
                                + [os.path.join(build, "clients", "libc10_cuda.so")] * arguments.pytorch),
            OFFLOAD_GPU_LIMIT=arguments.limit,
            OFFLOAD_MIN_SIZE="64KiB",
            OFFLOAD_SLOT_CHUNK="1MiB",
            OFFLOAD_EVICTED=arguments.evicted,
            OFFLOAD_REPORT="json",
            OFFLOAD_REPORT_FILE=report_file,
        )
        environment.update(pair.split("=", 1) for pair in arguments.set)
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=arguments.seconds)
        problems = []
        if arguments.same:
            alone = subprocess.run(command, capture_output=True, text=True, timeout=100, env={
                name: value for name, value in environment.items()
                if name not in ("LD_PRELOAD", "SIMGPU_FAULTS") and not name.startswith("OFFLOAD_")})
            if (alone.returncode, alone.stdout) != (result.returncode, result.stdout):
                problems.append(f"without liboffload: status {alone.returncode}, {alone.stdout + alone.stderr}")
        if arguments.fails:
            if result.returncode != 1 or arguments.fails not in result.stderr:
                problems.append(f"status {result.returncode}, and not the failure that was expected")
        elif result.returncode != 0 or not result.stdout.endswith("ok\n"):
            problems.append(f"status {result.returncode}")
        report = {}
        if os.path.exists(report_file):
            with open(report_file) as file:
                report = json.load(file)
        elif not arguments.fails:  # which ends with _exit
            problems.append("no report")
        moves = expected.get("moves", True)
        if report and moves is not None and (report["copies_out"] > 0) != (moves and not arguments.still):
            problems.append(f"{report['copies_out']} buffers left")
        problems += differences(report, expected.get("report", {}))
        holds = [] if arguments.still else [*expected.get("holds", [])]
        for condition in holds + arguments.report if report else []:
            if not eval(condition, dict(report)):
                problems.append(f"{condition} does not hold")
        if "waived" in result.stdout:
            expected = {}
        lines = [line for line in result.stderr.splitlines() if line.startswith("liboffload")]
        wanted = expected.get("lines", []) + arguments.says
        if len(lines) != len(wanted) or any(text not in line for text, line in zip(wanted, lines)):
            problems.append(f"said {len(lines)} lines, not {len(wanted)}")
        summary = {key: report.get(key) for key in ("copies_out", "copies_in", "demand_misses", "reason")}
        print(f"{arguments.client} {arguments.road} {arguments.scenario}: {summary}")
        if problems:
            print(result.stdout, end="")
            print(result.stderr, end="", file=sys.stderr)
            sys.exit("FAILED: " + ", ".join(problems))


if __name__ == "__main__":
    main()
