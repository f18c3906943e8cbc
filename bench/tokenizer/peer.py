"""The peer of bench/tokenizer: Hugging Face `tokenizers` on the same text, on one thread. Prints rows of the same table."""
import pathlib
import sys
import time

from tokenizers import Tokenizer, models, pre_tokenizers

path, text = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
file = path / "tokenizer.json" if path.is_dir() else path
if file.exists():
    tokenizer = Tokenizer.from_file(str(file))
else:
    tokenizer = Tokenizer(models.BPE.from_file(str(path / "vocab.json"), str(path / "merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)


def show(what, parts):
    best = 1e9
    for _ in range(5):
        begin = time.perf_counter()
        for part in parts:
            tokenizer.encode(part, add_special_tokens=False)
        best = min(best, time.perf_counter() - begin)
    print(f"| tokenizers, {what} | {len(text.encode()) / 1e6 / best:.1f} |")


show("encode, the whole text at once", [text])
show("encode, line by line", text.splitlines(keepends=True))
