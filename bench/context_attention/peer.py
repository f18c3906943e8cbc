"""The other side: causal attention of 8,192 tokens under PyTorch's context_parallel, two processes over Gloo, one thread each.

    peer.py RANK PORT

Forward and backward for each line on standard input (support/workers.py).
"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel

RANKS, HEADS, FEATURES, TOKENS = 2, 8, 64, 8192


def main():
    rank, port = int(sys.argv[1]), sys.argv[2]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(RANKS))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (RANKS,))
    print("ready", flush=True)
    for _ in sys.stdin:
        q, k, v, dy = (torch.randn(1, HEADS, TOKENS, FEATURES) for _ in range(4))
        with context_parallel(mesh, buffers=[q, k, v, dy], buffer_seq_dims=[2] * 4), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            for tensor in (q, k, v):
                tensor.requires_grad_()
            dist.barrier()
            begin = time.perf_counter()
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            torch.autograd.grad(y, (q, k, v), dy)
            dist.barrier()
            print(f'{{"seconds": {time.perf_counter() - begin:.6f}}}', flush=True)


main()
