#!/usr/bin/env python3
"""Writes tiny Hugging Face directories of every family that braid reads, and what their models compute in float64.

    pip install torch==2.11.0 transformers==5.23.0
    tools/reference/hf_directory.py tests [FAMILY ...]

tests/weights/data/FAMILY holds config.json and the weights as transformers saves them: in one file or in shards, in
float32, bfloat16 or float16. tests/weights/data/FAMILY_logits.txt has the logits of two sequences; the models compute in
float64 throughout (llama.py says how). tests/nn/data/FAMILY_greedy.json has a prompt and the 64 tokens that follow when the
likeliest is taken each time, computed with transformers' cache; "margin" is the least by which one was the likeliest.
"""
import json
import pathlib
import shutil
import sys

import torch
import transformers

from llama_numbers import float_is_double, widen_scale
from model_numbers import formula_integers, line

LAYERS, HEADS, KV_HEADS, WIDTH, FFN, VOCAB, CONTEXT = 2, 4, 2, 32, 48, 61, 96
SHAPE = dict(vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=FFN, num_hidden_layers=LAYERS,
             num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, max_position_embeddings=CONTEXT, rms_norm_eps=1e-5,
             bos_token_id=0, eos_token_id=0)
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}


def rope(theta):
    return {"rope_type": "default", "rope_theta": theta}


FAMILIES = {
    "gpt2": ("GPT2", torch.float32, None, dict(vocab_size=VOCAB, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
                                              n_positions=CONTEXT, bos_token_id=0, eos_token_id=0)),
    "llama": ("Llama", torch.bfloat16, "20KB", SHAPE | dict(tie_word_embeddings=False, rope_parameters=LLAMA3)),
    "mistral": ("Mistral", torch.float16, None, SHAPE | dict(sliding_window=7, rope_parameters=rope(1e4))),
    "qwen2": ("Qwen2", torch.bfloat16, None, SHAPE | dict(tie_word_embeddings=True, rope_parameters=rope(1e6))),
    "qwen3": ("Qwen3", torch.float32, "40KB", SHAPE | dict(head_dim=10, tie_word_embeddings=False, rope_parameters=rope(1e6))),
    "bert": ("Bert", torch.float32, "40KB", dict(vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=FFN,
                                                 num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                                                 max_position_embeddings=CONTEXT)),
    "gemma2": ("Gemma2", torch.bfloat16, None,
               SHAPE | dict(head_dim=10, sliding_window=7, query_pre_attn_scalar=12, attn_logit_softcapping=2.0,
                            final_logit_softcapping=3.0, tie_word_embeddings=True, rope_parameters=rope(1e4),
                            attn_implementation="eager")),
}
KINDS = {"GPT2": "GPT2LMHeadModel", "Bert": "BertForPreTraining"}


@torch.no_grad()
def fill(model, generator):
    """Large enough that every part of the model counts, around one for norms."""
    for name, param in model.named_parameters():
        values = torch.randn(param.shape, generator=generator, dtype=torch.float64)
        is_norm = param.dim() == 1 and name.endswith("weight")
        param.copy_(1 + 0.2 * values if is_norm else 0.25 * values)


def wide(kind, config, narrow):
    """The same weights in a model that computes in float64."""
    with float_is_double():
        model = widen_scale(getattr(transformers, kind)(config).double().eval())
    with torch.no_grad():
        for to, source in zip(model.parameters(), narrow.parameters()):
            to.copy_(source)
    return model


@torch.no_grad()
def greedy(model, prompt, count):
    tokens, cache, margin = [], None, float("inf")
    given = torch.tensor([prompt])
    for _ in range(count):
        with float_is_double():
            out = model(input_ids=given, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        best = out.logits[0, -1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        tokens.append(best.indices[0].item())
        given = torch.tensor([[tokens[-1]]])
    return tokens, margin


def main(tests, *wanted):
    for number, (family, (name, dtype, shard, options)) in enumerate(FAMILIES.items()):
        if wanted and family not in wanted:
            continue
        config = getattr(transformers, name + "Config")(**options)
        kind = KINDS.get(name, name + "ForCausalLM")
        model = getattr(transformers, kind)(config).eval()
        fill(model, torch.Generator().manual_seed(number))
        model = model.to(dtype)
        folder = tests / "weights/data" / family
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder, **({"max_shard_size": shard} if shard else {}))
        (folder / "generation_config.json").unlink(missing_ok=True)
        double = wide(kind, config, model)
        tokens = formula_integers("tokens", (2, 24), VOCAB)
        with torch.no_grad(), float_is_double():
            out = double(input_ids=tokens, **({} if name == "Bert" else {"use_cache": False}))
            logits = out.prediction_logits if name == "Bert" else out.logits
        (tests / "weights/data" / f"{family}_logits.txt").write_text(line("logits", logits.flatten()))
        if name == "Bert":  # it continues no text
            continue
        prompt = formula_integers("prompt", (8,), VOCAB).tolist()
        answer, margin = greedy(double, prompt, 64)
        text = {"directory": f"tests/weights/data/{family}", "prompt": prompt, "tokens": answer, "margin": margin}
        (tests / "nn/data" / f"{family}_greedy.json").write_text(json.dumps(text) + "\n")
        print(family, sum(p.numel() for p in model.parameters()), "parameters, margin", margin)


main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
