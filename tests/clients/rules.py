#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of interpose/rules.h has a client that breaks without it.

    tests/clients/rules.py --build build [RULE ...]

Each client runs twice with the test build of the library: as it is, and with the one rule dropped. The first must pass and
the second must not: it computes wrong words, hangs, is refused, the simulated GPU's checker ends it, or it is told what it should
not be. What may not wait for another process (a communication library's work) shows in the counts of the report alone.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent

# The words for run.py. Without the rule, a client that hangs is given little time.
BREAKS = {
    "kRangesAreNamed": "--evicted unmapped client proc copies",
    "kEveryWordIsNamed": "--evicted unmapped client proc struct-of-pointers",
    "kArgumentBlockIsNamed": "client proc extra",
    "kTablesAreFollowed": "--evicted unmapped client proc table-from-host",
    "kForeignTablesAreFollowed": "--evicted unmapped client proc table-in-own-pool",
    "kKeptStays": "--evicted unmapped client proc tensor-map",
    "kHostIsWaitedFor": "client proc flag-set-by-host",
    "kEarlyWaitsCount": "client proc flag-first",
    "kCollectivesWait": "--schedule late --report host_waits['external_flag']['count']>0 client proc collective-by-block",
    "kGraphsWait": "client proc host-node",
    "kCallsRelaxTheMode": "client proc capture-beside-thread",
    "kCaptureTakesFromDriver": "client proc capture-invalidated",
    "kJoiningIsSeen": "--schedule late client proc forked-capture",
    "kDefaultStreamFreezes": "client proc capture-in-other-context",
    "kCapturedIsHeld": "client proc capture-replay",
    "kNodesAreHeld": "client proc graph-by-hand",
    "kInstanceNames": "client proc freed-while-graph-lives",
    "kCloneNames": "--evicted unmapped client proc graph-by-hand",
    "kUpdateReplaces": "client proc graph-update",
    "kLaunchNames": "--schedule late client proc graph-destroyed-at-once",
    "kCopiedTablesAreLookedThrough": "--evicted unmapped client proc captured-table",
    "kStreamsHaveNumbers": "client proc stream-handles",
    "kStreamEndIsTold": "client proc stream-handles",
    "kHandlesMeanContexts": "client proc two-contexts-null-streams",
    "kOtherContextsAreFollowed": "client proc two-contexts",
    "kSessionEndsWithContext": "client proc context-reset",
    "kAllDevicesAreLookedAt": "client proc two-devices",
    "kCopyTellsContexts": "client proc peer-copies",
    "kTablesOfOthersStay": "--evicted unmapped client proc table-of-other-device",
    "kPeersReach": "client proc peer-access",
    "kEarlierPeersReach": "client proc pool-access-first",
    "kLaterIsReached": "client proc peer-access",
    "kPoolAccessReaches": "client proc pool-access",
    "kLibrariesTakeFromDriver": "--schedule late --report pass_through['foreign_library']>0 client proc collective",
    "kDriverGetsMemory": "--limit 18MiB client proc refused-once",
    "kUnknownEndsMoving": "client proc unknown-entry",
}


def rules():
    """In their order, which is their number."""
    text = (FOLDER.parent.parent / "interpose" / "rules.h").read_text()
    body = re.search(r"enum class Rule \{(.*?)kCount", text, re.S).group(1)
    return re.findall(r"^\s*(k\w+),", body, re.M)


def run(build, words, number):
    command = [sys.executable, str(FOLDER / "run.py"), "--build", build, "--library", os.path.join(build, "tests", "liboffload-yield.so")]
    if number is not None:
        command += ["--set", f"DROPPED_RULE={number}", "--set", "SIMGPU_WATCHDOG=2", "--seconds", "6"]
    return subprocess.run(command + words.split(), capture_output=True, text=True, timeout=120)


def look_at(build, rule, number):
    words = BREAKS[rule]
    whole = run(build, words, None)
    if whole.returncode != 0:
        return f"{rule}: \"{words}\" fails with all rules: {whole.stdout + whole.stderr}"
    without = run(build, words, number)
    if without.returncode == 0:
        return f"{rule}: \"{words}\" passes without it"
    how = without.stderr.splitlines()
    print(f"{rule}: {words.split()[-1]}: {how[-1] if how else 'fails'}", flush=True)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("rules", nargs="*")
    arguments = parser.parse_args()
    known = rules()
    wrong = [f"{rule}: no client is said to break without it" for rule in known if rule not in BREAKS]
    wrong += [f"{rule}: there is no such rule" for rule in (*BREAKS, *arguments.rules) if rule not in known]
    wanted = [rule for rule in arguments.rules or known if rule in BREAKS and rule in known]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong += filter(None, pool.map(lambda rule: look_at(os.path.abspath(arguments.build), rule, known.index(rule)), wanted))
    if wrong:
        sys.exit("FAILED:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
