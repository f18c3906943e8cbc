#!/usr/bin/env python3
"""Writes tests/tokenize/data/bpe_golden.json: how the reference cuts and encodes texts that are hard to cut.

    pip install tokenizers==0.23.3
    tools/reference/tokenizer.py tests/tokenize/data [GPT2_FOLDER]

tests/tokenize/data/bpe.json is braid's own (braid data train-bpe --vocab 700 over bpe_text.txt); this script checks that the
reference's trainer finds the same tokens and merges. With GPT2_FOLDER (vocab.json and merges.txt of GPT-2) the golden
file also has the texts in GPT-2's tokens; without it, those are kept as they are.
"""
import json
import pathlib
import random
import sys

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": CONTRACTIONS + r"\p{N}{1,3}" + REST,
    "qwen2": CONTRACTIONS + r"\p{N}" + REST,
}


def hard_texts():
    drawn = random.Random(7)
    pool = list("aAsStTdDmMlLrRvVeE'’ \t\n\r\x0b\x0c\x85\xa0\u2028\u3000\u180e\u200b\u200d0129٠١½Ⅷ!?.,-—…#漢字かカ한عربעé\u0301ñ🦏ſKıİßﬁ\ufeff\ufffd")
    pool += ["<|endoftext|>", "'re", "'LL", "'ſ", "    ", "\n\n", "\r\n", "    \n", "\t\t", " '", "👩‍👩‍👧‍👦"]
    return [
        "a", " ", "\n", "Hello, world!", "  leading and trailing  ",
        "".join(map(chr, range(256))),
        "".join(f" {chr(code)}a{chr(code)}1 " for code in range(0xA0, 0x100)),
        "I'm you're she's he'd they'll we've isn't I'M YOU'RE SHE'S HE'D THEY'LL WE'VE ISN'T 'sit 'Tis 're' ''s '’s 'ſ 'ſt rock'n'roll",
        "one  two   three    four" + " " * 40 + "five" + " " * 33,
        "\t\ttabs\t \t mixed \t\n\n\n  \n \r\n\r\n\r\r\n x\n\n\ty \n  z  \n",
        "\u3000\u3000字\u2028\u2029\x85\xa0\xa0\x1c\x1f\u180e \u200b\u205f\u1680x",
        "1 12 123 1234 12345 123456 1234567890 3.14159 1e-9 0x1F ٠١٢٣٤ ½⅔ ⅧⅨ x² 一二三 ①②③",
        "👩‍👩‍👧‍👦👍🏽🇩🇪🇫🇷 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 a👩‍🏭b",
        "漢字仮名交じり文。カタカナ、ひらがな!한국어 텍스트 中文字符没有空格",
        "العربية مُشَكَّلَة ١٢٣ עִבְרִית ไทยไม่เว้นวรรค हिन्दी தமிழ்",
        "e\u0301 e\u0301\u0323\u0302 Z\u0336a\u0336l\u0336g\u0336o\u0336 n\u0303ino",
        "\u0065\u0323\u0302 \u0065\u0302\u0323 \u212b \u1100\u1161\u11a8\u1100\u1161 \uac00\u11a8 \u09c7\u09be \u0958 \u2126 \ufb1d \U0001d15e a\u0334\u0301\u0300 \u0301",
        "<|endoftext|> is text <|endoftext|><|im_start|>",
        "def f(x):\n    if x > 0:\n        return x ** 2  # comment\n\n\nclass A:\n\tpass\n",
        "https://example.org/a_b-c?d=e&f=%20#g user@host.com C++ a.b.c --flag=1 {\"k\": [1, 2]}",
        "a" * 100, "strand" * 40, "the" * 70 + " " + "first" * 50, "!" * 90, "9" * 70, "\n" * 70,
        "\ufeff\ufffd\ufffe\U0010ffff\U000e0001\x00\x00\x7f",
        "".join(drawn.choice(pool) for _ in range(500)),
        "".join(chr(code) for code in (drawn.randrange(0x20, 0xD800) for _ in range(150))),
    ]


def split_by(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def piece_ends(pattern, text):
    """Where pieces end, in bytes."""
    splitter = pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated")
    return [len(text[:end].encode()) for _, (_, end) in splitter.pre_tokenize_str(text)]


def encodings(tokenizer, texts):
    tokenizer.encode_special_tokens = True
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]


def check_training(ours, text):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=700, min_frequency=2, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator([text], trainer)
    theirs = json.loads(tokenizer.to_str())["model"]
    assert ours["model"]["vocab"] == theirs["vocab"], "other tokens"
    assert ours["model"]["merges"] == [list(merge) for merge in theirs["merges"]], "other merges"


def main(folder, gpt2=None):
    folder = pathlib.Path(folder)
    ours = json.loads((folder / "bpe.json").read_text())
    check_training(ours, (folder / "bpe_text.txt").read_bytes().decode())
    texts = hard_texts()
    golden = {"texts": texts, "ends": {}, "ids": {}}
    for pattern in PATTERNS:
        golden["ends"][pattern] = [piece_ends(pattern, text) for text in texts]
        for whole_pieces in (False, True)[:2 if pattern == "llama3" else 1]:
            tokenizer = Tokenizer.from_file(str(folder / "bpe.json"))
            tokenizer.pre_tokenizer = split_by(pattern)
            tokenizer.model.ignore_merges = whole_pieces
            golden["ids"][pattern + (" whole" if whole_pieces else "")] = encodings(tokenizer, texts)
    tokenizer = Tokenizer.from_file(str(folder / "bpe.json"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = split_by("qwen2")
    golden["ids"]["qwen2 nfc"] = encodings(tokenizer, texts)
    golden["nfc"] = [normalizers.NFC().normalize_str(text) for text in texts]
    path = folder / "bpe_golden.json"
    if gpt2:
        tokenizer = Tokenizer(models.BPE.from_file(f"{gpt2}/vocab.json", f"{gpt2}/merges.txt"))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        golden["gpt2_vocabulary"] = encodings(tokenizer, texts)
    elif path.exists():
        golden["gpt2_vocabulary"] = json.loads(path.read_text())["gpt2_vocabulary"]
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in golden.items())
    path.write_text("{\n" + lines + "\n}\n")


main(*sys.argv[1:])
