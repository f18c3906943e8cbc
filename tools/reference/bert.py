#!/usr/bin/env python3
"""Writes the numbers of a tiny BERT that the parity tests expect, computed by Hugging Face's BertForMaskedLM.

    pip install torch==2.11.0 transformers
    tools/reference/bert.py tests/nn/data

Without a padding token: transformers gives the row of one no gradient from the embedding, and here it is a token like all.
The loss is that of two tokens of each sequence, at the places of the formula "rows".
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
import transformers

from model_numbers import Model, formula_integers, write_step

LAYERS, HEADS, WIDTH, VOCAB, CONTEXT, BATCH, PICKED = 2, 6, 24, 19, 8, 2, 2


class MaskedModel(Model):
    def logits(self, tokens):
        return self.model(input_ids=tokens).logits

    def loss(self, logits, targets):
        rows = formula_integers("rows", (BATCH, PICKED), CONTEXT // PICKED)
        rows = rows + torch.arange(PICKED) * (CONTEXT // PICKED)
        picked = torch.stack([one[places] for one, places in zip(logits, rows)])
        return F.cross_entropy(picked.flatten(0, 1), targets[:, :PICKED].flatten())


def make():
    config = transformers.BertConfig(
        vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=4 * WIDTH,
        max_position_embeddings=CONTEXT, hidden_dropout_prob=0, attention_probs_dropout_prob=0, layer_norm_eps=1e-5,
        pad_token_id=None)
    embeddings, head = "bert.embeddings.", "cls.predictions."
    parts = {"wte.weight": [embeddings + "word_embeddings.weight"], "wpe.weight": [embeddings + "position_embeddings.weight"],
             "types.weight": [embeddings + "token_type_embeddings.weight"], "logits.bias": [head + "bias"]}
    names = {"embedding_norm": [embeddings + "LayerNorm"], "transform": [head + "transform.dense"],
             "transform_norm": [head + "transform.LayerNorm"]}
    for layer in range(LAYERS):
        ours, theirs = f"blocks.{layer}.", f"bert.encoder.layer.{layer}."
        names |= {ours + "attention.qkv": [theirs + f"attention.self.{part}" for part in ("query", "key", "value")],
                  ours + "attention.projection": [theirs + "attention.output.dense"],
                  ours + "attention_norm": [theirs + "attention.output.LayerNorm"],
                  ours + "mlp.up": [theirs + "intermediate.dense"], ours + "mlp.down": [theirs + "output.dense"],
                  ours + "mlp_norm": [theirs + "output.LayerNorm"]}
    for ours, theirs in names.items():
        for kind in ("weight", "bias"):
            parts[f"{ours}.{kind}"] = [f"{each}.{kind}" for each in theirs]
    return MaskedModel(transformers.BertForMaskedLM(config).double(), parts)


write_step(pathlib.Path(sys.argv[1]) / "bert_float64.txt", make(), (BATCH, CONTEXT), VOCAB)
