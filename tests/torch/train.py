#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT on text, byte by byte. An ordinary PyTorch script: it knows nothing of where it runs.

Standard output: one line per step (loss as a number and as the bits of it), then a hash of all weights, a hash of the optimizer's
state, how many steps it took, and torch.cuda.max_memory_allocated()."""

import argparse
import contextlib
import hashlib
import math
import struct

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

VOCABULARY = 256
TEXT = (b"The GPU holds what the next kernel needs; everything else may wait in host memory until its turn comes. "
        b"A training step reads the weights, keeps what each layer computed, and walks back through all of it, last layer first. ") * 64


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", help="a file to train on (default: two sentences, often)")
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--optimizer", choices=["adamw-foreach", "adamw-fused", "adamw-single", "sgd"], default="adamw-foreach")
    parser.add_argument("--attention", choices=["sdpa", "manual"], default="sdpa")
    parser.add_argument("--checkpointing", choices=["none", "reentrant", "nonreentrant"], default="none")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--workers", type=int, default=0, help="processes that load data, into pinned memory")
    parser.add_argument("--accumulate", type=int, default=1, help="micro-batches per step")
    parser.add_argument("--eval-every", type=int, default=0)
    parser.add_argument("--vary-sequence", action="store_true")
    parser.add_argument("--side-stream", action="store_true", help="move the input on a stream of its own")
    parser.add_argument("--clip", type=float, default=0.0)
    parser.add_argument("--schedule", action="store_true", help="warm the learning rate up and decay it")
    parser.add_argument("--save-at", type=int, default=0, help="save after this step ...")
    parser.add_argument("--checkpoint-file", help="... to this file")
    parser.add_argument("--deterministic", action="store_true", help="only kernels that compute the same each time (set CUBLAS_WORKSPACE_CONFIG)")
    parser.add_argument("--resume", action="store_true", help="begin with that file, and go on from there")
    return parser.parse_args()


class Pieces(Dataset):
    """Stretches of the text; which ones depends on the seed alone."""

    def __init__(self, text, sequence, count, seed):
        self.text = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        self.sequence = sequence
        generator = torch.Generator().manual_seed(seed)
        self.starts = torch.randint(len(text) - sequence - 1, (count,), generator=generator)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        start = int(self.starts[index])
        piece = self.text[start:start + self.sequence + 1].long()
        return piece[:-1], piece[1:]


class Attention(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.heads = options.heads
        self.manual = options.attention == "manual"
        self.dropout = options.dropout
        self.inputs = nn.Linear(options.width, 3 * options.width)
        self.output = nn.Linear(options.width, options.width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.inputs(x).split(width, dim=2))
        if self.manual:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
            y = F.dropout(scores.softmax(-1), self.dropout, self.training) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        return self.output(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.norm1 = nn.LayerNorm(options.width)
        self.attention = Attention(options)
        self.norm2 = nn.LayerNorm(options.width)
        self.wide = nn.Linear(options.width, 4 * options.width)
        self.narrow = nn.Linear(4 * options.width, options.width)
        self.dropout = nn.Dropout(options.dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.narrow(F.gelu(self.wide(self.norm2(x)))))


class GPT(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.checkpointing = options.checkpointing
        self.tokens = nn.Embedding(VOCABULARY, options.width)
        self.positions = nn.Embedding(options.sequence, options.width)
        self.blocks = nn.ModuleList(Block(options) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.width)
        self.head = nn.Linear(options.width, VOCABULARY, bias=False)

    def forward(self, inputs, targets):
        x = self.tokens(inputs) + self.positions(torch.arange(inputs.size(1), device=inputs.device))
        for block in self.blocks:
            if self.checkpointing == "none" or not self.training:
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.checkpointing == "reentrant")
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.reshape(-1))


class Mover:
    """Brings batches to the device, if asked on a stream of its own."""

    def __init__(self, device, side_stream):
        self.device = device
        self.stream = torch.cuda.Stream() if side_stream else None

    def __call__(self, *tensors):
        if self.stream is None:
            return [tensor.to(self.device, non_blocking=True) for tensor in tensors]
        with torch.cuda.stream(self.stream):
            moved = [tensor.to(self.device, non_blocking=True) for tensor in tensors]
        torch.cuda.current_stream().wait_stream(self.stream)
        for tensor in moved:
            tensor.record_stream(torch.cuda.current_stream())
        return moved


def make_optimizer(options, parameters):
    if options.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    return torch.optim.AdamW(parameters, lr=1e-3, foreach=options.optimizer == "adamw-foreach", fused=options.optimizer == "adamw-fused")


def hash_of(tensors):
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def count_steps():
    """A list that grows with every step that an optimizer really takes; a gradient scaler leaves out some."""
    taken = []
    register_optimizer_step_post_hook(lambda *_: taken.append(1))
    return taken


def main():
    options = arguments()
    taken = count_steps()
    torch.manual_seed(options.seed)
    torch.use_deterministic_algorithms(options.deterministic)
    device = torch.device("cuda")
    text = open(options.text, "rb").read() if options.text else TEXT
    model = GPT(options).to(device)
    optimizer = make_optimizer(options, model.parameters())
    schedule = None
    if options.schedule:
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 2) * 0.9 ** step)
    scaler = torch.amp.GradScaler("cuda", enabled=options.precision == "fp16")
    first = 0
    if options.resume:
        saved = torch.load(options.checkpoint_file, map_location="cpu")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scaler.load_state_dict(saved["scaler"])
        if schedule:
            schedule.load_state_dict(saved["schedule"])
        first = saved["step"]
        del saved
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.precision)
    autocast = (lambda: torch.autocast("cuda", half)) if half else contextlib.nullcontext
    pinned = options.workers > 0 or options.side_stream
    micro_batches = options.steps * options.accumulate
    batches = DataLoader(Pieces(text, options.sequence, micro_batches * options.batch, options.seed), batch_size=options.batch,
                         num_workers=options.workers, pin_memory=pinned)
    evaluation = Pieces(text, options.sequence, options.batch, options.seed + 1)
    move = Mover(device, options.side_stream)
    lengths = torch.Generator().manual_seed(options.seed)
    batches = iter(batches)
    for step in range(options.steps):
        micro = []
        for _ in range(options.accumulate):
            inputs, targets = next(batches)
            if options.vary_sequence:
                length = int(torch.randint(options.sequence // 4, options.sequence + 1, (1,), generator=lengths))
                inputs, targets = inputs[:, :length], targets[:, :length]
            micro.append((inputs, targets))
        if step < first:
            continue
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for inputs, targets in micro:
            inputs, targets = move(inputs, targets)
            with autocast():
                loss = model(inputs, targets) / options.accumulate
            scaler.scale(loss).backward()
            total += loss.item()
        if options.clip:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
        scaler.step(optimizer)
        scaler.update()
        if schedule:
            schedule.step()
        print(f"step {step} loss {total:.6g} {struct.pack('>d', total).hex()}", flush=True)
        if options.eval_every and (step + 1) % options.eval_every == 0:
            model.eval()
            with torch.no_grad(), autocast():
                inputs, targets = move(*(torch.stack(part) for part in zip(*(evaluation[i] for i in range(options.batch)))))
                value = model(inputs, targets).item()
            model.train()
            print(f"eval {step} loss {value:.6g} {struct.pack('>d', value).hex()}", flush=True)
        if options.save_at and step + 1 == options.save_at:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict(),
                        "schedule": schedule.state_dict() if schedule else None, "step": step + 1}, options.checkpoint_file)
    print("weights", hash_of(model.parameters()))
    states = [value for _, state in sorted(optimizer.state_dict()["state"].items()) for value in state.values()]
    print("optimizer", hash_of(value for value in states if isinstance(value, torch.Tensor)))
    print(f"taken {len(taken)} of {options.steps - first} steps")
    print("peak", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()
