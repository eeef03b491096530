# SPDX-License-Identifier: Apache-2.0
"""What the gates have in common: which combinations of choices to try, and trying them side by side."""

import concurrent.futures
import itertools


def pairs_of(combination):
    return set(itertools.combinations(sorted(combination.items()), 2))


def covering_set(choices):
    """A small set of combinations in which every pair of choices occurs (greedy, always the same)."""
    everything = [dict(zip(choices, values)) for values in itertools.product(*choices.values())]
    missing = set().union(*(pairs_of(combination) for combination in everything))
    chosen = []
    while missing:
        best = max(everything, key=lambda combination: len(pairs_of(combination) & missing))
        chosen.append(best)
        missing -= pairs_of(best)
    return chosen


def run_all(check, combinations, jobs, again):
    """Calls check(combination) for each, `jobs` at a time, and prints how it went: a text is what was wrong, and `again` the command to
    which the combination is added to try it once more. Returns how many failed."""
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for combination, wrong in zip(combinations, pool.map(check, combinations)):
            name = " ".join(f"{key}={value}" for key, value in combination.items())
            print(("FAIL " if wrong else "ok   ") + name, flush=True)
            if wrong:
                failed += 1
                print("     " + wrong.replace("\n", "\n     "))
                print(f"     again: {again} {name}", flush=True)
    return failed


def close(count, failed):
    """The last line, and the exit status."""
    print(f"{count} combinations, {failed} failed")
    return 1 if failed else 0
