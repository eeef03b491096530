# SPDX-License-Identifier: Apache-2.0
"""How much slower a training run that fits gets: train_gpt on the simulated GPU with room, with liboffload against without.

Counted in instructions, by the machine (perf) or by valgrind, else in processor time (user and system, of all threads): the
simulated GPU's work is in it, as a GPU's would be in wall time. Runs take turns, each pair in the other order than the
one before; the result is the median of the pairs' ratios, and its spread the standard error of that median."""

import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN = ["--layers", "4", "--batch", "32", "--steps", "4"]  # activations of 2 to 8 MiB, about 2 s
COUNTED_TRAIN = ["--layers", "2", "--batch", "32", "--steps", "2"]  # the same sizes; valgrind takes some 25 s for one
QUICK_TRAIN = ["--tiny"]
WANTED_SPREAD = 0.002
LEAST_PAIRS = 10
COUNTED_PAIRS = 2  # by valgrind, which counts the same again to a few millionths
EVENT = "instructions:u"
VALGRIND = "instructions, by valgrind"


class CannotMeasure(Exception):
    pass


def spread_of(ratios):
    """The median's standard error; by the median deviation, because a busy machine makes outliers."""
    middle = statistics.median(ratios)
    deviation = 1.4826 * statistics.median(abs(ratio - middle) for ratio in ratios)
    return 1.2533 * deviation / math.sqrt(len(ratios))


def events_of(text, event=EVENT):
    """The count in what `perf stat -x,` wrote; None if it could not count."""
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] == event and fields[0].isdigit():
            return int(fields[0])
    return None


def can_count(event=EVENT):
    with tempfile.NamedTemporaryFile() as counts:
        command = ["perf", "stat", "-x,", "-e", event, "-o", counts.name, "--", "true"]
        try:
            done = subprocess.run(command, capture_output=True, check=False)
        except FileNotFoundError:
            return False
        text = pathlib.Path(counts.name).read_text()
    return done.returncode == 0 and events_of(text, event) is not None


class Fits:
    """`quick`: a run too short to mean anything, by processor time."""

    def __init__(self, build, quick=False, event=EVENT):
        self.build = pathlib.Path(build).resolve()
        self.event = event if can_count(event) and not quick else None
        self.valgrind = self.event is None and not quick and shutil.which("valgrind") is not None
        folder, train = ("workloads", QUICK_TRAIN if quick else TRAIN) if not self.valgrind else ("bench", COUNTED_TRAIN)
        self.command = [str(self.build / folder / "train_gpt"), "--quiet", *train]
        self.counted = self.event or (VALGRIND if self.valgrind else "processor time, user and system")

    def environment(self, preloaded, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OFFLOAD_", "SIMGPU_"))}
        libraries = [str(self.build / "simgpu"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        # What can be pinned is reserved beforehand, and valgrind has no room for all of a large machine's memory.
        kept.update(LD_LIBRARY_PATH=":".join(libraries), SIMGPU_MEMORY="8GiB", SIMGPU_PIN_LIMIT="1GiB", SIMGPU_CHECK="off", **more)
        if preloaded:
            kept["LD_PRELOAD"] = str(self.build / "liboffload.so")
        return kept

    def check(self):
        """One run each, which also warms up: the same output, and nothing was moved."""
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            asked = {"OFFLOAD_REPORT": "json", "OFFLOAD_REPORT_FILE": str(report)}
            runs = [subprocess.run(self.command, env=self.environment(preloaded, **asked), capture_output=True,
                                   text=True, check=False) for preloaded in (False, True)]
            for run in runs:
                if run.returncode != 0:
                    raise CannotMeasure(f"train_gpt ended with {run.returncode}: {run.stderr.strip()}")
            if runs[0].stdout != runs[1].stdout:
                raise CannotMeasure("train_gpt gives another result with liboffload")
            if json.loads(report.read_text())["copies_out"] != 0:
                raise CannotMeasure("the run does not fit: buffers were moved")

    def count(self, preloaded):
        """Instructions of one run under valgrind."""
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", *self.command],
                                 env=self.environment(preloaded), capture_output=True, text=True, check=False)
        found = re.search(r"Collected : (\d+)", run.stderr)
        if run.returncode != 0 or found is None:
            raise CannotMeasure(f"train_gpt under valgrind ended with {run.returncode}: {run.stderr[-500:]}")
        return int(found.group(1))

    def cost(self, preloaded):
        """Instructions or seconds of one run."""
        if self.valgrind:
            return self.count(preloaded)
        with tempfile.NamedTemporaryFile() as counts:
            counting = ["perf", "stat", "-x,", "-e", self.event, "-o", counts.name, "--"] if self.event else []
            # Preloaded by env, so that perf itself runs without.
            line = [*counting, "env", *(["LD_PRELOAD=" + str(self.build / "liboffload.so")] if preloaded else []),
                    *self.command]
            with subprocess.Popen(line, env=self.environment(False), stdout=subprocess.DEVNULL) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                raise CannotMeasure(f"train_gpt ended with {process.returncode}")
            if self.event:
                return events_of(pathlib.Path(counts.name).read_text(), self.event)
        return usage.ru_utime + usage.ru_stime

    def pair(self, turned):
        on_off = {preloaded: self.cost(preloaded) for preloaded in ((True, False) if turned else (False, True))}
        return on_off[True] / on_off[False]

    def ratio(self, seconds, least_pairs=None):
        """(ratio, how): pairs until the spread is small or the time is up."""
        self.check()
        least_pairs = least_pairs or (COUNTED_PAIRS if self.valgrind else LEAST_PAIRS)
        end = time.monotonic() + seconds
        ratios = []
        while len(ratios) < least_pairs or (spread_of(ratios) > WANTED_SPREAD and time.monotonic() < end):
            ratios.append(self.pair(turned=len(ratios) % 2 == 1))
        how = {"counted": self.counted, "statistic": "median of interleaved pairs",
               "pairs": len(ratios), "spread": round(spread_of(ratios), 9)}
        return statistics.median(ratios), how
