#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What liboffload costs: a table on the terminal, and the same in JSON.

  bench.py --build DIR [--json FILE] [--quick]

A target that is missed is said, and is no failure: exit status 1 means that something could not be measured.
--quick takes few repetitions, to see that everything runs; its numbers mean nothing."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from fits import CannotMeasure, Fits

# Name: unit, target (at most), what it is.
MEASURES = {
    "launch_0_pointers_added_ns": ("ns", None, "a launch without arguments, over the bare call"),
    "launch_10_pointers_added_ns": ("ns", 150, "a launch that names 10 movable buffers"),
    "launch_100_pointers_added_ns": ("ns", None, "a launch that names 100"),
    "launch_struct_32k_added_ns": ("ns", None, "a launch with a struct of 32 KiB, every tenth word a pointer"),
    "malloc_free_parked_ns": ("ns", 300, "cuMemAllocAsync and cuMemFreeAsync of 4 MiB, parked"),
    "malloc_free_parked_sync_ns": ("ns", 300, "cuMemAlloc and cuMemFree of 4 MiB, parked"),
    "malloc_free_slab_ns": ("ns", None, "cuMemAllocAsync and cuMemFreeAsync of 100 kB, from a slab"),
    "copy_added_ns": ("ns", None, "a copy between two movable buffers, over the bare call"),
    "event_record_added_ns": ("ns", None, "an event recorded, over the bare call"),
    "fits_time_ratio": ("ratio", 1.01, "a training run that fits, with liboffload against without"),
}
FITS_SECONDS = 100
MOST_SPREAD = 0.01  # above that the ratio says nothing about one per cent
COUNTED_CALLS = (200, 1200)


def hook_costs(build, quick):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OFFLOAD_")}
    environment["LD_PRELOAD"] = str(build / "liboffload.so")
    few = ["--batches", "3", "--calls", "20"] if quick else []
    run = subprocess.run([build / "bench" / "hook_cost", *few], env=environment, stdout=subprocess.PIPE, text=True,
                         timeout=120, check=False)
    if run.returncode != 0:
        raise CannotMeasure(f"hook_cost ended with {run.returncode}")
    return {name: float(value) for name, value in (line.split() for line in run.stdout.splitlines())}


def counted(build, name, way, calls):
    """Instructions of the program's thread in a run of hook_cost that makes so many calls."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OFFLOAD_")}
    environment["LD_PRELOAD"] = str(build / "liboffload.so")
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={folder}/out",
                              build / "bench" / "hook_cost", "--count", name, "--way", way, "--calls", str(calls)],
                             env=environment, capture_output=True, text=True, timeout=300, check=False)
        # Of the first thread: liboffload's own works by the clock.
        files = list(pathlib.Path(folder).glob("out-01"))
        found = re.search(r"^totals: (\d+)", files[0].read_text(), re.MULTILINE) if files else None
    if run.returncode != 0 or found is None:
        raise CannotMeasure(f"hook_cost under callgrind ended with {run.returncode}: {run.stderr[-500:]}")
    return int(found.group(1))


def instructions(build, name):
    """Per call, as the nanoseconds are: over the bare call where the name says "added". None without valgrind."""
    if shutil.which("valgrind") is None:
        return None
    few, many = COUNTED_CALLS
    per_call = {way: (counted(build, name, way, many) - counted(build, name, way, few)) / (many - few)
                for way in (["hooked", "bare"] if "added" in name else ["hooked"])}
    return round(per_call["hooked"] - per_call.get("bare", 0))


def measure(build, quick):
    values = hook_costs(build, quick)
    fits = Fits(build, quick)
    values["fits_time_ratio"], how = fits.ratio(0, 1) if quick else fits.ratio(FITS_SECONDS)
    if set(values) != set(MEASURES):
        raise CannotMeasure(f"measured {sorted(values)}, wanted {sorted(MEASURES)}")
    measures = []
    for name, (unit, target, _) in MEASURES.items():
        value = round(values[name], 4 if unit == "ratio" else 1)
        met = None if target is None else value <= target
        count = instructions(build, name) if unit == "ns" and not quick else None
        measures.append({"name": name, "value": value, "unit": unit, "target": target, "met": met, "instructions": count})
    measures[-1].update(how)
    measures[-1]["met"] = measures[-1]["met"] and how["spread"] < MOST_SPREAD
    return measures


def print_table(measures):
    print(f"{'measure':<28} {'value':>9}  {'target':>7}")
    for row in measures:
        target = "" if row["target"] is None else f"<= {row['target']}"
        verdict = "" if row["met"] is not False else "  missed"
        value = f"{row['value']:.4f}" if row["unit"] == "ratio" else f"{row['value']:.0f} {row['unit']}"
        count = "" if row["instructions"] is None else f"{row['instructions']} instructions"
        print(f"{row['name']:<28} {value:>9}  {target:>7}{verdict:<8}  {count:>18}  {MEASURES[row['name']][2]}")
    last = measures[-1]
    print(f"{last['name']} from {last['counted']}: {last['statistic']}, {last['pairs']} of them, "
          f"spread {100 * last['spread']:.2g} %.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--json", type=pathlib.Path, help="default: bench.json in the build folder")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    try:
        measures = measure(build, arguments.quick)
    except CannotMeasure as why:
        print(f"bench: {why}", file=sys.stderr)
        return 1
    print_table(measures)
    (arguments.json or build / "bench.json").write_text(json.dumps({"measures": measures}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
