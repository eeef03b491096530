#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the project's sources, those changed last first, until all are done or the time is up.

A source that passed is remembered by a hash of itself, of every header it includes, of its compile command and of the configuration, and is
not looked at again while that hash stands. Exit status 1 if anything was found.

  scripts/tidy.py BUILD_FOLDER SECONDS
"""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
# What gcc knows and clang does not, and its stricter warnings, are the compiler's business.
EXTRA = ["--extra-arg=-Wno-error", "--extra-arg=-w", "--quiet"]
# GCC's, too: each source is read with what it includes itself.
PRECOMPILED = re.compile(r"-Winvalid-pch|-include \S*/cmake_pch\.hxx")


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False).stdout


def sources(build, cache):
    """Path below ROOT -> compile command without precompiled headers, of the sources that git knows. clang-tidy finds the commands in
    `cache`."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        database = json.load(file)
    for entry in database:
        entry["command"] = PRECOMPILED.sub("", entry["command"])
    with open(os.path.join(cache, "compile_commands.json"), "w", encoding="utf-8") as file:
        json.dump(database, file)
    tracked = set(output_of("git", "ls-files").split("\n"))
    found = {}
    for entry in database:
        path = os.path.relpath(os.path.realpath(os.path.join(entry["directory"], entry["file"])), ROOT)
        if path in tracked and path.endswith((".cpp", ".c")):
            found[path] = entry
    return found


def latest_first(paths):
    recent = [line[3:] for line in output_of("git", "status", "--porcelain").split("\n")]
    recent += output_of("git", "log", "-n", "60", "--name-only", "--format=").split("\n")
    rank = {}
    for place, path in enumerate(recent):
        rank.setdefault(path, place)
    return sorted(paths, key=lambda path: (rank.get(path, len(recent)), path))


def included(path, entry, seen_text):
    """The project's headers that a source includes, directly or not, by reading the include lines. Coarse but quick."""
    pending, seen = [path], set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if name not in seen_text:
            try:
                with open(os.path.join(ROOT, name), "rb") as file:
                    seen_text[name] = file.read()
            except OSError:
                seen_text[name] = b""
        for match in re.finditer(rb'^\s*#\s*include\s*"([^"]+)"', seen_text[name], re.M):
            header = match.group(1).decode(errors="replace")
            for folder in ("", os.path.dirname(name)):
                candidate = os.path.normpath(os.path.join(folder, header))
                if os.path.isfile(os.path.join(ROOT, candidate)):
                    pending.append(candidate)
    return seen


def fingerprint(path, entry, base, seen_text):
    digest = hashlib.sha256(base)
    digest.update(entry["command"].encode())
    for name in sorted(included(path, entry, seen_text)):
        digest.update(name.encode() + b"\0" + hashlib.sha256(seen_text[name]).digest())
    return digest.hexdigest()


def main():
    build, seconds = os.path.realpath(sys.argv[1]), float(sys.argv[2])
    deadline = time.monotonic() + seconds
    cache = os.path.join(build, "lint-cache")
    os.makedirs(cache, exist_ok=True)
    version = output_of("clang-tidy", "--version").encode()
    with open(os.path.join(ROOT, ".clang-tidy"), "rb") as file:
        base = version + file.read() + " ".join(EXTRA).encode()
    files = sources(build, cache)
    seen_text = {}
    todo, passed = [], 0
    for path in latest_first(files):
        mark = os.path.join(cache, fingerprint(path, files[path], base, seen_text))
        if os.path.exists(mark):
            passed += 1
        else:
            todo.append((path, mark))

    def check(item):
        path, mark = item
        if time.monotonic() > deadline:
            return path, None, ""
        run = subprocess.run(["clang-tidy", "-p", cache, *EXTRA, path], cwd=ROOT, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if run.returncode == 0:
            with open(mark, "w", encoding="utf-8"):
                pass
        return path, run.returncode == 0, run.stdout + (run.stderr if run.returncode and not run.stdout else "")

    wrong, skipped = [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for path, good, text in pool.map(check, todo):
            if good is None:
                skipped += 1
            elif good:
                passed += 1
            else:
                wrong.append(path)
                print(text, flush=True)
    print(f"clang-tidy: {passed} files good, {len(wrong)} not"
          + (f", {skipped} not looked at within {seconds:.0f} s" if skipped else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
