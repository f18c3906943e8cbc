"""The other side of scripts/check_cuda's speed: a model in PyTorch on a CUDA device, a step for each line "step" on
standard input.

    peer.py gpt2-124m|llama-1b eager|compile CONTEXT MICROBATCH MICROBATCHES

float32 weights, gradients and moments, computed in bfloat16 under autocast, which is what braid's bfloat16 means. Fused
AdamW, global-norm clipping, scaled_dot_product_attention; gradients of the microbatches add up.
"""
import json
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import gpt2  # noqa: E402
import llama  # noqa: E402


def made(name, context):
    return (gpt2.Gpt2(), gpt2.VOCAB) if name == "gpt2-124m" else (llama.Llama(context), llama.VOCAB)


def text_like(vocab, *shape):
    """Token k about as often as 1 / k, as in braid's side."""
    return (vocab ** torch.rand(*shape, dtype=torch.float64, device="cuda") - 1).long().clamp_max(vocab - 1)


def main():
    name, how, context, microbatch, microbatches = *sys.argv[1:3], *map(int, sys.argv[3:6])
    torch.manual_seed(1)
    with torch.device("cuda"):
        model, vocab = made(name, context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = torch.compile(model) if how == "compile" else model
    data = text_like(vocab, 16, microbatches, microbatch, context + 1)

    def step(number):
        begin = time.perf_counter()
        total = torch.zeros((), device="cuda")
        for window in data[number % len(data)]:
            with torch.autocast("cuda", torch.bfloat16):
                loss = run(window[:, :-1], window[:, 1:]) / microbatches
            loss.backward()
            total += loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        told = total.item()
        torch.cuda.synchronize()
        return {"seconds": time.perf_counter() - begin, "loss": told, "peak_bytes": torch.cuda.max_memory_allocated()}

    print("ready", flush=True)
    for number, _ in enumerate(sys.stdin):
        print(json.dumps(step(number)), flush=True)


main()
