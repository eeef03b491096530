#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The launching thread does not wait for the GPU on an ordinary eviction or restore.

  run_ahead.py BUILD

Runs run_ahead under a cap of half of what it needs, on a simulated link of 0.2 GB/s in real time, with the stream-ordered allocator.
Passes if the host was done submitting in a third of the time that the GPU took, both ways, and no wait is counted, but for those
at the first evictions, which pin host memory. Then again with streams that take two operations: that the host waits for the copy queue
must be told."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARE = 1 / 3


def run(build, depth, settings=()):
    """What it printed, and the report; None: it failed."""
    with tempfile.TemporaryDirectory() as folder:
        report_file = pathlib.Path(folder) / "report.json"
        done = subprocess.run(
            [ROOT / "scripts" / "simgpu", "--memory", "48MiB", "--clock", "real", "--", "env",
             f"LD_PRELOAD={build / 'liboffload.so'}", "OFFLOAD_REPORT=json", f"OFFLOAD_REPORT_FILE={report_file}", *settings,
             build / "overlap" / "run_ahead"],
            env=dict(os.environ, SIMGPU_BUILD=str(build), SIMGPU_D2H="0.2", SIMGPU_H2D="0.2", SIMGPU_QUEUE_DEPTH=str(depth)),
            capture_output=True, text=True, timeout=80, check=False)
        print(done.stdout + done.stderr, end="")
        if done.returncode != 0:
            sys.exit(f"FAIL exit status {done.returncode}")
        report = json.loads(report_file.read_text())
    waits = {cause: wait["count"] for cause, wait in report["host_waits"].items() if wait["count"]}
    print(f"streams take {depth}: copies out {report['copies_out']} in {report['copies_in']}, waits {waits}, "
          f"exposed {report['exposed_seconds']} s")
    return done.stdout, report, waits


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    printed, report, waits = run(build, 1024)
    failed = []
    for line in printed.splitlines():
        way, host, total = line.split()
        if float(host) > SHARE * float(total):
            failed.append(f"{way}: the host took {host} ms of {total} ms")
    # The reserve, and a chunk for each size that leaves.
    if waits.pop("slots", 0) > 3:
        failed.append("host memory was pinned again and again, or was short")
    if waits:
        failed.append(f"the host waited: {waits}")
    if report["copies_out"] < 10 or report["copies_in"] < 10:
        failed.append("too little was moved to tell")
    if not report["exposed_seconds"] > 0:
        failed.append("the stream must have waited for copies, but no exposed time was measured")

    _, report, waits = run(build, 2, ["OFFLOAD_QUEUE_DEPTH=2"])
    if waits.get("queue", 0) < 10:
        failed.append(f"the host waited for the copy queue {waits.get('queue', 0)} times, says the report")
    for text in failed:
        print("FAIL " + text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
