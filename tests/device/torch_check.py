# SPDX-License-Identifier: Apache-2.0
"""What torch_check.sh runs: train.py in five ways, results compared, one JSON on standard output."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = "--layers 24 --width 1024 --heads 16 --sequence 1024 --batch 18 --steps 8"
OPTIONS = ["--precision", "bf16", "--deterministic"]
RUN_SECONDS = 70  # five of them stay below six minutes
FIRST_STEPS = 2  # not timed: libraries are loaded and kernels chosen in them
TOLD = ("peak_bytes_without", "peak_bytes_with", "bytes_out", "bytes_in", "demand_misses", "exposed_seconds", "host_peak_bytes",
        "remap_seconds", "d2h_gb_per_s", "h2d_gb_per_s", "host_waits", "reason")


def machine():
    import torch

    free, total = torch.cuda.mem_get_info()
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True,
                            check=False) if any(os.access(f"{p}/nvidia-smi", os.X_OK) for p in os.environ["PATH"].split(":")) else None
    return {"gpu": torch.cuda.get_device_name(), "capability": torch.cuda.get_device_capability(), "total_bytes": total, "free_bytes": free,
            "torch": torch.__version__, "driver": driver.stdout.strip() if driver else None}


def run(build, settings, folder):
    """How train.py ended: its results, when each step came, and liboffload's report."""
    report = pathlib.Path(folder) / "report.json"
    report.unlink(missing_ok=True)
    environment = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", **os.environ, "OFFLOAD_REPORT": "json", "OFFLOAD_REPORT_FILE": str(report)}
    environment.update(settings)
    if "PYTORCH_CUDA_ALLOC_CONF" not in settings:
        preloaded = os.environ.get("LD_PRELOAD")
        environment["LD_PRELOAD"] = f"{build}/liboffload.so" + (f":{preloaded}" if preloaded else "")
    line = [sys.executable, str(ROOT / "tests" / "torch" / "train.py"), *os.environ.get("TRAIN_OPTIONS", MODEL).split(), *OPTIONS]
    begun = time.monotonic()
    process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    reader = threading.Thread(target=lambda: said.append(process.stderr.read()))
    reader.start()
    guard = threading.Timer(RUN_SECONDS, process.kill)
    guard.start()
    lines, times, peak = [], [], None
    for row in process.stdout:
        if row.startswith("peak"):
            peak = int(row.split()[1])
            continue
        lines.append(row.strip())
        if row.startswith("step"):
            times.append(time.monotonic())
    status = process.wait()
    guard.cancel()
    reader.join()
    steps = [after - before for before, after in zip(times, times[1:])][FIRST_STEPS - 1:]
    told = json.loads(report.read_text()) if report.exists() else {}
    return {"status": status, "seconds": round(time.monotonic() - begun, 2), "step_seconds": round(statistics.median(steps), 4) if steps else None,
            "max_memory_allocated": peak, "lines": lines, "said": "" if status == 0 else said[0][-2000:],
            "report": {key: told[key] for key in TOLD if key in told}}


def problems(name, result, reference, limit):
    """What is wrong with a run, if anything."""
    if result["status"] != 0:
        return [f"exit status {result['status']}"]
    wrong = []
    if result["lines"] != reference["lines"] and not (name == "native" and os.environ.get("DRY_RUN") == "1"):
        wrong.append("other results than without liboffload")
    if limit is not None:
        report = result["report"]
        if not report.get("bytes_out"):
            wrong.append(f"nothing was moved: {report.get('reason')}")
        if report.get("peak_bytes_with", 0) > limit:
            wrong.append(f"{report['peak_bytes_with']} bytes were mapped")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    build = parser.parse_args().build
    runs, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        reference = run(build, {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, folder)
        peak = reference["max_memory_allocated"] or 0
        cases = [("async", None, reference), ("native", None, {"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}), ("liboffload", None, {})]
        cases += [(f"liboffload {percent} %", peak * percent // 100, {"OFFLOAD_GPU_LIMIT": str(peak * percent // 100)}) for percent in (75, 55)]
        for name, limit, settings in cases:
            result = settings if settings is reference else run(build, settings, folder)
            wrong = problems(name, result, reference, limit)
            failed = failed or bool(wrong)
            print(f"{name:<16} {result['seconds']:>7} s, a step {result['step_seconds']} s, moved out {result['report'].get('bytes_out', 0)} bytes: "
                  f"{'; '.join(wrong) or 'as it should be'}", file=sys.stderr, flush=True)
            runs.append({"name": name, "limit_bytes": limit, "problems": wrong, **result})
    for result in runs[1:]:
        result["same_as_first"] = result.pop("lines") == reference["lines"]
    print(json.dumps({"machine": machine(), "model": os.environ.get("TRAIN_OPTIONS", MODEL).split() + OPTIONS, "ok": not failed, "runs": runs}, indent=2))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
