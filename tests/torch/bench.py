#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What liboffload does under stock PyTorch, in numbers: a table on the terminal, and the same in JSON (make bench-torch).

  bench.py --build DIR [--json FILE] [--quick]

What a step costs is counted in instructions, by valgrind (instructions.py), and taken as processor time (user and system) as well, on the
simulated GPU. liboffload's allocator takes the place of the simulated driver's pool, which is slower, so the ratio of processor times may be
below 1; the ratio of instructions takes driver and device to do the same with liboffload as without. Exit status 2 means that a target was
missed (--quick has none for the ratio, which it takes of a few steps' time), 1 that something could not be measured. It takes some 6 minutes of processor time. 77: PyTorch is not
there (make torch)."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import instructions
from measures import MEASURES
from phantoms import named_share, phantoms
from rig import ROOT, SKIPPED, Rig, clean_environment, missing

SCRIPT = ["python", str(ROOT / "tests" / "torch" / "train.py"), "--layers", "6", "--width", "64", "--sequence", "64", "--batch", "8"]
# Not where time is measured: PyTorch parses these at every product, by a regular expression that takes longer than all else that it does.
SMALL_WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "CUBLASLT_WORKSPACE_SIZE": "64"}
ROOM = ["--memory", "1GiB"]
FEW, MORE = 3, 5  # steps of two runs whose difference counts
TIMED = "processor time, user and system"
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
        line = rig.command([*SCRIPT, "--steps", str(WARM_UP + steps + 1)], folder, [*ROOM, "--check", "off"], offload,
                           PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
        process = subprocess.Popen(line, env=clean_environment(rig.build), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        used = {}
        for row in process.stdout:
            words = row.split()
            if words[0] == "step" and int(words[1]) in (WARM_UP, WARM_UP + steps):
                used[int(words[1])] = seconds_used(process)
        if process.wait() != 0 or len(used) != 2:
            raise CannotMeasure(f"train.py ended with {process.returncode}")
        return (used[WARM_UP + steps] - used[WARM_UP]) / steps


def processor_time(rig, quick):
    """(ratio, seconds of a step without, with, how): the ratio is the median of interleaved pairs, the seconds the least of all."""
    steps, pairs = (3, 1) if quick else (40, 5)
    ratios, seconds = [], {False: [], True: []}
    for pair in range(pairs):
        order = (None, {}) if pair % 2 == 0 else ({}, None)
        taken = {offload is not None: step_seconds(rig, steps, offload) for offload in order}
        ratios.append(taken[True] / taken[False])
        for side, value in taken.items():
            seconds[side].append(value)
    middle = statistics.median(ratios)
    spread = statistics.median(abs(ratio - middle) for ratio in ratios)
    how = {"pairs": pairs, "steps": steps, "ratio": round(middle, 4), "spread": round(spread, 4), "statistic": "median of pairs"}
    return middle, min(seconds[False]), min(seconds[True]), how


def counted(rig):
    """Counts of a step without liboffload and with it."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda offload: instructions.of_a_step(rig, SCRIPT[1:], offload), (None, {})))


def few_and_many(rig, options, offload):
    return [must(rig.run([*SCRIPT, "--steps", str(steps)], options, offload=offload, **SMALL_WORKSPACE)) for steps in (FEW, FEW + MORE)]


def per_step(few, many, *names):
    """What the report counts under these names together, by step: the difference between a run of many steps and one of few."""
    return sum(many.report[name] - few.report[name] for name in names) / MORE


def waits_per_step(rig, offload):
    """By cause, counts and seconds; and both runs. On the simulated GPU's virtual clock: without one its work takes as long as the
    processor needs for it, which says nothing of how long a host would wait for a GPU."""
    few, many = few_and_many(rig, [*ROOM, "--clock", "virtual"], offload)
    return {cause: {key: (wait[key] - few.report["host_waits"][cause][key]) / MORE for key in ("count", "seconds")}
            for cause, wait in many.report["host_waits"].items()}, few, many


def measure(rig, quick):
    values = dict.fromkeys(MEASURES)
    ratio, without, with_it, how = processor_time(rig, quick)
    values["torch_step_without_ms"], values["torch_step_with_ms"] = without * 1e3, with_it * 1e3
    few, many = few_and_many(rig, ROOM, {})
    counts = {}
    if quick or not instructions.can_count():
        values["torch_fits_time_ratio"], counting = ratio, TIMED
    else:
        off, on = counted(rig)
        counts = {"without": off, "with": on}
        added, counting = on.program - off.program, "instructions, by valgrind"
        values["torch_fits_time_ratio"] = (off.all + added) / off.all
        values["torch_fits_host_ratio"] = on.program / off.program
        values["torch_added_instructions_per_call"] = added / per_step(few, many, "operations", "allocations", "frees")
    values["torch_launches_per_step"], values["torch_allocations_per_step"] = (per_step(few, many, name) for name in ("launches", "allocations"))
    values["torch_names_per_launch"] = many.counts["names"] / many.counts["kernels"]
    values["torch_named_share"] = 100 * named_share(rig, [*SCRIPT, "--steps", "4"], SMALL_WORKSPACE)
    real, found, distances = phantoms(rig, [*SCRIPT, "--steps", "4"], SMALL_WORKSPACE)
    values["torch_phantom_share"] = 100 * found / (real + found)
    for most in 4, 16:
        values[f"torch_phantoms_within_{most}"] = 100 * sum(distance <= most for distance in distances) / max(1, len(distances))
    waste = must(rig.run(GPT2_SMALL, ["--memory", "2GiB", "--granularity", "2MiB"], offload={"OFFLOAD_MIN_SIZE": "4MiB"}))
    values["torch_gpt2_small_rounding_waste"] = float(waste.values()["waste"])
    cap = many.report["peak_bytes_without"] * 60 // 100
    capped = {"OFFLOAD_GPU_LIMIT": str(cap)}
    by_cause, few, many = waits_per_step(rig, capped)
    values["torch_capped_moved_per_step"] = per_step(few, many, "bytes_out") / (1 << 20)
    if not values["torch_capped_moved_per_step"]:
        raise CannotMeasure("nothing was moved under the cap")
    happened = {cause: wait for cause, wait in by_cause.items() if wait["count"]}
    values["torch_capped_peak_of_cap"] = 100 * many.report["peak_bytes_with"] / cap
    values["torch_capped_host_waits_per_step"] = sum(wait["count"] for wait in by_cause.values())
    values["torch_capped_address_waits_per_step"] = by_cause["reuse_of_an_address"]["count"]
    values["torch_capped_host_wait_ms_per_step"] = sum(wait["seconds"] for wait in happened.values()) * 1e3
    measures = []
    for name, (unit, target, _) in MEASURES.items():
        value = values[name]
        if value is not None:
            value = round(value, 4 if unit == "ratio" else 2)
        measures.append({"name": name, "value": value, "unit": unit, "target": target, "met": None if target is None or value is None else value <= target})
    by_name = {row["name"]: row for row in measures}
    by_name["torch_fits_time_ratio"]["counted"] = counting
    if quick:
        by_name["torch_fits_time_ratio"]["met"] = None
    if counts:
        by_name["torch_fits_time_ratio"]["instructions"] = {side: vars(of_it) for side, of_it in counts.items()}
    by_name["torch_step_with_ms"]["processor_time"] = how
    by_name["torch_capped_host_waits_per_step"]["by_cause"] = happened
    return measures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path, help="default: bench-torch.json in the build folder")
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that everything runs")
    arguments = parser.parse_args()
    if lack := missing(arguments.build):
        print(lack)
        return SKIPPED
    try:
        measures = measure(Rig(arguments.build), arguments.quick)
    except (CannotMeasure, instructions.CannotCount) as why:
        print(f"bench: {why}", file=sys.stderr)
        return 1
    for row in measures:
        target = "" if row["target"] is None else f"<= {row['target']}"
        verdict = "" if row["met"] is not False else "missed"
        value = "-" if row["value"] is None else row["value"]
        print(f"{row['name']:<36} {value:>10} {row['unit']:<12} {target:>7} {verdict:<7} {MEASURES[row['name']][2]}")
        if how := row.get("processor_time"):
            print(f"processor time: ratio {how['ratio']} ({how['statistic']}, {how['pairs']} of them, spread {how['spread']})")
        for cause, wait in row.get("by_cause", {}).items():
            print(f"waits per step, {cause}: {wait['count']:.1f} ({wait['seconds'] * 1e3:.3f} ms)")
    (arguments.json or arguments.build / "bench-torch.json").write_text(json.dumps({"measures": measures}, indent=2) + "\n")
    return 2 if any(row["met"] is False for row in measures) else 0


if __name__ == "__main__":
    sys.exit(main())
