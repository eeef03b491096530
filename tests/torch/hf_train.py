#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT-2 or Llama, randomly initialised, by Hugging Face's Trainer, whole or by LoRA. An ordinary script: it knows nothing
of where it runs. Nothing is downloaded: the text is bytes of this file.

Standard output: one line per step with the bits of the loss, then a hash of all weights, a hash of the optimizer's state, how many
steps it took, and torch.cuda.max_memory_allocated()."""

import argparse
import hashlib
import pathlib
import struct
import tempfile

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed
from transformers.trainer_callback import PrinterCallback

VOCABULARY = 256


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["gpt2", "llama"], default="gpt2")
    parser.add_argument("--lora", action="store_true", help="train adapters only, by peft")
    parser.add_argument("--checkpointing", choices=["none", "reentrant", "nonreentrant"], default="none")
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--optimizer", default="adamw_torch", help="as Trainer names them")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--sequence", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    return parser.parse_args()


class Pieces(Dataset):
    def __init__(self, sequence):
        text = pathlib.Path(__file__).read_bytes()
        self.pieces = torch.tensor(list(text[:len(text) // sequence * sequence])).view(-1, sequence)

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        piece = self.pieces[index % len(self.pieces)]
        return {"input_ids": piece, "labels": piece}


def make_model(options):
    if options.model == "gpt2":
        return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=options.sequence, n_embd=options.width, n_layer=options.layers,
                                          n_head=4, bos_token_id=0, eos_token_id=0))
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, hidden_size=options.width, intermediate_size=3 * options.width,
                                        num_hidden_layers=options.layers, num_attention_heads=4, num_key_value_heads=2,
                                        max_position_embeddings=options.sequence, bos_token_id=0, eos_token_id=0))


def with_adapters(model, options):
    from peft import LoraConfig, get_peft_model

    targets = ["c_attn", "c_proj"] if options.model == "gpt2" else ["q_proj", "v_proj", "up_proj"]
    model.enable_input_require_grads()
    return get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=targets, task_type="CAUSAL_LM",
                                            fan_in_fan_out=options.model == "gpt2"))


class Telling(Trainer):
    """Prints the bits of each loss; the log rounds."""

    def training_step(self, *words, **named):
        loss = super().training_step(*words, **named)
        value = loss.item()
        print(f"step {self.state.global_step} loss {value:.6g} {struct.pack('>d', value).hex()}", flush=True)
        return loss


def hash_of(tensors):
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def count_steps():
    """A list that grows with every step that an optimizer really takes; a gradient scaler leaves out some."""
    taken = []
    register_optimizer_step_post_hook(lambda *_: taken.append(1))
    return taken


def main():
    options = arguments()
    taken = count_steps()
    set_seed(1)
    model = make_model(options)
    if options.lora:
        model = with_adapters(model, options)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Telling(model=model, train_dataset=Pieces(options.sequence), args=TrainingArguments(
            output_dir=folder, max_steps=options.steps, per_device_train_batch_size=options.batch, optim=options.optimizer,
            gradient_accumulation_steps=options.accumulate, activation_checkpointing=options.checkpointing != "none",
            activation_checkpointing_kwargs={"use_reentrant": options.checkpointing == "reentrant"},
            bf16=options.precision == "bf16", fp16=options.precision == "fp16",
            learning_rate=1e-3, save_strategy="no", report_to="none", disable_tqdm=True, logging_strategy="no", seed=1))
        trainer.remove_callback(PrinterCallback)  # it tells how long it took
        trainer.train()
    print("weights", hash_of(model.parameters()))
    states = [value for _, state in sorted(trainer.optimizer.state_dict()["state"].items()) for value in state.values()]
    print("optimizer", hash_of(value for value in states if isinstance(value, torch.Tensor)))
    print(f"taken {len(taken)} of {options.steps} steps")
    print("peak", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()
