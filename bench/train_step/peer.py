"""The other side: GPT-2 124M in PyTorch, a step for each line "step" on standard input.

    peer.py float32|bfloat16|autocast eager|compile CONTEXT BATCH THREADS

bfloat16 casts the whole model, so weights, gradients and moments are bfloat16; autocast keeps them float32 and computes
in bfloat16, which is what braid's bfloat16 means. Fused AdamW, global-norm clipping, scaled_dot_product_attention.
"""
import json
import pathlib
import resource
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from gpt2 import VOCAB, Gpt2  # noqa: E402
from steps import serve  # noqa: E402


def main():
    mode, how, context, batch, threads = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = Gpt2()
    if mode == "bfloat16":
        model = model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = torch.compile(model) if how == "compile" else model
    data = torch.randint(VOCAB, (64, batch, context + 1))

    def step(number):
        window = data[number % len(data)]
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=mode == "autocast"):
            loss = run(window[:, :-1], window[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        return time.perf_counter() - begin

    serve(step)
    print(json.dumps({"peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)


main()
