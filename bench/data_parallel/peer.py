"""The other side: GPT-2 124M (tied) on data ranks of PyTorch over Gloo, one bound thread each. One process per rank; a
step for each line "step" on standard input.

    peer.py RANK RANKS PORT ddp|fsdp DTYPE CONTEXT BATCH_PER_RANK fused|plain

ddp is DistributedDataParallel, fsdp is fully_shard of every block and of the model. bfloat16 keeps float32 weights and
casts inside autocast (ddp) or by fsdp's mixed precision, which is what braid's bfloat16 means. AdamW, no clipping.
"""
import contextlib
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from gpt2 import VOCAB, Gpt2  # noqa: E402
from steps import serve  # noqa: E402


def parallel(model, kind, dtype, ranks):
    if kind == "ddp":
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    mesh = init_device_mesh("cpu", (ranks,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    options = {"mesh": mesh, **({"mp_policy": policy} if dtype == "bfloat16" else {})}
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def main():
    rank, ranks, port, kind, dtype = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:6]
    context, batch, fused = int(sys.argv[6]), int(sys.argv[7]), sys.argv[8] == "fused"
    os.sched_setaffinity(0, {rank})
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": os.environ.get("PEER_ROOT", "127.0.0.1"), "MASTER_PORT": port}
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(1)
    model = parallel(Gpt2(), kind, dtype, ranks)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                  **({"fused": True} if fused else {}))
    data = torch.randint(VOCAB, (16, batch, context + 1))
    casts = dtype == "bfloat16" and kind == "ddp"

    def step(number):
        window = data[number % len(data)]
        dist.barrier()
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16) if casts else contextlib.nullcontext():
            loss = model(window[:, :-1], window[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        dist.barrier()
        return time.perf_counter() - begin

    serve(step)
    dist.destroy_process_group()


main()
