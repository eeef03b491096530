#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What instructions.py makes of callgrind's files. Runs nothing."""

import pathlib
import tempfile
import unittest

from instructions import Counts

# The program calls the driver through liboffload and directly; the driver calls libc, and itself.
PROGRAM = """# callgrind format
events: Ir

ob=(1) /usr/lib/libpython3.11.so.1.0
fl=(1) ceval.c
fn=(1) _PyEval_EvalFrameDefault
16 100
cob=(2) /build/liboffload.so
cfi=(2) ???
cfn=(2) cuLaunchKernel
calls=2 0
+3 97
cob=(3) /build/simgpu/libcuda.so.1
cfn=(3) cuCtxGetCurrent
calls=1 0
* 4
-3 5

ob=(2)
fl=(2)
fn=(2)
0 40
cob=(3)
cfn=(4) cuLaunchKernel
calls=2 0
0 57

ob=(3)
fn=(4)
0 30
cfn=(5) simgpu::submit
calls=2 0
0 27
fn=(5)
0 20
cob=(4) /lib/libc.so.6
cfn=(6) memcpy
calls=2 0
0 7
fn=(3)
0 4

ob=(4)
fn=(6)
0 7
"""
EXECUTOR = """events: Ir
ob=(1) /build/simgpu/libcuda.so.1
fn=(1) simgpu::Engine::executor_main()
0 1000
"""


class Sums(unittest.TestCase):
    def test_the_driver_is_not_the_program(self):
        counts = Counts()
        with tempfile.TemporaryDirectory() as folder:
            for text in PROGRAM, EXECUTOR:
                file = pathlib.Path(folder) / "counts"
                file.write_text(text)
                counts.add(file)
        self.assertEqual(counts.all, 100 + 5 + 40 + 30 + 20 + 4 + 7 + 1000)
        self.assertEqual(counts.program, 100 + 5 + 40)


if __name__ == "__main__":
    unittest.main()
