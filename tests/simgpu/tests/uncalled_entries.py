#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which modelled entries of the simulated driver no test calls, held against the list of those that need none.

    uncalled_entries.py FOLDER CUDA_H

FOLDER is tests/simgpu. An entry is called where a test's source has its name, outside comments and texts, as the
program's compiler sees it: cuda.h says which version a plain name means; or OLDER(name, version) of it. The twins for a per-thread default stream
(_ptsz, _ptds) are made from the same body by one macro and not looked for. The list, tests/uncalled_entries.txt, has a
line for each entry that no test calls, with the reason; it may hold no other.
"""

import re
import sys
from pathlib import Path

ROW = re.compile(r"SIMGPU_ENTRY(?:_PT)?\((\w+), (\w+), (\d+)")
OLDER = re.compile(r"\bOLDER\((\w+), (\d+)\)")
DEFINE = re.compile(r"^\s*#\s*define (cu[A-Z]\w*)\s+(?:__CUDA_API_PT[DS][SZ]\()?(cu[A-Z]\w*)\)?\s*$", re.M)
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?s:.*?)\)"|"(?:\\.|[^"\\\n])*"', re.S)


def called(folder, meaning, entries):
    names = set()
    for source in [*folder.glob("tests/*.cpp"), *folder.glob("tests/support/*"), *folder.glob("clients/*.cpp")]:
        text = COMMENT_OR_TEXT.sub("", source.read_text())
        for base, version in OLDER.findall(text):
            of_age = [(int(since), symbol) for name, symbol, since in entries
                      if name == base and int(since) <= int(version)]
            names.update(symbol for _, symbol in sorted(of_age)[-1:])
        names.update(meaning.get(name, name) for name in re.findall(r"\bcu[A-Z]\w*", OLDER.sub("", text)))
    return names


def main():
    folder, header = Path(sys.argv[1]), Path(sys.argv[2])
    meaning = dict(DEFINE.findall(header.read_text(errors="replace")))
    entries = ROW.findall((folder / "driver/entries_modelled.def").read_text())
    uncalled = {symbol for _, symbol, _ in entries} - called(folder, meaning, entries)
    kept = {}
    for line in (folder / "tests/uncalled_entries.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(" ")
            kept[name] = reason.strip()
    problems = [f"{name} is called by no test: call it, or say why not" for name in sorted(uncalled - kept.keys())]
    problems += [f"{name} is listed, but called or not modelled" for name in sorted(kept.keys() - uncalled)]
    problems += [f"{name} is listed without a reason" for name, reason in kept.items() if not reason]
    print(f"{len(entries)} entries, {len(uncalled)} called by no test, {len(kept)} listed")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
