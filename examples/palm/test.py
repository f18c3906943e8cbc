"""PaLM trains on every kind of mesh as on one rank: test.py EXAMPLE_PALM. In reproducible mode the losses of data and pipeline ranks
are those of one rank in every bit; tensor ranks add in another order."""
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
RUN = """
[model]
family = "palm"
layers = 4
heads = 4
kv_heads = 2
width = 32
context = 32
dropout = 0.1
[data]
paths = ["text.txt"]
[optimizer]
lr = 1e-2
[train]
steps = 4
batch = 8
microbatch = 1
dtype = "float64"
reduction = "reproducible"
"""
EQUAL = [
    ["mesh.pipe=2"],
    ["mesh.pipe=2", "pipeline.schedule=zb-h1", "memory.recompute=selective"],
    ["mesh.pipe=4", "mesh.data=2"],
    ["mesh.data=2", "sync.zero=3", "memory.recompute=full"],
    ["mesh.data=2", "run.ranks=processes"],
]
NEAR = [["mesh.tensor=2"], ["mesh.tensor=4"], ["mesh.pipe=2", "mesh.data=2", "mesh.tensor=2", "memory.recompute=selective"]]


def braid(folder, *words):
    done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def losses(folder, number, layout):
    braid(folder, "train", "run.toml", *layout, f"train.out={number}")
    lines = (folder / str(number) / "metrics.jsonl").read_text().splitlines()
    return [step["loss"] for step in map(json.loads, lines) if step["kind"] == "step"]


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    (folder / "run.toml").write_text(RUN)
    (folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 100)
    alone = losses(folder, 0, [])
    assert alone[-1] < alone[0], alone
    for number, layout in enumerate(EQUAL + NEAR, 1):
        found = losses(folder, number, layout)
        difference = max(abs(a - b) / a for a, b in zip(alone, found, strict=True))
        print(f"{' '.join(layout)}: largest difference of a loss {difference:.1e}")
        assert difference <= (0 if layout in EQUAL else 1e-12), layout
    for wrong in [["model.heads=0", "model.kv_heads=0"], ["mesh.pipe=2", "pipeline.partition=1.5,2.5"], ["mesh.tensor=4", "model.ffn=130"]]:
        done = subprocess.run([PROGRAM, "train", "run.toml", *wrong, "train.out=wrong"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 2, f"{wrong}: {done.returncode} {done.stderr}"
    for reduction, count, how in [("fast", 2, "share a sum"), ("reproducible", 4, "have sums of their own")]:
        listed = json.loads(braid(folder, "model", "run.toml", "mesh.tensor=2", f"train.reduction={reduction}", "--json"))
        sums = [each["op"] for each in listed["collectives"] if each["op"].startswith("blocks.")]
        assert len(sums) == count, f"{reduction}: attention and feed-forward layer {how} in each direction, but: {sums}"
    for layout in NEAR:
        assert json.loads(braid(folder, "verify", "run.toml", *layout, "--shrink", "--json"))["verdict"] == "equal", layout
    assert braid(folder, "sample", "0", "--tokens", "8", "--prompt", "the ")
