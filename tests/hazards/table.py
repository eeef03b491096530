#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/hazards.md names only tests that exist, and every row of it names one or says why there is none.

    tests/hazards/table.py --build build
"""

import argparse
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

TABLE = pathlib.Path(__file__).resolve().parents[1] / "hazards.md"
WITHOUT_A_TEST = ("not shown:", "nothing to show")
NOT_BUILT = 77


def known_tests(build):
    text = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, check=True, capture_output=True, text=True).stdout
    return {test["name"].split("  #")[0] for test in json.loads(text)["tests"]}


def problems_of(text, known):
    rows = 0
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 4 or cells[0] in ("report", "hazard") or set(cells[0]) <= {"-"}:
            continue
        rows += 1
        names = re.findall(r"`([^`]+)`", cells[3])
        if not names and not any(words in cells[3] for words in WITHOUT_A_TEST):
            yield f"line {number} names no test and does not say why"
        for name in names:
            if not fnmatch.filter(known, name):
                yield f"line {number}: there is no test {name}"
    if rows < 100:
        yield f"only {rows} rows were read"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    known = known_tests(parser.parse_args().build)
    missing = [name for name in known if name.endswith("_NOT_BUILT")]
    if missing:
        print(f"skipped: {len(missing)} test programs are not built")
        sys.exit(NOT_BUILT)
    # A table that names a test nobody has must be found out.
    wrong = "| a | b | c | `hazards.no_such_test` |\n| a | b | c | nothing |\n"
    if len(list(problems_of(wrong, known))) != 3:
        sys.exit("FAILED: a wrong table passes")
    problems = list(problems_of(TABLE.read_text(), known))
    for problem in problems:
        print(problem)
    sys.exit(f"FAILED: {len(problems)} problems" if problems else 0)


if __name__ == "__main__":
    main()
