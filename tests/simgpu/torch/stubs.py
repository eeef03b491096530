#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the source of one stand-in library: a function for every symbol of it that a PyTorch wheel refers to.

    stubs.py --wheel SITE_PACKAGES/torch/lib --library cublas --output FOLDER    writes cublas.stubs.c and cublas.map
    stubs.py --list                                                             prints name and file name of each library

A function made here names itself once on standard error and returns its library's code for "not supported". It is weak, so that
one that is written by hand in the same library takes its place. The wheel's references carry the version node under which the
real library defines the symbol; the stand-in defines it under the same one."""

import argparse
import pathlib
import re
import subprocess
import sys


class Library:
    def __init__(self, soname, prefix, code, node=None, more=(), exports=None):
        self.soname = soname
        self.pattern = re.compile(prefix)
        self.code = code  # what that library calls "not supported"
        self.node = node  # the version node of its symbols; None: it has none
        self.more = more  # looked up at run time, so no file refers to them
        self.exports = exports


LIBRARIES = {
    "cublas": Library("libcublas.so.13", r"cublas(?!Lt)", 15, "libcublas.so.13"),
    "cublasLt": Library("libcublasLt.so.13", r"cublasLt", 15, "libcublasLt.so.13"),
    "cudnn": Library("libcudnn.so.9", r"cudnn", 3000, "libcudnn.so.9", ["cudnnGetProperty"]),
    "nccl": Library("libnccl.so.2", r"nccl", 5),  # ncclInvalidUsage: it has nothing closer
    "cusparse": Library("libcusparse.so.12", r"cusparse(?!Lt)", 10, "libcusparse.so.12"),
    "cusparseLt": Library("libcusparseLt.so.0", r"cusparseLt", 10),
    "cusolver": Library("libcusolver.so.12", r"cusolver", 9, "libcusolver.so.12"),
    "cufft": Library("libcufft.so.12", r"cufft", 16, "libcufft.so.12"),
    "curand": Library("libcurand.so.10", r"curand", 203, "libcurand.so.10", ["curandGetVersion"]),
    "cufile": Library("libcufile.so.0", r"cuFile", 5007),
    "nvshmem_host": Library("libnvshmem_host.so.3", r"nvshmem", 3, "NVSHMEM"),
    "cupti": Library("libcupti.so.13", r"cupti", 27, "libcupti.so.13"),
    "nvrtc": Library("libnvrtc.so.13", r"nvrtc", 11, "libnvrtc.so.13"),
    "nvidia-ml": Library("libnvidia-ml.so.1", r"nvml", 3, None, [
        "nvmlInit_v2", "nvmlShutdown", "nvmlErrorString", "nvmlSystemGetCudaDriverVersion_v2", "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetUUID", "nvmlDeviceGetP2PStatus",
        "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemotePciInfo_v2",
        "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetMemoryInfo"]),
}

# Return something else than a status.
TEXTS = re.compile(r"(ErrorString|ErrorName|StatusString|StatusName|LastError)$")
NULLS = {"nvshmem_malloc", "nvshmem_ptr", "nvshmemx_mc_ptr"}
NEGATIVE = {"cuFileRead", "cuFileWrite"}


def undefined_symbols(wheel):
    """name -> version node or None, of everything that the wheel's libraries take from others."""
    symbols = {}
    for library in sorted(pathlib.Path(wheel).glob("*.so*")):
        text = subprocess.run(["readelf", "-W", "--dyn-syms", str(library)], capture_output=True, text=True, check=True).stdout
        for line in text.splitlines():
            words = line.split()
            if len(words) >= 8 and words[6] == "UND":
                name, _, node = words[7].partition("@")
                symbols[name] = node or None
    return symbols


def stub(name, library):
    if TEXTS.search(name):
        return f"SIMGPU_STUB(const char*, {name}, \"not supported in simulation\")"
    if name in NULLS:
        return f"SIMGPU_STUB(void*, {name}, 0)"
    return f"SIMGPU_STUB(long, {name}, {-library.code if name in NEGATIVE else library.code})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--wheel")
    parser.add_argument("--library", choices=LIBRARIES)
    parser.add_argument("--output")
    arguments = parser.parse_args()
    if arguments.list:
        for name, library in LIBRARIES.items():
            print(name, library.soname)
        return 0
    library = LIBRARIES[arguments.library]
    names = set(library.more)
    for name, node in undefined_symbols(arguments.wheel).items():
        if not library.pattern.match(name):
            continue
        if node != library.node and not (node is None and library.node == "NVSHMEM"):
            sys.exit(f"stubs.py: {name} is wanted under the version {node}, not {library.node}: the table in this file is out of date")
        names.add(name)
    folder = pathlib.Path(arguments.output)
    lines = ["// Written by stubs.py.", '#include "tests/simgpu/torch/stub.h"', ""]
    lines += [stub(name, library) for name in sorted(names)]
    (folder / f"{arguments.library}.stubs.c").write_text("\n".join(lines) + "\n")
    exported = " ".join(f"{name};" for name in sorted(names)) or "simgpu_nothing;"
    (folder / f"{arguments.library}.map").write_text(f"{library.node or ''} {{\n  global: {exported}\n  local: *;\n}};\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
