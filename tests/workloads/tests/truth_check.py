# SPDX-License-Identifier: Apache-2.0
"""Reads train_gpt's account of its tensors (truth.h) and looks for what cannot be."""
import collections
import json

Account = collections.namedtuple("Account", "run ops tensors events")


def read(path):
    """`events` are (clock, bytes more) for each allocation and free, in order."""
    ops, tensors = [], []
    with open(path, encoding="utf-8") as lines:
        run = json.loads(next(lines))
        for line in lines:
            entry = json.loads(line)
            (tensors if "tensor" in entry else ops).append(entry)
    events = [(tensor["clock"][0], tensor["bytes"]) for tensor in tensors]
    events += [(tensor["clock"][1], -tensor["bytes"]) for tensor in tensors]
    return Account(run, ops, tensors, sorted(events))


def peak(account):
    """The most bytes alive at any time."""
    live = most = 0
    for _, change in account.events:
        live += change
        most = max(most, live)
    return most


def problems(account):
    """What is wrong with the account, in words."""
    found = []
    if [op["op"] for op in account.ops] != list(range(len(account.ops))):
        found.append("operations are not numbered from 0")
    if sorted(t["tensor"] for t in account.tensors) != list(range(len(account.tensors))):
        found.append("a tensor is missing or stands twice")
    ticks = [tick for tick, _ in account.events]
    if ticks != list(range(len(ticks))):
        found.append("an allocation or a free is missing")
    used = set()
    for tensor in account.tensors:
        name = f"tensor {tensor['tensor']} ({tensor['name']})"
        uses = tensor["uses"]
        if not uses:
            found.append(f"{name} is never used")
            continue
        if uses[0][1] != "w":
            found.append(f"{name} is read before it is written")
        if uses != sorted(uses, key=lambda use: use[0]):
            found.append(f"{name}: uses out of order")
        if uses[0][0] < tensor["born"] or uses[-1][0] >= tensor["freed"]:
            found.append(f"{name} is used outside its life")
        if tensor["role"] == "activation":
            op, kind = uses[-1]
            if account.ops[op]["thread"] != "backward" or "r" not in kind:
                found.append(f"{name}: an activation that the backward pass does not read last")
        used.update(op for op, _ in uses)
    if used != set(range(len(account.ops))):
        found.append("an operation uses no tensor")
    return found
