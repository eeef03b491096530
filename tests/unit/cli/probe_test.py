#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`offload doctor --probe` on the simulated GPU: it measures everything, reads only what it wrote, and orders what it does (the
checker of the simulated GPU would make its exit status 97).

    tests/unit/cli/probe_test.py BUILD
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Lines that must say exactly this, and measurements that must be there with a number in these bounds.
TOLD = {
    "one address: device, host, device": "right",
    "both addresses show the same": "right",
    "host memory at a device address: device pointer": r"[1-9]\d*",
    "host memory at a device address: range size": r"[1-9]\d*",
}
MEASURED = {
    "second address mapped under a running kernel": ("us", 0.01, 1e6),
    "launch, median on its own": ("us", 0.01, 1e5),
    "launch, 99th percentile on its own": ("us", 0.01, 1e6),
    "launch, median while another thread remaps": ("us", 0.01, 1e5),
    "remaps meanwhile": ("", 1, 1e9),
    "device to host alone": ("GB/s", 0.001, 1e4),
    "host to device alone": ("GB/s", 0.001, 1e4),
    "each way, both at once": ("GB/s", 0.001, 1e4),
}
for what in ("create", "map", "set access", "unmap"):
    for size in ("2 MiB device", "32 MiB device", "2 MiB host", "32 MiB host"):
        MEASURED[f"{what} {size}"] = ("us", 0.01, 1e6)


def main():
    build = os.path.abspath(sys.argv[1])
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("OFFLOAD_", "SIMGPU_", "LD_PRELOAD"))}
    environment["SIMGPU_BUILD"] = build
    result = subprocess.run([str(ROOT / "scripts" / "simgpu"), "--memory", "1GiB", "--",
                             os.path.join(build, "offload"), "doctor", "--probe"],
                            env=environment, capture_output=True, text=True, timeout=100, check=False)
    print(result.stdout, end="")
    print(result.stderr, end="")
    problems = [] if result.returncode == 0 else [f"exit status {result.returncode}"]
    if result.stderr:
        problems.append("it spoke on standard error")
    for name, pattern in TOLD.items():
        if not re.search(rf"^{re.escape(name)} +{pattern}$", result.stdout, re.M):
            problems.append(f"{name}: no line that says {pattern}")
    for name, (unit, least, most) in MEASURED.items():
        found = re.search(rf"^{re.escape(name)} +([0-9.]+) {unit}$", result.stdout, re.M)
        if not found:
            problems.append(f"{name}: no such measurement in {unit or 'numbers'}")
        elif not least <= float(found.group(1)) <= most:
            problems.append(f"{name}: {found.group(1)} {unit}")
    sys.exit("FAILED: " + "; ".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
