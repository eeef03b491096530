#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What liboffload does under stock PyTorch, in numbers: a table on the terminal, and the same in JSON (make bench-torch).

  bench.py --build DIR [--json FILE] [--quick]

Times are processor time (user and system) on the simulated GPU, whose own work is in both sides of the ratio. liboffload's allocator takes the
place of the simulated driver's pool, which is slower, so a ratio below 1 says nothing of a real one. A target that is missed
is said, and is no failure: exit status 1 means that something could not be measured. 77: PyTorch is not there (make torch)."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from phantoms import phantoms
from rig import ROOT, SKIPPED, Rig, clean_environment, is_there

# Name: unit, target (at most), what it is.
MEASURES = {
    "torch_fits_time_ratio": ("ratio", 1.03, "a step that fits, with liboffload against without"),
    "torch_added_ns_per_call": ("ns", None, "the same as a difference, by operation, allocation and free; negative where the pool makes up for it"),
    "torch_launches_per_step": ("count", None, "kernel launches"),
    "torch_allocations_per_step": ("count", None, "allocations"),
    "torch_names_per_launch": ("count", None, "buffers that a launch names, phantoms not among them"),
    "torch_phantom_share": ("%", None, "phantoms among all names, when the stack is not emptied"),
    "torch_phantoms_within_4": ("%", None, "of them, those at most 4 launches after the buffer's last real use"),
    "torch_phantoms_within_16": ("%", None, "at most 16 launches"),
    "torch_gpt2_small_rounding_waste": ("%", None, "memory mapped beyond what the weights of GPT-2 small need"),
    "torch_capped_peak_of_cap": ("%", 100, "under a cap of 60 %: the most that was mapped, of the cap"),
    "torch_capped_host_waits_per_step": ("count", None, "waits of the program's threads for the GPU once it has begun, all causes, on the virtual clock"),
    "torch_capped_address_waits_per_step": ("count", 0, "of them, for an ordinary eviction or return: an address had to show other memory"),
    "torch_capped_host_wait_ms_per_step": ("ms", None, "how long all of them took, together"),
}
SCRIPT = ["python", str(ROOT / "tests" / "torch" / "train.py"), "--layers", "6", "--width", "64", "--sequence", "64", "--batch", "8"]
SMALL_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "64"}
ROOM = ["--memory", "1GiB"]
FEW, MORE = 3, 5  # steps of two runs whose difference counts
WARM_UP = 5  # steps that are not counted

GPT2_SMALL = """
import torch
width, shapes = 768, [(50257, 768), (1024, 768), (768,), (768,)]
for _ in range(12):
    shapes += [(width,)] * 4 + [(width, 3 * width), (3 * width,), (width, width), (width,), (width, 4 * width), (4 * width,), (4 * width, width), (width,)]
weights = [torch.empty(shape, device="cuda") for shape in shapes]
print("waste", 100 * (torch.cuda.memory_reserved() / torch.cuda.memory_allocated() - 1))
"""


class CannotMeasure(Exception):
    pass


def must(run):
    if run.status != 0:
        raise CannotMeasure(run.said[-1000:])
    return run


