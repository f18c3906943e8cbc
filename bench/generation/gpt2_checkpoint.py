"""A GPT-2 124M checkpoint of braid's with random weights, and a tokenizer of as many tokens: speed does not depend on
what they say."""
import json
import pathlib
import subprocess

VOCAB, CONTEXT = 50257, 1024
CONFIG = f"""
[model]
layers = 12
heads = 12
width = 768
context = {CONTEXT}
vocab = {VOCAB}
[data]
paths = ["text.txt"]
tokenizer = "tokenizer"
validation_fraction = 0
[train]
steps = 1
batch = 1
microbatch = 1
out = "run"
"""


def alphabet():
    """GPT-2's characters for the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = {byte: 256 + i for i, byte in enumerate(b for b in range(256) if b not in plain)}
    return [chr(moved.get(byte, byte)) for byte in range(256)]


def write_tokenizer(folder):
    """Bytes, pairs of bytes, end of text."""
    folder.mkdir()
    characters = alphabet()
    pairs = [(a, b) for a in characters for b in characters][:VOCAB - 257]
    tokens = characters + [a + b for a, b in pairs] + ["<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in pairs))


def write_checkpoint(binary, folder):
    """The run's folder."""
    folder = pathlib.Path(folder)
    write_tokenizer(folder / "tokenizer")
    (folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 400)
    (folder / "run.toml").write_text(CONFIG)
    subprocess.run([pathlib.Path(binary).resolve(), "train", "run.toml"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return str(folder / "run")
