"""Training steps of real models on the device: tokens per second, share of a product's speed, peak memory, and the same
model in PyTorch on the same card, in turns."""
import os
import pathlib
import statistics

import checks
from harness import Check, Failed, Worker

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DROPPED, ROUNDS = 6, 16  # braid records its graphs in the fourth step; torch.compile compiles in its first

RUN = """
[model]
preset = "{preset}"
context = {context}
[data]
paths = ["made up"]
[optimizer]
lr = 1e-4
[train]
steps = 1000000
batch = {batch}
microbatch = {microbatch}
device = "cuda"
dtype = "bfloat16"
"""
MODELS = {"gpt2-124m": {"preset": "gpt2-124m", "context": 1024, "batch": 32, "microbatch": 16},
          "llama-1b": {"preset": "llama-1b", "context": 2048, "batch": 4, "microbatch": 2}}


def drop_first(*workers):
    for worker in workers:
        for _ in range(DROPPED):
            worker.ask("step")


def in_turns(*workers):
    """Answers of each, step by step."""
    rounds = [[worker.ask("step") for worker in workers] for _ in range(ROUNDS)]
    return list(zip(*rounds))


def row(name, answers, facts, products):
    seconds = statistics.median(answer["seconds"] for answer in answers)
    rate = facts["tokens_per_step"] / seconds
    measured = {"program": name, "seconds": seconds, "tokens_per_second": rate,
                "peak_bytes": max(answer["peak_bytes"] for answer in answers), "loss": answers[-1]["loss"]}
    if products:
        measured["mfu"] = rate * facts["flops_per_token"] / products["bfloat16"]
    return measured


def against(session, python, how, sizes, braid):
    """(braid's answers, the peer's), both alone on the device while they work."""
    shape = [sizes["preset"], how, sizes["context"], sizes["microbatch"], sizes["batch"] // sizes["microbatch"]]
    # A Python knows by itself where its libraries are.
    libraries = os.environ.get("LD_LIBRARY_PATH", "")
    with Worker(session, how, python, ROOT / "bench/cuda/peer.py", *shape, LD_LIBRARY_PATH=libraries) as peer:
        drop_first(peer)
        braid.ask("step")
        return in_turns(braid, peer)


def products_of(session):
    """Measured before, or for want of that here; None where that fails."""
    try:
        return session.facts.get("products") or checks.check_products(session)[1]
    except Failed:
        return None


def speed(model):
    def run(session):
        sizes, products = MODELS[model], products_of(session)
        file = session.out / f"{model}.toml"
        file.write_text(RUN.format(**sizes))
        rows, missing = [], []
        with Worker(session, "braid", session.programs / "braid_cuda_check", "steps", file) as braid:
            facts = braid.ask("facts")
            drop_first(braid)
            rows.append(row("braid", in_turns(braid)[0], facts, products))
            for how in ("eager", "compile"):
                if not session.peer:
                    missing.append("no Python with this torch for the comparison")
                    break
                try:
                    ours, theirs = against(session, session.peer, how, sizes, braid)
                except Failed as why:
                    missing.append(f"PyTorch {how}: {why}")
                    if braid.process.poll() is not None:
                        break
                    continue
                rows.append(row(f"PyTorch {how}", theirs, facts, products))
                rows[-1]["ratio"] = statistics.median(b["seconds"] / a["seconds"] for a, b in zip(ours, theirs))
        return said_of(rows, missing), {"model": model, **sizes, "rows": rows, "missing": missing}
    return run


def said_of(rows, missing):
    first = rows[0]
    mfu = f", MFU {first['mfu']:.0%}" if "mfu" in first else ""
    said = [f"{first['tokens_per_second']:,.0f} tokens/s{mfu}, {first['peak_bytes'] / 2**30:.1f} GiB"]
    said += [f"{one['ratio']:.2f} x {one['program']}" for one in rows[1:]]
    return "; ".join(said + missing)


def speed_checks():
    return [Check("speed-gpt2", 150, speed("gpt2-124m")), Check("speed-llama", 200, speed("llama-1b"))]
