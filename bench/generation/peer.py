"""The other side: GPT-2 124M of transformers with random weights, in float32 with its cache, one answer for each line on
standard input.

    peer.py THREADS

    {"batch": 1, "context": 16, "tokens": 64}    greedy: seconds of reading the context, and of each token behind it, by
                                                 generate() and by a loop around forward()
    {"bandwidth": true}                          bytes per second that the threads read from memory
"""
import json
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

READ_BYTES = 1 << 29


def seconds_of(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def bandwidth():
    data = torch.ones(READ_BYTES // 4)
    return READ_BYTES / min(seconds_of(data.sum) for _ in range(10))


def by_generate(model, prompt, tokens):
    options = {"do_sample": False, "use_cache": True, "pad_token_id": 0, "eos_token_id": None,
               "attention_mask": torch.ones_like(prompt)}
    one = seconds_of(lambda: model.generate(prompt, max_new_tokens=1, min_new_tokens=1, **options))
    all_of_them = seconds_of(lambda: model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, **options))
    return (all_of_them - one) / (tokens - 1)


def by_loop(model, prompt, tokens):
    """Seconds of reading the prompt, and of each token behind it."""
    begin = time.perf_counter()
    out = model(prompt, use_cache=True, logits_to_keep=1)
    token = out.logits[:, -1].argmax(-1, keepdim=True)
    read = time.perf_counter()
    for _ in range(tokens - 1):
        out = model(token, past_key_values=out.past_key_values, use_cache=True)
        token = out.logits[:, -1].argmax(-1, keepdim=True)
    return read - begin, (time.perf_counter() - read) / (tokens - 1)


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config()).eval()
    print("ready", flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        if "bandwidth" in ask:
            print(json.dumps({"bandwidth": bandwidth()}), flush=True)
            continue
        prompt = torch.randint(50257, (ask["batch"], ask["context"]))
        read, each = by_loop(model, prompt, ask["tokens"])
        print(json.dumps({"read": read, "loop": each, "generate": by_generate(model, prompt, ask["tokens"])}), flush=True)


main()
