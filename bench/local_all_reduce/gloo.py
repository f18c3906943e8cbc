"""The peer of README.md: all-reduce of float32 over Gloo between two processes of one thread each, pinned to a core.

    gloo.py BYTES ROUNDS      prints the median seconds of a round, that of the slower process; the first is dropped
"""
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank_main(rank, store, num_bytes, rounds, seconds):
    os.sched_setaffinity(0, {rank})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    tensor = torch.zeros(num_bytes // 4)
    for turn in range(rounds + 1):
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        if turn > 0:
            seconds[rank * rounds + turn - 1] = time.perf_counter() - begin
    dist.destroy_process_group()


def main():
    num_bytes, rounds = int(sys.argv[1]), int(sys.argv[2])
    seconds = torch.zeros(2 * rounds, dtype=torch.float64).share_memory_()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(rank_main, (f"{folder}/store", num_bytes, rounds, seconds), nprocs=2)
    print(statistics.median(seconds.view(2, rounds).amax(0).tolist()))


if __name__ == "__main__":
    main()
