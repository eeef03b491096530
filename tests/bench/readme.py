#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The two generated tables of README.md.

  readme.py --build DIR check         the options are those of `offload options --markdown`, and the numbers those of
                                      measured.json beside this, which has all that `make bench` measures
  readme.py --build DIR write         keeps bench.json of the build folder as measured.json, and writes both tables"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

from bench import MEASURES

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
MEASURED = pathlib.Path(__file__).resolve().parent / "measured.json"


class Wrong(Exception):
    pass


def section(text, name):
    """(begin, end) of what stands between the marks of that name."""
    found = re.search(rf"<!-- {name}: begin -->\n(.*?)<!-- {name}: end -->", text, re.DOTALL)
    if found is None:
        raise Wrong(f"README.md has no section between '<!-- {name}: begin -->' and '<!-- {name}: end -->'")
    return found.span(1)


def replaced(text, name, body):
    begin, end = section(text, name)
    return text[:begin] + body + text[end:]


def options_table(build):
    return subprocess.run([build / "offload", "options", "--markdown"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def written(value, unit):
    return f"{value:.4f}" if unit == "ratio" else f"{value:.0f} {unit}"


def numbers_table(measures):
    lines = ["| measure | value | target | instructions |", "|---|---|---|---|"]
    for row in measures:
        target = "" if row["target"] is None else f"≤ {written(row['target'], row['unit'])}"
        count = "" if row["instructions"] is None else row["instructions"]
        lines.append(f"| {MEASURES[row['name']][2]} (`{row['name']}`) | {written(row['value'], row['unit'])} | {target} | {count} |")
    return "\n".join(lines) + "\n"


def numbers_section(measures):
    last = measures[-1]
    return (numbers_table(measures) +
            "\nMeasured on a driver whose calls do nothing; the training run on the simulated GPU, in "
            f"{last['counted']} ({last['statistic']}, {last['pairs']} of them, spread "
            f"{100 * last['spread']:.2g} %), start and end included; what the operating system does for it is not counted. "
            "No GPU has been measured yet.\n")


def check(text, build):
    begin, end = section(text, "options")
    if text[begin:end] != options_table(build):
        raise Wrong("the options in README.md are not those of `offload options --markdown`; "
                    "tests/bench/readme.py --build build write mends that")
    measures = json.loads(MEASURED.read_text())["measures"]
    if {row["name"]: (row["unit"], row["target"]) for row in measures} != \
            {name: (unit, target) for name, (unit, target, _) in MEASURES.items()}:
        raise Wrong(f"{MEASURED.name} has not all that `make bench` measures, with its targets: measure again, and write")
    begin, end = section(text, "numbers")
    if text[begin:end] != numbers_section(measures):
        raise Wrong(f"the numbers in README.md are not those of {MEASURED.name}; "
                    "tests/bench/readme.py --build build write mends that")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--readme", type=pathlib.Path, default=README)
    parser.add_argument("what", choices=["check", "write"])
    arguments = parser.parse_args()
    text = arguments.readme.read_text()
    try:
        if arguments.what == "check":
            check(text, arguments.build)
        else:
            MEASURED.write_text((arguments.build / "bench.json").read_text())
            measures = json.loads(MEASURED.read_text())["measures"]
            text = replaced(text, "options", options_table(arguments.build))
            arguments.readme.write_text(replaced(text, "numbers", numbers_section(measures)))
    except Wrong as why:
        print(f"readme: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
