# SPDX-License-Identifier: Apache-2.0
"""Phantoms: buffers that a launch's arguments name only because a struct passed by value carries what the stack held before. Found by
running the same program with an emptied stack and without: what only the latter names is one."""

import pathlib
import subprocess
import tempfile

from rig import clean_environment


def launches(rig, words, settings):
    """For each launch, its kernel and the set of allocations that it names."""
    with tempfile.TemporaryDirectory() as folder:
        line = rig.command(words, folder, SIMGPU_NAMES=f"{folder}/names", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync", **settings)
        subprocess.run(line, env=clean_environment(rig.build), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rows = [row.split() for row in (pathlib.Path(folder) / "names").read_text().splitlines() if row.startswith("launch")]
    return [(row[3], {int(name.split("+")[0]) for name in row[4:] if "+" in name}) for row in rows]


def phantoms(rig, words, settings):
    """(number of real names, for each phantom how many launches ago the buffer was really used last)"""
    clean = launches(rig, words, settings)
    dirty = launches(rig, words, dict(settings, SIMGPU_WIPE_STACK="0"))
    # A launch that names nothing real is not in the first list, so the lists are walked side by side by kernel.
    last, distances, real, at = {}, [], 0, 0
    for kernel, names in dirty:
        true_names = set()
        if at < len(clean) and clean[at][0] == kernel and clean[at][1] <= names:
            true_names = clean[at][1]
            at += 1
        distances += [at - last.get(name, 0) for name in names - true_names]
        real += len(true_names)
        last.update((name, at) for name in true_names)
    assert at == len(clean), "the two runs went different ways"
    return real, distances
