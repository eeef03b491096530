# SPDX-License-Identifier: Apache-2.0
"""What the gates have in common: which combinations of choices to try, and trying them side by side."""

import collections
import concurrent.futures
import itertools
import random


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


class Layer:
    """One choice of `places` for each of the combinations, and for `more` of them a second one, so that as many pairs as possible occur:
    a random walk that never goes down. Always the same with the same seed."""

    def __init__(self, combinations, places, more, seed):
        self.generator = random.Random(seed)
        self.combinations = combinations
        self.everywhere = [dict(zip(places, values)) for values in itertools.product(*places.values())]
        self.missing = set().union(*(pairs_of({**combination, **where}) for combination in combinations for where in self.everywhere))
        self.occurs = collections.Counter()
        self.chosen = []
        for combination in combinations + combinations[:more]:
            self.chosen.append({**combination, **self.generator.choice(self.everywhere)})
            self.add(self.chosen[-1])

    def add(self, combination):
        pairs = pairs_of(combination)
        self.occurs.update(pairs)
        self.missing -= pairs

    def remove(self, combination):
        pairs = pairs_of(combination)
        self.occurs.subtract(pairs)
        self.missing |= {pair for pair in pairs if not self.occurs[pair]}

    def walk(self, steps):
        """Whether all pairs occur."""
        for _ in range(steps):
            if not self.missing:
                break
            index, before = self.generator.randrange(len(self.chosen)), len(self.missing)
            old = self.chosen[index]
            combination = self.combinations[index] if index < len(self.combinations) else self.generator.choice(self.combinations)
            new = {**combination, **self.generator.choice(self.everywhere)}
            self.remove(old)
            self.add(new)
            if len(self.missing) > before:
                self.remove(new)
                self.add(old)
            else:
                self.chosen[index] = new
        return not self.missing


def laid_over(combinations, places, steps=4000, seed=2):
    """The combinations with a choice of `places` each, some of them with several, so that every pair of choices occurs. Of the first
    seeds, 2 is the one that needs fewest."""
    for more in itertools.count():
        layer = Layer(combinations, places, more, seed)
        if layer.walk(steps):
            return layer.chosen


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
