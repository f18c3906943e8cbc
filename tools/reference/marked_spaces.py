#!/usr/bin/env python3
"""Writes tests/tokenize/data/marked_spaces.json, a small tokenizer of SentencePiece's kind, and marked_spaces_golden.json:
how the reference encodes and decodes texts with it, in every form in which such files come.

    pip install tokenizers==0.23.3
    tools/reference/marked_spaces.py tests/tokenize/data

The texts are those of bpe_golden.json and random ones; with ignore_merges the reference takes a piece that is a special token's
name for that token, so that no piece is one. A vocabulary is learned from bpe_text.txt; the 256 bytes come before it,
as in Llama 2's file.
"""
import json
import pathlib
import random
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

MARK = "\u2581"
PREPEND = {"type": "Prepend", "prepend": MARK}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": split}


def decoder(strip):
    steps = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    return {"type": "Sequence", "decoders": steps + [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] * strip}


# normalizer, pre_tokenizer, whether decoding strips, ignore_merges
FORMS = {
    "llama2": ({"type": "Sequence", "normalizers": [PREPEND, REPLACE]}, None, True, False),
    "first": (None, metaspace("first", False), True, False),
    "always split": (None, metaspace("always", True), True, False),
    "never": (REPLACE, None, False, False),
    "split whole": (None, metaspace("never", True), False, True),
}


def learned(text):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme="always", split=True)
    trainer = trainers.BpeTrainer(vocab_size=420, min_frequency=2, special_tokens=["<unk>"], show_progress=False,
                                  limit_alphabet=70)
    tokenizer.train_from_iterator(text.split("\n"), trainer)
    return json.loads(tokenizer.to_str())["model"]


def added(content, number, special):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": special}


def tokenizer_json(model):
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    learned_names = [name for name in sorted(model["vocab"], key=model["vocab"].get) if name != "<unk>"]
    vocab = {name: number for number, name in enumerate([*names, *learned_names])}
    specials = [added(name, vocab[name], True) for name in names[:3]] + [added("<|word|>", len(vocab), False)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": specials,
            "normalizer": FORMS["llama2"][0], "pre_tokenizer": None, "post_processor": None, "decoder": decoder(True),
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                      "vocab": vocab, "merges": model["merges"]}}


def random_texts():
    drawn = random.Random(11)
    pool = list("aAeiou tnshr \n\t .,()_=:\"'#0123456789") + [" ", "  ", MARK, "the", "self", "\u00e9", "\u6f22", "\U0001f600",
                                                             "x<s>", "x</s>", "x<0x0A>", "<|word|>", "def ", "return"]
    return ["".join(drawn.choice(pool) for _ in range(drawn.randrange(1, 60))) for _ in range(150)]


def main(folder):
    folder = pathlib.Path(folder)
    whole = tokenizer_json(learned((folder / "bpe_text.txt").read_bytes().decode()))
    (folder / "marked_spaces.json").write_text(json.dumps(whole, indent=0, ensure_ascii=False) + "\n")
    texts = json.loads((folder / "bpe_golden.json").read_text())["texts"] + random_texts()
    golden = {"texts": texts, "ids": {}, "decoded": {}}
    for name, (normalizer, pre_tokenizer, strips, whole_pieces) in FORMS.items():
        form = whole | {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder(strips)}
        form["model"] = form["model"] | {"ignore_merges": whole_pieces}
        tokenizer = Tokenizer.from_str(json.dumps(form))
        tokenizer.encode_special_tokens = True
        golden["ids"][name] = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        golden["decoded"][name] = [tokenizer.decode(ids) for ids in golden["ids"][name]]
    golden["forms"] = {name: {"normalizer": form[0], "pre_tokenizer": form[1], "ignore_merges": form[3]}
                       for name, form in FORMS.items()}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in golden.items())
    (folder / "marked_spaces_golden.json").write_text("{\n" + lines + "\n}\n")


main(*sys.argv[1:])
