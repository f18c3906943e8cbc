"""The other side of tensor ranks: GPT-2 124M by PyTorch's tensor parallelism (DTensor) over Gloo, one process and one
bound thread for each rank; a step for each line "step" on standard input.

    tensor_peer.py RANK RANKS PORT CONTEXT BATCH

Megatron's plan: queries, keys, values and the first matrix of the feed-forward branch by columns, the others by rows, the
tied table by its vocabulary, padded so that the ranks divide it, and the loss parallel over it. Fused AdamW,
global-norm clipping.
"""
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from gpt2 import HEADS, VOCAB, WIDTH, Gpt2  # noqa: E402
from steps import serve  # noqa: E402

PADDED = (VOCAB + 127) // 128 * 128


class Block(nn.Module):
    """Queries, keys and values are linear maps of their own: DTensor splits each by heads."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.projection = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        normed = self.ln_1(x)
        q, k, v = (layer(normed).view(b, t, -1, WIDTH // HEADS).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(b, t, -1))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class SplitGpt2(Gpt2):
    def __init__(self):
        super().__init__(Block, PADDED)

    def forward(self, tokens, targets, mesh):
        rows = DTensor.from_local(self.hidden(tokens).flatten(0, 1), mesh, [Replicate()])
        return F.cross_entropy(F.linear(rows, self.wte.weight), targets.flatten())


def parallel(model, mesh):
    columns, rows = ColwiseParallel(), RowwiseParallel()
    for block in model.blocks:
        parallelize_module(block, mesh, {"q": columns, "k": columns, "v": columns, "projection": rows, "up": columns,
                                         "down": rows})
    return parallelize_module(model, mesh, {"wte": RowwiseParallel(input_layouts=Replicate())})


def clip(parameters, most):
    """clip_grad_norm_ refuses a mix of split and whole parameters, so the squares are summed here."""
    grads = [parameter.grad for parameter in parameters]
    local = [grad.to_local() for grad in grads if isinstance(grad, DTensor)]
    whole = [grad for grad in grads if not isinstance(grad, DTensor)]
    squares = torch.stack(torch._foreach_norm(local)).square().sum()
    dist.all_reduce(squares)
    norm = (squares + torch.stack(torch._foreach_norm(whole)).square().sum()).sqrt()
    torch._foreach_mul_(local + whole, (most / (norm + 1e-6)).clamp(max=1.0))


def main():
    rank, ranks, port, context, batch = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:6])
    os.sched_setaffinity(0, {rank})
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(1)
    mesh = init_device_mesh("cpu", (ranks,))
    model = parallel(SplitGpt2(), mesh)
    parameters = list(model.parameters())
    groups = [[p for p in parameters if isinstance(p, DTensor) == split] for split in (True, False)]
    optimizers = [torch.optim.AdamW(group, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True) for group in groups]
    data = torch.randint(VOCAB, (16, batch, context + 1))

    def step(number):
        window = data[number % len(data)]
        dist.barrier()
        begin = time.perf_counter()
        with loss_parallel():
            loss = model(window[:, :-1], window[:, 1:], mesh)
            loss.backward()
        clip(parameters, 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        dist.barrier()
        return time.perf_counter() - begin

    serve(step)
    dist.destroy_process_group()


main()
