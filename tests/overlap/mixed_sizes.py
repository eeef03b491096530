#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sizes that change every step cost the launching thread little.

  mixed_sizes.py BUILD

Trains with another sequence length every step, with the stream-ordered allocator, under a cap of half of the peak, on a simulated link
of 2 GB/s in real time. The host may run 256 operations ahead: half a step, as on a GPU. Passes if the results are those of a run with
room, and all that the host waited for the GPU, whatever the cause, is a small share of the run."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARE = 0.3
TRAIN = ["--allocator", "async", "--vary-sequence", "--steps", "3", "--quiet"]


def run(build, memory, clock, settings):
    done = subprocess.run(
        [ROOT / "scripts" / "simgpu", "--memory", memory, "--clock", clock, "--granularity", "256KiB", "--", "env", *settings,
         build / "workloads" / "train_gpt", *TRAIN],
        env=dict(os.environ, SIMGPU_BUILD=str(build), SIMGPU_H2D="2", SIMGPU_D2H="2", SIMGPU_QUEUE_DEPTH="256"),
        capture_output=True, text=True, timeout=170, check=False)
    print(done.stderr, end="")
    if done.returncode != 0:
        sys.exit(f"FAIL exit status {done.returncode}")
    return done.stdout


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    expected = run(build, "1GiB", "off", [])
    with tempfile.TemporaryDirectory() as folder:
        report_file = pathlib.Path(folder) / "report.json"
        found = run(build, "200MiB", "real", [f"LD_PRELOAD={build / 'liboffload.so'}", "OFFLOAD_MIN_SIZE=256KiB",
                                              "OFFLOAD_REPORT=json", f"OFFLOAD_REPORT_FILE={report_file}"])
        report = json.loads(report_file.read_text())
    waits = {cause: (wait["count"], round(wait["seconds"], 3)) for cause, wait in report["host_waits"].items() if wait["count"]}
    waited = sum(wait["seconds"] for wait in report["host_waits"].values())
    print(f"{report['copies_out']} copies out, {report['copies_in']} in; the host waited {waited:.2f} s of "
          f"{report['elapsed_seconds']:.1f} s: {waits}")
    failed = []
    if found != expected:
        failed.append(f"other results:\n{found}instead of\n{expected}")
    if report["copies_out"] < 30 or report["copies_in"] < 30:
        failed.append("too little was moved to tell")
    if waited > SHARE * report["elapsed_seconds"]:
        failed.append(f"the host waited more than {SHARE:.0%} of the time")
    for text in failed:
        print("FAIL " + text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
