#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make bench` with few repetitions writes all that it promises; how fast anything is, is not looked at."""

import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import fits

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BENCH_BUILD", ROOT / "build"))
PROMISED = {
    "launch_0_pointers_added_ns": None, "launch_10_pointers_added_ns": 150, "launch_100_pointers_added_ns": None,
    "launch_struct_32k_added_ns": None, "malloc_free_parked_ns": 300, "malloc_free_parked_sync_ns": 300,
    "malloc_free_slab_ns": None, "copy_added_ns": None, "event_record_added_ns": None, "fits_time_ratio": 1.01,
}


class Smoke(unittest.TestCase):
    def test_json_and_table_are_complete(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "bench.json"
            run = subprocess.run([ROOT / "scripts" / "bench.sh", "--build", BUILD, "--quick", "--json", file],
                                 capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            measures = json.loads(file.read_text())["measures"]
        self.assertEqual({row["name"]: row["target"] for row in measures}, PROMISED)
        for row in measures:
            with self.subTest(row["name"]):
                self.assertTrue(math.isfinite(row["value"]))
                self.assertEqual(row["unit"], "ratio" if row["name"].endswith("ratio") else "ns")
                self.assertIs(row["met"], None if row["target"] is None else row["value"] <= row["target"])
                self.assertIn(row["name"], run.stdout)
        value = {row["name"]: row["value"] for row in measures}
        # Not how fast: that the hooks were there at all, and looked at what they were given.
        self.assertGreater(value["launch_100_pointers_added_ns"], value["launch_0_pointers_added_ns"])
        self.assertGreater(value["malloc_free_parked_ns"], 5)
        self.assertGreater(value["fits_time_ratio"], 0.2)
        self.assertIn("counted", measures[-1])

    def test_without_liboffload_nothing_is_measured(self):
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        run = subprocess.run([BUILD / "bench" / "hook_cost"], env=environment, capture_output=True, text=True,
                             check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("preload liboffload.so", run.stderr)


class Statistics(unittest.TestCase):
    def test_spread_shrinks_with_the_root_of_the_pairs(self):
        few = [0.99, 1.0, 1.01]
        self.assertAlmostEqual(fits.spread_of(few), 1.2533 * 1.4826 * 0.01 / math.sqrt(3))
        self.assertAlmostEqual(fits.spread_of(few * 4), fits.spread_of(few) / 2)

    def test_counts_are_read_and_refusals_seen(self):
        self.assertEqual(fits.events_of("# started\n\n8123,,instructions:u,100,100.00,,\n"), 8123)
        self.assertIsNone(fits.events_of("<not supported>,,instructions:u,0,100.00,,\n"))
        self.assertIsNone(fits.events_of(""))

    @unittest.skipIf(shutil.which("valgrind") is None, "no valgrind")
    def test_instructions_are_the_same_again(self):
        fit = fits.Fits(BUILD, event="no-such-event")
        self.assertEqual(fit.counted, fits.VALGRIND)
        fit.command = [fit.command[0], "--quiet", *fits.QUICK_TRAIN]
        first, again, preloaded = fit.cost(False), fit.cost(False), fit.cost(True)
        self.assertAlmostEqual(first / again, 1, places=2)
        self.assertGreater(preloaded, first)


if __name__ == "__main__":
    sys.exit(unittest.main())
