#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which entries that hooks.def hooks are called by a client of this folder, by their base names.

    tests/clients/called.py

Fails where one is called by none and is not in the list below, or is in it without need.
"""

import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
ARRAYS = "the simulated GPU has no arrays, textures and surfaces"
ABSENT = "the simulated GPU answers that there is no such thing"
MEMORY_ONLY = "only the retry for want of memory stands before it, as before those in refused-once"
SAME = "the same wrapper as that of "

NOT_CALLED = {
    "cuMemSetMemPool": SAME + "cuDeviceSetMemPool, but for its arguments; of CUDA 13, which the clients do not ask for",
    "cuCtxDetach": SAME + "cuCtxDestroy",
    "cuGraphInstantiate": SAME + "cuGraphInstantiateWithFlags, of another age",
    "cuGraphAddExternalSemaphoresWaitNode": ABSENT,
    "cuWaitExternalSemaphoresAsync": ABSENT,
    "cuGraphExecChildGraphNodeSetParams": ABSENT,
    "cuGraphKernelNodeSetAttribute": "what it is looked through for ends all moving",
    "cuTensorMapEncodeIm2col": SAME + "cuTensorMapEncodeTiled, but for its arguments",
    "cuTensorMapEncodeIm2colWide": SAME + "cuTensorMapEncodeTiled, but for its arguments",
    "cuTensorMapReplaceAddress": SAME + "cuTensorMapEncodeTiled, but for its arguments",
    "cuMulticastBindMem": ABSENT,
    "cuMulticastCreate": ABSENT,
    **dict.fromkeys(
        ("cuMemcpyDtoA", "cuMemcpyAtoD", "cuTexObjectCreate", "cuTexRefSetAddress", "cuTexRefSetAddress2D", "cuArrayCreate",
         "cuArray3DCreate", "cuMipmappedArrayCreate", "cuModuleGetTexRef", "cuModuleGetSurfRef", "cuGraphicsMapResources",
         "cuImportExternalMemory", "cuExternalMemoryGetMappedBuffer", "cuExternalMemoryGetMappedMipmappedArray"), ARRAYS),
    **dict.fromkeys(
        ("cuModuleLoad", "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuLibraryLoadFromFile",
         "cuLibraryGetModule", "cuKernelGetFunction", "cuLibraryGetGlobal", "cuLibraryGetManaged",
         "cuLibraryGetUnifiedFunction", "cuStreamCreateWithPriority", "cuCtxSetLimit", "cuFuncSetCacheConfig",
         "cuKernelGetAttribute", "cuKernelSetAttribute", "cuKernelSetCacheConfig", "cuMemPoolImportPointer",
         "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "cuOccupancyMaxPotentialBlockSize",
         "cuOccupancyMaxPotentialBlockSizeWithFlags", "cuOccupancyAvailableDynamicSMemPerBlock",
         "cuOccupancyMaxActiveClusters", "cuOccupancyMaxPotentialClusterSize"), MEMORY_ONLY),
}


def hooked():
    table = (FOLDER.parent.parent / "interpose" / "hooks.def").read_text()
    return sorted(set(re.findall(r"^HOOK\(\w+, (\w+),", table, re.M)))


def called():
    """A call through the table of entries, or a question for the entry."""
    names = set()
    for file in sorted(FOLDER.iterdir()):
        if file.suffix not in (".cpp", ".h"):
            continue
        text = file.read_text()
        names.update(re.findall(r"\bcuda\.(cu[A-Z]\w+)\s*[(,]", text))
        names.update(re.findall(r"\bENTRY_OF\(\s*\w+,\s*(cu[A-Z]\w+)\)", text))
        names.update(re.findall(r"\bGREEN\((cu[A-Z]\w+)\)", text))
        names.update(re.findall(r'"(cu[A-Z]\w+)"', text))
    return names


def main():
    hooks, calls = hooked(), called()
    problems = [f"{name} is hooked, and no client calls it" for name in hooks if name not in calls and name not in NOT_CALLED]
    problems += [f"{name} is called after all" for name in NOT_CALLED if name in calls]
    problems += [f"{name} is not hooked" for name in NOT_CALLED if name not in hooks]
    print(f"{len(hooks)} names are hooked, of which clients call {len(set(hooks) & calls)}")
    if problems:
        sys.exit("FAILED: " + "\n".join(problems))


if __name__ == "__main__":
    main()
