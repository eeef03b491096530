# SPDX-License-Identifier: Apache-2.0
"""The training scripts that the gate runs, and what each can be told to do."""

import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent


class Script:
    """`choices` by name; `features` are the words for each choice of that name, which may be several with a + between them, and
    `together` has each in at least one of them; `model` and `longer` say how large; `modules` are what it imports that takes long."""

    hugging_face = False

    def __init__(self, name, file, modules, choices, features, together, model, longer):
        self.name = name
        self.file = file
        self.modules = modules
        self.choices = choices
        self.features = features
        self.together = together
        self.model = model
        self.longer = longer

    def command(self, chosen, longer):
        line = ["python", str(FOLDER / self.file), *(self.longer if longer else self.model)]
        for key, value in chosen.items():
            if key == "feature":
                line += [word for feature in value.split("+") for word in self.features[feature]]
            else:
                line += [f"--{key}", value]
        return line

    def parts(self, chosen, longer, folder):
        """The runs that one combination consists of: one, or two that save and resume."""
        line = self.command(chosen, longer)
        if "resume" not in chosen["feature"].split("+"):
            return [line]
        line += ["--checkpoint-file", str(folder / "saved.pt")]
        return [line + ["--save-at", "1", "--steps", "2"], line + ["--resume"]]


TRAIN = Script(
    "train", "train.py", ["torch", "torch._dynamo"],
    {
        "precision": ["fp32", "bf16", "fp16"],
        "optimizer": ["adamw-foreach", "adamw-fused", "adamw-single", "sgd"],
        "attention": ["sdpa", "manual"],
        "checkpointing": ["none", "reentrant", "nonreentrant"],
        "feature": ["plain", "workers", "accumulate", "eval", "vary-sequence", "side-stream", "clip", "dropout", "resume"],
    },
    {
        "plain": [],
        "workers": ["--workers", "2"],
        "accumulate": ["--accumulate", "2"],
        "eval": ["--eval-every", "1"],
        "vary-sequence": ["--vary-sequence"],
        "side-stream": ["--side-stream"],
        "clip": ["--clip", "1", "--schedule"],
        "dropout": ["--dropout", "0.1"],
        "resume": [],
    },
    ["workers+accumulate+clip", "eval+vary-sequence+dropout", "side-stream+resume"],
    ["--layers", "3", "--width", "64", "--sequence", "64", "--batch", "16", "--steps", "3"],
    ["--layers", "6", "--width", "64", "--sequence", "96", "--batch", "16", "--steps", "6"])

HUGGING_FACE = Script(
    "hf", "hf_train.py", ["torch", "torch._dynamo", "transformers.trainer", "transformers.models.gpt2", "transformers.models.llama", "peft"],
    {
        "model": ["gpt2", "llama"],
        "precision": ["fp32", "bf16", "fp16"],
        "optimizer": ["adamw_torch", "adamw_torch_fused"],
        "checkpointing": ["none", "reentrant", "nonreentrant"],
        "feature": ["whole", "lora", "accumulate"],
    },
    {"whole": [], "lora": ["--lora"], "accumulate": ["--accumulate", "2"]},
    ["whole", "lora", "accumulate"],
    ["--layers", "3", "--width", "64", "--sequence", "64", "--batch", "16", "--steps", "2"],
    ["--layers", "6", "--width", "64", "--sequence", "96", "--batch", "16", "--steps", "6"])

HUGGING_FACE.hugging_face = True

SCRIPTS = {script.name: script for script in (TRAIN, HUGGING_FACE)}
