#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The exposed time that is reported is what the GPU waited for copies, not what the copies took.

  exposed.py BUILD

Four buffers come back over a link on which each takes 200 ms. Behind computations of 120 ms each, 80 ms of every copy are exposed,
for the copies queue behind each other as the computations do; with nothing to hide them, all of it is. (In real time: the simulated
GPU's clock.)"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BYTES = 8 << 20
COPY_S = 0.2
COMPUTE_S = 0.12
TOLERANCE = 0.3  # of what is expected, for a machine that does other things, too


def run(build, *arguments):
    """(reported seconds, number of buffers that came back, milliseconds that all took)"""
    with tempfile.TemporaryDirectory() as folder:
        report_file = pathlib.Path(folder) / "report.json"
        done = subprocess.run(
            [ROOT / "scripts" / "simgpu", "--memory", "68MiB", "--clock", "real", "--", "env", f"LD_PRELOAD={build / 'liboffload.so'}",
             "OFFLOAD_REPORT=json", f"OFFLOAD_REPORT_FILE={report_file}", build / "overlap" / "exposed", *arguments],
            env=dict(os.environ, SIMGPU_BUILD=str(build), SIMGPU_D2H="50", SIMGPU_H2D=str(BYTES / COPY_S / 1e9),
                     SIMGPU_BANDWIDTH=str(BYTES / COMPUTE_S / 1e9), SIMGPU_BOTH="1"),
            capture_output=True, text=True, timeout=60, check=False)
        print(done.stdout + done.stderr, end="")
        if done.returncode != 0:
            sys.exit(f"FAIL exit status {done.returncode}")
        report = json.loads(report_file.read_text())
    _, count, total = done.stdout.split()
    if report["copies_in"] != int(count):
        sys.exit(f"FAIL {report['copies_in']} buffers came back, not {count}")
    return report["exposed_seconds"], int(count), float(total)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    failed = False
    for arguments, hidden_s in (([], COMPUTE_S), (["alone"], 0)):
        exposed, count, total = run(build, *arguments)
        expected = count * (COPY_S - hidden_s)
        right = abs(exposed - expected) <= TOLERANCE * expected
        print(f"{'ok  ' if right else 'FAIL'} {' '.join(arguments) or 'behind computations'}: {exposed:.3f} s exposed in {total:.0f} ms, "
              f"expected {expected:.3f} s")
        failed |= not right
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
