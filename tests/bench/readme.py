#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The generated tables of README.md.

  readme.py --build DIR check         the options are those of `offload options --markdown`, and the numbers those of
                                      measured.json beside this, which has all that `make bench` measures, and of
                                      tests/torch/measured.json for `make bench-torch`
  readme.py --build DIR write         keeps bench.json and bench-torch.json of the build folder, those that are there, as
                                      these files, and writes all tables"""

import argparse
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

from bench import MEASURES

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"


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


def measures_of_torch():
    """Its folder has modules of the same names as this one."""
    found = importlib.util.spec_from_file_location("measures_of_torch", ROOT / "tests" / "torch" / "measures.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.MEASURES


def in_its_unit(value, unit):
    if value is None:
        return ""
    if unit == "ratio":
        return f"{value:.3f}"
    rounded = f"{value:.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.1f}"
    return rounded if unit == "count" else f"{rounded} {unit}"


def torch_section(measures):
    what = measures_of_torch()
    lines = ["| measure | value | target |", "|---|---|---|"]
    for row in measures:
        target = "" if row["target"] is None else f"≤ {in_its_unit(row['target'], row['unit'])}"
        lines.append(f"| {what[row['name']][2]} (`{row['name']}`) | {in_its_unit(row['value'], row['unit'])} | {target} |")
    by_name = {row["name"]: row for row in measures}
    time = by_name["torch_step_with_ms"]["processor_time"]
    causes = by_name["torch_capped_host_waits_per_step"]["by_cause"]
    waits = ", ".join(f"{cause} {wait['count']:.1f}" for cause, wait in causes.items()) or "none"
    return ("\n".join(lines) + "\n"
            f"\nThe ratios in {by_name['torch_fits_time_ratio']['counted']}. Processor time is the least of {time['pairs']} runs each, "
            f"taken in turns; the ratio of the pairs is {time['ratio']:.3f} at the median, with a median deviation of {time['spread']:.3f}, "
            "because liboffload's allocator takes the place of the simulated driver's, which is slower. "
            f"Waits under the cap by cause: {waits}.\n")


# Mark in the README: what is measured, how that is kept, what the build folder has, the text.
NUMBERS = {
    "numbers": (MEASURES, ROOT / "tests" / "bench" / "measured.json", "bench.json", numbers_section),
    "torch numbers": (measures_of_torch(), ROOT / "tests" / "torch" / "measured.json", "bench-torch.json", torch_section),
}


def check(text, build):
    begin, end = section(text, "options")
    if text[begin:end] != options_table(build):
        raise Wrong("the options in README.md are not those of `offload options --markdown`; "
                    "tests/bench/readme.py --build build write mends that")
    for name, (wanted, kept, file, text_of) in NUMBERS.items():
        measures = json.loads(kept.read_text())["measures"]
        if {row["name"]: (row["unit"], row["target"]) for row in measures} != \
                {measure: (unit, target) for measure, (unit, target, _) in wanted.items()}:
            raise Wrong(f"{kept} has not all that is measured into {file}, with its targets: measure again, and write")
        begin, end = section(text, name)
        if text[begin:end] != text_of(measures):
            raise Wrong(f"the {name} in README.md are not those of {kept}; tests/bench/readme.py --build build write mends that")


def write(text, build):
    text = replaced(text, "options", options_table(build))
    for name, (_, kept, file, text_of) in NUMBERS.items():
        if (build / file).exists():
            kept.write_text((build / file).read_text())
        text = replaced(text, name, text_of(json.loads(kept.read_text())["measures"]))
    return text


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
            arguments.readme.write_text(write(text, arguments.build))
    except Wrong as why:
        print(f"readme: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
