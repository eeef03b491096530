#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Python that has imported what takes so long, and from which each run is forked before it first calls CUDA.

For runs without liboffload, which are only compared against: what they end with must not depend on how they were started. Runs
under liboffload are always processes of their own.

  warm.py MODULE ...      reads one request in JSON a line, answers each with the exit status"""

import importlib
import json
import os
import pathlib
import queue
import runpy
import select
import signal
import subprocess
import sys

NO_END = 124  # as timeout(1) says it


class Warm:
    """Its users' side. Processes are started as they are needed, one for each thread that runs something at the time; `prefix` is the
    command line before python, which says where they run."""

    def __init__(self, prefix, modules, environment):
        self.line = [*prefix, "python", str(pathlib.Path(__file__).resolve()), *modules]
        self.environment = environment
        self.idle = queue.SimpleQueue()
        self.all = []

    def run(self, words, settings, folder, timeout_s):
        """`python words...` with these variables. Raises subprocess.TimeoutExpired as subprocess.run does; leaves files in `folder`."""
        try:
            process = self.idle.get_nowait()
        except queue.Empty:
            process = subprocess.Popen(self.line, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.all.append(process)
        out, err = folder / "out.txt", folder / "err.txt"
        request = {"words": words, "settings": settings, "out": str(out), "err": str(err), "timeout": timeout_s}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{' '.join(self.line)} ended with {process.wait()}")
        self.idle.put(process)
        done = subprocess.CompletedProcess(words, int(answer), out.read_text(), err.read_text())
        if done.returncode == NO_END:
            raise subprocess.TimeoutExpired(words, timeout_s, done.stdout, done.stderr)
        return done

    def close(self):
        for process in self.all:
            process.stdin.close()
            process.wait()


def exit_status(child, timeout_s):
    watched = os.pidfd_open(child)
    ready, _, _ = select.select([watched], [], [], timeout_s)
    os.close(watched)
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if ready else NO_END


def serve():
    """Returns in each child, with the words that it shall run."""
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            for stream, path, flags in (0, os.devnull, os.O_RDONLY), (1, request["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), \
                    (2, request["err"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
                file = os.open(path, flags, 0o600)
                os.dup2(file, stream)
                os.close(file)
            os.environ.update(request["settings"])
            return request["words"]
        print(exit_status(child, request["timeout"]), flush=True)
    return None


if __name__ == "__main__":
    for name in sys.argv[1:]:
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "a process of several threads cannot be forked"
    assert not sys.modules["torch"].cuda.is_initialized()
    if todo := serve():
        sys.argv = todo
        sys.path[0] = os.path.dirname(todo[0])
        runpy.run_path(todo[0], run_name="__main__")
