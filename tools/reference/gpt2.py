#!/usr/bin/env python3
"""Writes the numbers of a tiny GPT-2 that the parity tests expect, computed by Hugging Face's GPT2LMHeadModel.

    pip install torch==2.11.0 transformers
    tools/reference/gpt2.py tests/nn/data
"""
import pathlib
import sys

import torch
import transformers

from model_numbers import Model, write_bfloat16_errors, write_step

LAYERS, HEADS, WIDTH, VOCAB, CONTEXT, BATCH = 2, 6, 24, 19, 8, 2


def make(dtype, tied=True):
    config = transformers.GPT2Config(
        vocab_size=VOCAB, n_positions=CONTEXT, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, resid_pdrop=0, embd_pdrop=0,
        attn_pdrop=0, tie_word_embeddings=tied, bos_token_id=0, eos_token_id=0)
    parts = {name: ["transformer." + name] for name in ("wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias")}
    if not tied:
        parts["head.weight"] = ["lm_head.weight"]
    names = {"ln_1": "ln_1", "attention.qkv": "attn.c_attn", "attention.projection": "attn.c_proj", "ln_2": "ln_2",
             "mlp.up": "mlp.c_fc", "mlp.down": "mlp.c_proj"}
    for layer in range(LAYERS):
        for ours, theirs in names.items():
            for kind in ("weight", "bias"):
                parts[f"blocks.{layer}.{ours}.{kind}"] = [f"transformer.h.{layer}.{theirs}.{kind}"]
    transposed = {name for name in parts if name.endswith(".weight") and (".attention." in name or ".mlp." in name)}
    return Model(transformers.GPT2LMHeadModel(config).to(dtype), parts, transposed)


def main():
    folder = pathlib.Path(sys.argv[1])
    for dtype in (torch.float64, torch.float32):
        write_step(folder / f"gpt2_{str(dtype).removeprefix('torch.')}.txt", make(dtype), (BATCH, CONTEXT), VOCAB)
    write_step(folder / "gpt2_untied_float64.txt", make(torch.float64, tied=False), (BATCH, CONTEXT), VOCAB)
    write_bfloat16_errors(folder / "gpt2_bfloat16_errors.txt", make, (BATCH, CONTEXT), VOCAB)


main()