def seconds_used(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def step_seconds(rig, steps, offload):
    """Processor time of a step, the first ones not counted."""
    with tempfile.TemporaryDirectory() as folder:
        settings = dict(SMALL_WORKSPACE, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
        line = rig.command([*SCRIPT, "--steps", str(WARM_UP + steps + 1)], folder, [*ROOM, "--check", "off"], offload, **settings)
        process = subprocess.Popen(line, env=clean_environment(rig.build), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        used = {}
        for row in process.stdout:
            words = row.split()
            if words[0] == "step" and int(words[1]) in (WARM_UP, WARM_UP + steps):
                used[int(words[1])] = seconds_used(process)
        if process.wait() != 0 or len(used) != 2:
            raise CannotMeasure(f"train.py ended with {process.returncode}")
        return (used[WARM_UP + steps] - used[WARM_UP]) / steps


def fits(rig, quick):
    """(ratio, seconds that a step takes longer, how): the median of interleaved pairs."""
    steps, pairs = (3, 1) if quick else (40, 7)
    ratios, longer = [], []
    for pair in range(pairs):
        order = (None, {}) if pair % 2 == 0 else ({}, None)
        taken = {offload is not None: step_seconds(rig, steps, offload) for offload in order}
        ratios.append(taken[True] / taken[False])
        longer.append(taken[True] - taken[False])
    middle = statistics.median(ratios)
    spread = statistics.median(abs(ratio - middle) for ratio in ratios)
    return middle, statistics.median(longer), {"pairs": pairs, "steps": steps, "spread": round(spread, 4), "statistic": "median of pairs"}


def few_and_many(rig, options, offload):
    return [must(rig.run([*SCRIPT, "--steps", str(steps)], options, offload=offload, **SMALL_WORKSPACE)) for steps in (FEW, FEW + MORE)]


def per_step(rig, options, offload, name_of):
    """What `name_of` counts in a run, by step: the difference between a run of many steps and one of few."""
    few, many = few_and_many(rig, options, offload)
    return (name_of(many) - name_of(few)) / MORE, many


def waits_per_step(rig, offload):
    """By cause, counts and seconds; and the longer run. On the simulated GPU's virtual clock: without one its work takes as long as the
    processor needs for it, which says nothing of how long a host would wait for a GPU."""
    few, many = few_and_many(rig, [*ROOM, "--clock", "virtual"], offload)
    return {cause: {key: (wait[key] - few.report["host_waits"][cause][key]) / MORE for key in ("count", "seconds")}
            for cause, wait in many.report["host_waits"].items()}, many


def measure(rig, quick):
    values = {}
    values["torch_fits_time_ratio"], longer, how = fits(rig, quick)
    launches, run = per_step(rig, ROOM, {}, lambda run: run.report["launches"])
    allocations, _ = per_step(rig, ROOM, {}, lambda run: run.report["allocations"])
    calls, _ = per_step(rig, ROOM, {}, lambda run: run.report["operations"] + run.report["allocations"] + run.report["frees"])
    values["torch_added_ns_per_call"] = longer * 1e9 / calls
    values["torch_launches_per_step"], values["torch_allocations_per_step"] = launches, allocations
    values["torch_names_per_launch"] = run.counts["names"] / run.counts["kernels"]
    real, distances = phantoms(rig, [*SCRIPT, "--steps", "4"], SMALL_WORKSPACE)
    values["torch_phantom_share"] = 100 * len(distances) / (real + len(distances))
    for most in 4, 16:
        values[f"torch_phantoms_within_{most}"] = 100 * sum(distance <= most for distance in distances) / max(1, len(distances))
    waste = must(rig.run(GPT2_SMALL, ["--memory", "2GiB", "--granularity", "2MiB"], offload={"OFFLOAD_MIN_SIZE": "4MiB"}))
    values["torch_gpt2_small_rounding_waste"] = float(waste.values()["waste"])
    cap = run.report["peak_bytes_without"] * 60 // 100
    capped = {"OFFLOAD_GPU_LIMIT": str(cap)}
    by_cause, run = waits_per_step(rig, capped)
    happened = {cause: wait for cause, wait in by_cause.items() if wait["count"]}
    values["torch_capped_peak_of_cap"] = 100 * run.report["peak_bytes_with"] / cap
    values["torch_capped_host_waits_per_step"] = sum(wait["count"] for wait in by_cause.values())
    values["torch_capped_address_waits_per_step"] = by_cause["reuse_of_an_address"]["count"]
    values["torch_capped_host_wait_ms_per_step"] = sum(wait["seconds"] for wait in happened.values()) * 1e3
    measures = []
    for name, (unit, target, _) in MEASURES.items():
        value = round(values[name], 4 if unit == "ratio" else 2)
        measures.append({"name": name, "value": value, "unit": unit, "target": target, "met": None if target is None else value <= target})
    measures[0].update(how)
    measures[-1]["by_cause"] = happened
    return measures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path, help="default: bench-torch.json in the build folder")
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that everything runs")
    arguments = parser.parse_args()
    if not is_there(arguments.build):
        print("PyTorch is not there: make torch")
        return SKIPPED
    try:
        measures = measure(Rig(arguments.build), arguments.quick)
    except CannotMeasure as why:
        print(f"bench: {why}", file=sys.stderr)
        return 1
    for row in measures:
        target = "" if row["target"] is None else f"<= {row['target']}"
        verdict = "" if row["met"] is not False else "missed"
        print(f"{row['name']:<36} {row['value']:>10} {row['unit']:<6} {target:>7} {verdict:<7} {MEASURES[row['name']][2]}")
    for cause, wait in measures[-1]["by_cause"].items():
        print(f"waits per step, {cause}: {wait['count']:.1f} ({wait['seconds'] * 1e3:.3f} ms)")
    (arguments.json or arguments.build / "bench-torch.json").write_text(json.dumps({"measures": measures}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
