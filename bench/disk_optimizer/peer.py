"""The other side: GPT-2 124M with ZeRO stage 3 of DeepSpeed on one CPU, optimizer states in memory or on disk; a step for
each line "step" on standard input.

    peer.py FOLDER|- float32|bfloat16 CONTEXT BATCH THREADS

FOLDER has the states on disk ("-": in memory). bfloat16 has weights and gradients of bfloat16 and a float32 master, as
braid's bfloat16. AdamW by DeepSpeedCPUAdam, no clipping. DeepSpeed compiles its operators at the first start, in minutes.
"""
import contextlib
import os
import pathlib
import sys
import time

folder, dtype, context, batch, threads = *sys.argv[1:3], *map(int, sys.argv[3:6])
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # DeepSpeed logs to standard output
bin_folder = str(pathlib.Path(sys.executable).parent)  # has ninja
os.environ |= {"DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": str(threads), "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1",
               "PATH": bin_folder + ":" + os.environ["PATH"]}

import deepspeed  # noqa: E402
import torch  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from gpt2 import VOCAB, Gpt2  # noqa: E402
from steps import serve  # noqa: E402
from workers import free_port  # noqa: E402


def settings():
    """DeepSpeed's configuration. Reads, updates and writes of groups of states overlap. One group at a time is read, one
    updated and one written, with four buffers each."""
    on_disk = {"device": "nvme", "nvme_path": folder, "buffer_count": 12, "pipeline_read": True, "pipeline_write": True}
    return {
        "train_micro_batch_size_per_gpu": batch,
        "gradient_clipping": 0.0,
        "bf16": {"enabled": dtype == "bfloat16"},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95], "weight_decay": 0.1}},
        "zero_optimization": {"stage": 3, "sub_group_size": 10_000_000, "reduce_bucket_size": 10_000_000,
                              "offload_optimizer": {"device": "cpu"} if folder == "-" else on_disk},
        "aio": {"block_size": 8 << 20, "queue_depth": 16},
    }


def main():
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    engine, *_ = deepspeed.initialize(model=Gpt2(), config=settings())
    data = torch.randint(VOCAB, (16, batch, context + 1))

    def step(number):
        window = data[number % len(data)]
        begin = time.perf_counter()
        loss = engine(window[:, :-1], window[:, 1:])
        engine.backward(loss)
        engine.step()
        loss.item()
        return time.perf_counter() - begin

    with contextlib.redirect_stdout(answers):
        serve(step)


main()
