#!/usr/bin/env python3
"""Writes the numbers of tiny models of Llama's shape that the parity tests expect, computed by Hugging Face's classes.

    pip install torch==2.11.0 transformers
    tools/reference/llama.py tests/nn/data

`llama` ties its head to the embedding; `llama3` has a head of its own and scaled rotary frequencies, of which one stays,
one is between and two are divided. `mistral` has a sliding window, `qwen2` biases, `qwen3` heads of a width of their own with
norms on queries and keys, `gemma2` layers with a window and without one, and caps. The model computes its norms and angles
in float32 whatever its type. For the float64 files torch.float and torch.float32 mean float64 while it runs, so that the same code computes in float64 throughout.
"""
import functools
import pathlib
import sys

import torch
import transformers

from llama_numbers import float_is_double, widen_scale
from model_numbers import Model, write_bfloat16_errors, write_step

LAYERS, HEADS, KV_HEADS, WIDTH, FFN, VOCAB, CONTEXT, BATCH = 2, 6, 3, 48, 72, 19, 8, 2
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
SCALED = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}


class WideModel(Model):
    """float32 inside means float64."""

    def logits(self, tokens):
        with float_is_double():
            return super().logits(tokens)


GEMMA2 = dict(hidden_activation="gelu_pytorch_tanh", layers=3, head_dim=10, sliding_window=3, query_pre_attn_scalar=7,
              attn_logit_softcapping=1.5, final_logit_softcapping=2.0, pad_token_id=None,
              attn_implementation="eager")


def make(dtype, kind="Llama", tied=True, rope=PLAIN, layers=LAYERS, **more):
    config = getattr(transformers, kind + "Config")(
        vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=FFN, num_hidden_layers=layers, num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS, max_position_embeddings=CONTEXT, rms_norm_eps=1e-5, tie_word_embeddings=tied,
        rope_parameters=dict(rope), bos_token_id=0, eos_token_id=0, **more)
    causal_model = getattr(transformers, kind + "ForCausalLM")
    parts = {"wte.weight": ["model.embed_tokens.weight"], "norm_f.weight": ["model.norm.weight"]}
    if not tied:
        parts["head.weight"] = ["lm_head.weight"]
    names = {"norm_1": ["input_layernorm"], "norm_2": ["post_attention_layernorm"],
             "attention.qkv": [f"self_attn.{x}_proj" for x in "qkv"], "attention.projection": ["self_attn.o_proj"],
             "mlp.gate_up": ["mlp.gate_proj", "mlp.up_proj"], "mlp.down": ["mlp.down_proj"]}
    if kind == "Gemma2":
        names |= {"norm_3": ["pre_feedforward_layernorm"], "norm_4": ["post_feedforward_layernorm"]}
    for layer in range(layers):
        for ours, theirs in names.items():
            parts[f"blocks.{layer}.{ours}.weight"] = [f"model.layers.{layer}.{name}.weight" for name in theirs]
        if kind == "Qwen2":
            parts[f"blocks.{layer}.attention.qkv.bias"] = [f"model.layers.{layer}.self_attn.{x}_proj.bias" for x in "qkv"]
        for x in "qk" if kind == "Qwen3" else "":
            parts[f"blocks.{layer}.attention.norm_{x}.weight"] = [f"model.layers.{layer}.self_attn.{x}_norm.weight"]
    if dtype != torch.float64:
        model = causal_model(config)
        rotary = model.model.rotary_emb
        model = model.to(dtype)
        model.model.rotary_emb.inv_freq = rotary.original_inv_freq.float()
        return Model(model, parts)
    with float_is_double():
        return WideModel(widen_scale(causal_model(config).to(dtype)), parts)


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, options in {"llama": {}, "llama3": {"tied": False, "rope": SCALED}}.items():
        for dtype in (torch.float64, torch.float32):
            path = folder / f"{name}_{str(dtype).removeprefix('torch.')}.txt"
            write_step(path, make(dtype, **options), (BATCH, CONTEXT), VOCAB)
    write_bfloat16_errors(folder / "llama_bfloat16_errors.txt", make, (BATCH, CONTEXT), VOCAB)
    others = {"mistral": {"kind": "Mistral", "sliding_window": 3}, "qwen2": {"kind": "Qwen2"},
              "qwen3": {"kind": "Qwen3", "tied": False, "head_dim": 10}, "gemma2": {"kind": "Gemma2", **GEMMA2}}
    for name, options in others.items():
        write_step(folder / f"{name}_float64.txt", make(torch.float64, **options), (BATCH, CONTEXT), VOCAB)
    gemma2 = functools.partial(make, **others["gemma2"])
    write_step(folder / "gemma2_float32.txt", gemma2(torch.float32), (BATCH, CONTEXT), VOCAB)
    write_bfloat16_errors(folder / "gemma2_bfloat16_errors.txt", gemma2, (BATCH, CONTEXT), VOCAB)
    qwen3 = functools.partial(make, **others["qwen3"])
    write_step(folder / "qwen3_float32.txt", qwen3(torch.float32), (BATCH, CONTEXT), VOCAB)
    write_bfloat16_errors(folder / "qwen3_bfloat16_errors.txt", qwen3, (BATCH, CONTEXT), VOCAB)


main()
