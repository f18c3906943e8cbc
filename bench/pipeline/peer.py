"""The other side: GPT-2 124M (untied) as a pipeline of torch.distributed.pipelining, two processes over Gloo, one bound
thread each. One process per rank; a step for each line "step" on standard input.

    peer.py RANK PORT SCHEDULE CONTEXT MICROBATCHES LAYERS,OF,STAGES

SCHEDULE is a class of torch.distributed.pipelining.schedules. Fused AdamW, no clipping, float32.
"""
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, schedules

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from gpt2 import POSITIONS, VOCAB, WIDTH, Block  # noqa: E402
from steps import serve  # noqa: E402

RANKS = 2
V_SHAPED = ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")


class Stage(nn.Module):
    def __init__(self, layers, first, last):
        super().__init__()
        self.first, self.last = first, last
        if first:
            self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        if last:
            self.ln_f, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x):
        if self.first:
            x = self.wte(x) + self.wpe.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x)) if self.last else x


class QuietStage(PipelineStage):
    """Without the first exchange that warms up NCCL: between two stages of one rank Gloo cannot carry it."""

    def _get_init_p2p_neighbors_ops(self):
        return []


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def stages_of(rank, count, v_shaped):
    if count == RANKS:
        return [rank]
    return [rank, count - 1 - rank] if v_shaped else list(range(rank, count, RANKS))


def main():
    rank, port, name, context, microbatches = int(sys.argv[1]), *sys.argv[2:4], *map(int, sys.argv[4:6])
    layers = [int(n) for n in sys.argv[6].split(",")]
    os.sched_setaffinity(0, {rank})
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    torch.manual_seed(1)
    device = torch.device("cpu")
    mine = stages_of(rank, len(layers), name in V_SHAPED)
    modules = [Stage(layers[s], s == 0, s == len(layers) - 1) for s in mine]
    stages = [QuietStage(module, s, len(layers), device) for module, s in zip(modules, mine)]
    multi = issubclass(getattr(schedules, name), schedules.PipelineScheduleMulti)
    schedule = getattr(schedules, name)(stages if multi else stages[0], microbatches, loss_fn=loss_of)
    parameters = [parameter for module in modules for parameter in module.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    data = torch.randint(VOCAB, (16, microbatches, context + 1))
    has_first, has_last = 0 in mine, len(layers) - 1 in mine

    def step(number):
        window = data[number % len(data)]
        dist.barrier()
        begin = time.perf_counter()
        inputs = (window[:, :-1],) if has_first else ()
        schedule.step(*inputs, **({"target": window[:, 1:]} if has_last else {}), return_outputs=False)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        dist.barrier()
        return time.perf_counter() - begin

    serve(step)
    dist.destroy_process_group()


main()
