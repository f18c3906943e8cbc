#!/usr/bin/env python3
"""Writes the numbers that tests/nn/gpt2_parity_test.cpp expects: a tiny GPT-2 in PyTorch, from the definition.

    pip install torch==2.11.0
    tools/reference/gpt2.py tests/nn/data

Weights, tokens and targets are a hash of (name, index) that tests/nn/formula_values.h computes too. One file per dtype,
one line per quantity: name, then numbers. A gradient is given by its sum, its sum of squares, two projections on hashed
vectors and eight entries at hashed places.
"""
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, VOCAB, CONTEXT, BATCH = 2, 6, 24, 19, 8, 2
MASK = (1 << 64) - 1


def formula_bits(name, index):
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & MASK
    z = (key + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def formula_values(name, count):
    return torch.tensor([(formula_bits(name, i) >> 52) / 4096 - 0.5 for i in range(count)], dtype=torch.float64)


def formula_parameter(name, shape):
    values = formula_values(name, math.prod(shape)).reshape(shape)
    return 1 + values / 2 if "ln_" in name and name.endswith(".weight") else values / 4


def formula_integers(name, shape, bound):
    return torch.tensor([formula_bits(name, i) % bound for i in range(math.prod(shape))]).reshape(shape)


def shapes():
    c = WIDTH
    yield from {"wte.weight": (VOCAB, c), "wpe.weight": (CONTEXT, c), "ln_f.weight": (c,), "ln_f.bias": (c,)}.items()
    for layer in range(LAYERS):
        for name, (rows, columns) in {
            "attention.qkv": (3 * c, c), "attention.projection": (c, c), "mlp.up": (4 * c, c), "mlp.down": (c, 4 * c),
        }.items():
            yield f"blocks.{layer}.{name}.weight", (rows, columns)
            yield f"blocks.{layer}.{name}.bias", (rows,)
        for norm in ("ln_1", "ln_2"):
            yield f"blocks.{layer}.{norm}.weight", (c,)
            yield f"blocks.{layer}.{norm}.bias", (c,)


def logits_of(p, tokens):
    def linear(x, name):
        return x @ p[name + ".weight"].T + p[name + ".bias"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5) * p[name + ".weight"] + p[name + ".bias"]

    def attention(x, name):
        b, t, c = x.shape
        q, k, v = (part.reshape(b, t, HEADS, c // HEADS).transpose(1, 2) for part in linear(x, name + ".qkv").chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(c // HEADS)
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        y = scores.masked_fill(future, -math.inf).softmax(-1) @ v
        return linear(y.transpose(1, 2).reshape(b, t, c), name + ".projection")

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))))

    x = p["wte.weight"][tokens] + p["wpe.weight"][: tokens.shape[1]]
    for layer in range(LAYERS):
        block = f"blocks.{layer}."
        x = x + attention(norm(x, block + "ln_1"), block + "attention")
        x = x + linear(gelu(linear(norm(x, block + "ln_2"), block + "mlp.up")), block + "mlp.down")
    return norm(x, "ln_f") @ p["wte.weight"].T


def fingerprint(name, gradient):
    flat = gradient.double().flatten()
    projections = [torch.dot(flat, formula_values(f"{name}#projection{k}", len(flat))) for k in range(2)]
    samples = [flat[formula_bits(name + "#sample", k) % len(flat)] for k in range(8)]
    return [flat.sum(), flat.pow(2).sum(), *projections, *samples]


def line(name, numbers):
    return " ".join([name, *(repr(float(n)) for n in numbers)]) + "\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    tokens = formula_integers("tokens", (BATCH, CONTEXT), VOCAB)
    targets = formula_integers("targets", (BATCH, CONTEXT), VOCAB)
    for dtype in (torch.float64, torch.float32):
        params = {name: formula_parameter(name, shape).to(dtype).requires_grad_() for name, shape in shapes()}
        logits = logits_of(params, tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        with open(folder / f"gpt2_{str(dtype).removeprefix('torch.')}.txt", "w") as out:
            out.write(line("logits", logits.detach().flatten()))
            out.write(line("loss", [loss.detach()]))
            for name, param in params.items():
                out.write(line(name, fingerprint(name, param.grad)))


main()
