#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fixtures in streams/: each is what its README says, and PyTorch still submits the same.

    streams_test.py --build DIR [name ...]      77: PyTorch is not there (make torch)"""

import gzip
import re
import sys

from record import STREAMS, compact, record
from rig import ROOT, hugging_face, main

FOLDER = ROOT / "tests" / "torch" / "streams"
NUMBER = r"\d+"
PLACE = r"\d+(?:\+\d+)?"
LINES = {
    "k": rf"k {NUMBER} \S+",
    "a": rf"a {NUMBER} {NUMBER}",
    "f": rf"f {NUMBER}",
    "l": rf"l {NUMBER} {NUMBER} \d+,\d+,\d+/\d+,\d+,\d+(?: {PLACE})*",
    "c": rf"c {NUMBER} {NUMBER} {PLACE} {PLACE}",
    "z": rf"z {NUMBER} {NUMBER} {PLACE}",
}


def lines_of(name):
    return gzip.decompress((FOLDER / f"{name}.ops.gz").read_bytes()).decode().splitlines()


def wrong_with(name):
    """The first line that is not as the README says, and why."""
    first, *lines = lines_of(name)
    if first != f"# liboffload op stream 1: {' '.join(STREAMS[name])}":
        return first
    kernels, sizes, alive, streams, launches = 0, {0: None}, set(), 0, 0
    for line in lines:
        words = line.split(" ")
        if words[0] not in LINES or not re.fullmatch(LINES[words[0]], line):
            return line
        kind, numbers = words[0], [int(word) for word in words[1:3] if word.isdigit()]
        places = {"l": words[4:], "c": words[3:], "z": words[3:]}.get(kind, [])
        if kind == "k":
            if numbers[0] != kernels:
                return line + ": kernels are numbered as they appear"
            kernels += 1
        elif kind == "a":
            if numbers[0] != len(sizes) or not numbers[1]:
                return line + ": allocations are numbered as they are born"
            sizes[numbers[0]] = numbers[1]
            alive.add(numbers[0])
        elif kind == "f":
            if numbers[0] not in alive:
                return line + ": it does not live"
            alive.remove(numbers[0])
        else:
            if numbers[0] > streams:
                return line + ": streams are numbered as they appear"
            streams = max(streams, numbers[0] + 1)
        if kind == "l":
            launches += 1
            if numbers[1] >= kernels:
                return line + ": no such kernel"
        for place in places:
            allocation, _, offset = place.partition("+")
            if kind != "l" and allocation == "0":
                continue  # the host
            if int(allocation) not in alive or int(offset or 0) >= sizes[int(allocation)]:
                return line + f": {place} is not in what lives"
    return None if launches > 100 else f"only {launches} launches"


def all_parse(_):
    assert sorted(STREAMS) == sorted(file.name.removesuffix(".ops.gz") for file in FOLDER.glob("*.ops.gz"))
    for name in STREAMS:
        wrong = wrong_with(name)
        assert wrong is None, f"{name}: {wrong}"
        assert f"`{name}`" in (FOLDER / "README.md").read_text(), name


def stable(lines):
    """What does not depend on which of PyTorch's threads is faster: all lines but the frees in order, and what is freed at all."""
    frees = [line for line in lines if line.startswith("f ")]
    return [line for line in lines if not line.startswith("f ")] + sorted(frees)


def as_before(rig, name):
    _, *before = lines_of(name)
    before, now = stable(before), stable(compact(record(rig.build, STREAMS[name])))
    differing = [pair for pair in zip(before, now) if pair[0] != pair[1]]
    assert now == before, f"{name}: {len(before)} lines, {len(now)} now; first: {differing[:1]}"


def frees_may_move(_):
    """Only their places are left out of the comparison."""
    lines = lines_of("gpt-fp32")[1:]
    place = next(index for index, line in enumerate(lines) if line.startswith("f "))
    free, others = lines[place], lines[:place] + lines[place + 1:]
    assert stable([*others, free]) == stable(lines) != stable(others)
    launch = next(index for index, line in enumerate(others) if line.startswith("l "))
    assert stable([*others[:launch], *others[launch + 1:], others[launch], free]) != stable(lines)


def recorded_again(rig):
    """What PyTorch submits, and how it is written down, are what they were."""
    as_before(rig, "gpt-side-stream")


@hugging_face
def all_recorded_again(rig):
    for name in STREAMS:
        as_before(rig, name)


if __name__ == "__main__":
    sys.exit(main([all_parse, frees_may_move, recorded_again], __doc__, longer=[all_recorded_again]))
