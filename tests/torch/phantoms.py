# SPDX-License-Identifier: Apache-2.0
"""What launches name; and phantoms: buffers that a launch's arguments name only because a struct passed by value carries what the stack
held before. Found by running the same program with an emptied stack and without: what only the latter names is one."""

import pathlib
import subprocess
import tempfile

from rig import clean_environment


def happenings(rig, words, settings):
    """The simulated GPU's list of names, split in words."""
    with tempfile.TemporaryDirectory() as folder:
        line = rig.command(words, folder, SIMGPU_NAMES=f"{folder}/names", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync", **settings)
        subprocess.run(line, env=clean_environment(rig.build), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return [row.split() for row in (pathlib.Path(folder) / "names").read_text().splitlines()]


def launch_of(row):
    """Its kernel and the set of allocations that it names."""
    return row[3], {int(name.split("+")[0]) for name in row[4:] if "+" in name}


def launches(rig, words, settings):
    return [launch_of(row) for row in happenings(rig, words, settings) if row[0] == "launch"]


def named_share(rig, words, settings):
    """The mean part of the buffers alive at a launch that it names."""
    alive, shares = set(), []
    for row in happenings(rig, words, settings):
        if row[0] == "alloc":
            alive.add(int(row[1]))
        elif row[0] == "free":
            alive.discard(int(row[1]))
        elif row[0] == "launch":
            _, names = launch_of(row)
            assert names <= alive, row
            shares.append(len(names) / len(alive))
    return sum(shares) / len(shares)


def phantoms(rig, words, settings):
    """(number of real names, of phantoms, for each of those whose buffer was used before how many launches ago that was)"""
    clean = launches(rig, words, settings)
    dirty = launches(rig, words, dict(settings, SIMGPU_WIPE_STACK="0"))
    # A launch that names nothing real is not in the first list, so the lists are walked side by side by kernel.
    last, distances, real, found, at = {}, [], 0, 0, 0
    for kernel, names in dirty:
        true_names = set()
        if at < len(clean) and clean[at][0] == kernel and clean[at][1] <= names:
            true_names = clean[at][1]
            at += 1
        distances += [at - last[name] for name in names - true_names if name in last]
        found += len(names - true_names)
        real += len(true_names)
        last.update((name, at) for name in true_names)
    assert at == len(clean), "the two runs went different ways"
    return real, found, distances
