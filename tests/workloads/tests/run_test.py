#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs train_gpt on the simulated GPU: it learns, it repeats, it fails as it says.

Usage: run_test.py BUILD_FOLDER [unittest arguments]
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import truth_check

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build"
PROGRAM = BUILD / "workloads" / "train_gpt"
SCHEDULES = ("fifo", "late", "random:1", "random:2")
LOSS = re.compile(r"(step|eval) (\d+) loss (\d+\.\d{6}) (0x1\.[0-9a-f]+p[+-]\d+)")


def train(*options, schedule="fifo", status=0, memory="64MiB", tiny=True, **variables):
    """The finished run; its checker's findings would be its exit status."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SIMGPU_")}
    environment.update(SIMGPU_BUILD=str(BUILD), **variables)
    command = [ROOT / "scripts" / "simgpu", "--memory", memory, "--schedule", schedule, "--", PROGRAM,
               *(["--tiny"] if tiny else []), "--quiet", *options]
    run = subprocess.run([str(part) for part in command], env=environment, text=True, timeout=240,
                         capture_output=True, check=False)
    assert run.returncode == status, f"{options}: status {run.returncode}\n{run.stdout}{run.stderr}"
    return run


def losses(text, kind="step"):
    return [float.fromhex(m[4]) for m in LOSS.finditer(text) if m[1] == kind]


def weights(text):
    return text.splitlines()[-1]


class Learning(unittest.TestCase):
    def test_output_has_its_documented_form(self):
        lines = train().stdout.splitlines()
        self.assertEqual(len(lines), 6)
        for number, line in enumerate(lines[:4], start=1):
            match = LOSS.fullmatch(line)
            self.assertIsNotNone(match, line)
            self.assertEqual(int(match[2]), number)
            self.assertAlmostEqual(float(match[3]), float.fromhex(match[4]), delta=1e-6)
        self.assertRegex(lines[4], r"^peak \d+$")
        self.assertRegex(lines[5], r"^weights [0-9a-f]{16}$")

    def test_loss_falls_in_the_tiny_run(self):
        loss = losses(train().stdout)
        self.assertLess(abs(loss[0] - 5.545), 0.5)  # ln 256: nothing is known yet
        self.assertLess(loss[-1], loss[0] - 1.0)
        self.assertEqual(loss, sorted(loss, reverse=True))

    def test_loss_falls_in_the_default_run(self):
        run = train("--steps", "5", memory="1GiB", tiny=False)
        loss = losses(run.stdout)
        self.assertLess(loss[-1], loss[0] - 1.5)
        peak = int(re.search(r"peak (\d+)", run.stdout)[1])
        self.assertTrue(300 << 20 < peak < 600 << 20, peak)

    def test_seed_and_text_matter(self):
        runs = {weights(train(*options).stdout)
                for options in ((), ("--seed", "2"), ("--text", __file__), ("--learning-rate", "0.02"))}
        self.assertEqual(len(runs), 4)

    def test_evaluation_text_is_learnt_too_and_changes_no_weight(self):
        run = train("--eval-every", "2")
        loss = losses(run.stdout, "eval")
        self.assertEqual(len(loss), 2)
        self.assertLess(loss[1], loss[0] - 0.2)
        self.assertEqual(weights(run.stdout), weights(train().stdout))


class Repeating(unittest.TestCase):
    def check(self, *options):
        """The same output under every schedule."""
        outputs = {train(*options, schedule=schedule).stdout for schedule in SCHEDULES}
        self.assertEqual(len(outputs), 1)
        return outputs.pop()

    def test_plain(self):
        self.assertEqual(self.check(), train().stdout)

    def test_async_allocator(self):
        self.assertEqual(self.check("--allocator", "async"), train().stdout)

    def test_optimizer_stream(self):
        self.assertEqual(self.check("--optimizer-stream"), train().stdout)

    def test_optimizer_stream_with_async_allocator_and_evaluation(self):
        options = ("--eval-every", "1", "--accumulate", "2")
        self.assertEqual(self.check("--optimizer-stream", "--allocator", "async", *options),
                         train(*options).stdout)

    def test_accumulation(self):
        # Without frees that wait for the GPU, the third batch needs a staging buffer that may be in use.
        accumulated = self.check("--accumulate", "3", "--allocator", "async")
        self.assertEqual(accumulated, self.check("--accumulate", "3"))
        self.assertNotEqual(weights(accumulated), weights(train().stdout))

    def test_checkpointing_saves_memory_and_changes_no_bit(self):
        plain = train("--layers", "5").stdout
        for every in ("1", "2", "5"):
            saving = self.check("--layers", "5", "--checkpoint-every", every)
            self.assertEqual(weights(saving), weights(plain))
            self.assertEqual(losses(saving), losses(plain))
            peak = [int(re.search(r"peak (\d+)", text)[1]) for text in (saving, plain)]
            if every == "1":
                self.assertLess(peak[0], 0.65 * peak[1])

    def test_varying_sequence(self):
        self.check("--vary-sequence", "--steps", "6")

    def test_everything_at_once(self):
        self.check("--vary-sequence", "--accumulate", "2", "--checkpoint-every", "1", "--eval-every",
                   "3", "--optimizer-stream", "--allocator", "async", "--steps", "6")

    def test_sizes_that_fill_no_tile(self):
        self.check("--batch", "3", "--sequence", "37", "--width", "48", "--heads", "3")


class Failing(unittest.TestCase):
    def test_bad_options_are_named(self):
        for options, message in (
                (("--layers", "0"), "--layers 0: must be a whole number of at least 1"),
                (("--frobnicate",), "unknown option --frobnicate; --help lists them"),
                (("--text", "/nonexistent"), "--text /nonexistent: cannot be read"),
                (("--truth", "/nonexistent/truth"), "--truth /nonexistent/truth: cannot be written"),
                (("--sequence", "3000"), "11358 bytes are too few for --sequence 3000")):
            run = train(*options, status=2)
            self.assertIn(message, run.stderr)
            self.assertTrue(run.stderr.startswith("train_gpt: "))
            self.assertEqual(run.stdout, "")

    def test_out_of_memory_says_when_and_for_what(self):
        for allocator in ("sync", "async"):
            run = train("--allocator", allocator, memory="1MiB", status=3, SIMGPU_GRANULARITY="4KiB")
            self.assertRegex(run.stderr, r"^out of memory: step \d, allocating \d+ for \w+\n$")

    def test_out_of_memory_on_the_backward_thread(self):
        # Holds the forward pass and not the first gradients: found by trying.
        run = train("--layers", "1", memory="624KiB", status=3, SIMGPU_GRANULARITY="4KiB")
        self.assertRegex(run.stderr, r"^out of memory: step 1, allocating \d+ for (temporary|workspace|gradient|logits)\n$")

    def test_without_a_device_the_error_is_named(self):
        run = train(status=4, SIMGPU_DEVICES="0")
        self.assertRegex(run.stderr, r"^cudaSetDevice failed: cudaErrorNoDevice \(100\), ")

    def test_help_lists_every_option(self):
        text = train("--help").stdout
        for name in ("layers", "checkpoint-every", "optimizer-stream", "truth", "tiny"):
            self.assertIn(f"  --{name}", text)


class Truth(unittest.TestCase):
    def check(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "truth.jsonl"
            run = train("--truth", path, *options)
            self.assertEqual(run.stdout, train(*options).stdout)
            account = truth_check.read(path)
        problems = truth_check.problems(account)
        self.assertEqual(problems, [])
        self.assertEqual(truth_check.peak(account), int(re.search(r"peak (\d+)", run.stdout)[1]))
        return account

    def test_is_consistent_and_explains_the_peak(self):
        account = self.check()
        roles = {tensor["role"] for tensor in account.tensors}
        self.assertEqual(roles, {"parameter", "gradient", "optimizer state", "activation", "temporary",
                                 "input", "logits", "workspace"})

    def test_knows_what_the_backward_pass_needs(self):
        in_step = [tensor for tensor in self.check().tensors if tensor["step"] == 3]
        kept = {tensor["name"] for tensor in in_step if tensor["role"] == "activation"}
        self.assertEqual(kept, {"embedding", "norm1", "mean", "scale", "query", "key", "value", "attention",
                                "attention log sums", "residual1", "norm2", "up", "gelu", "residual2",
                                "final norm"})
        passing = {tensor["name"] for tensor in in_step if tensor["role"] == "temporary"}
        self.assertLess({"projection", "down", "loss", "input gradient"}, passing)

    def test_recomputed_output_is_not_kept(self):
        account = self.check("--checkpoint-every", "1")
        recomputed = [tensor for tensor in account.tensors if tensor["name"] == "residual2" and
                      account.ops[tensor["uses"][0][0]]["thread"] == "backward"]
        self.assertEqual(len(recomputed), 8)  # 4 steps, 2 layers
        for tensor in recomputed:
            self.assertEqual(tensor["freed"], tensor["born"] + 1)

    def test_holds_for_other_ways_to_train(self):
        self.check("--accumulate", "2", "--checkpoint-every", "1", "--eval-every", "2",
                   "--optimizer-stream", "--allocator", "async", "--vary-sequence")

    def test_activations_come_back_in_reverse_order(self):
        account = self.check()
        ups = [t for t in account.tensors if t["name"] == "up" and t["step"] == 2]
        ups.sort(key=lambda t: t["born"])
        self.assertEqual([t["layer"] for t in ups], [1, 2])
        self.assertGreater(ups[0]["uses"][-1][0], ups[1]["uses"][-1][0])


if __name__ == "__main__":
    unittest.main()
