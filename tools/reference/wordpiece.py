#!/usr/bin/env python3
"""Writes tests/tokenize/data/wordpiece_golden.json: the reference's tokens and decoded texts of texts that are hard to cut.

    pip install tokenizers==0.23.3
    tools/reference/wordpiece.py tests/tokenize/data/wordpiece_golden.json [NUMBER_OF_TEXTS]

Texts are bytes in hexadecimal. Bytes that are not UTF-8 are for the reference one U+FFFD each. Random texts have no character
about which the reference's tables of Unicode 8 and Python's differ.
"""
import codecs
import json
import random
import sys
import unicodedata

import tokenizers
from tokenizers import Tokenizer, normalizers, pre_tokenizers

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HARD = [
    "", " ", "\n", "a", "Hello, world!", "  leading and trailing  ", "don't do not I'm we've they're it's ' quoted ' can't . ? ! ,",
    "".join(map(chr, range(256))),
    "[CLS] is text [SEP][MASK] [UNK] [PAD] [cls] un[MASK]able", "##ing ## a##b #a", "\u2581\u2581in \u2581the\u2581\u2581er",
    "newest renewed NEW Straße neWnew Neu neu erNEU <ext>in<ext> x y x  y ÖL öl o\u0308lig", "漢字仮名交じり文。カタカナ、ひらがな!한국어 텍스트",
    "a漢b字\u0301c\uf900\uf901d\U0002f800e\U00020000\U0002a6df\U0002b920\u3007\u3400\ufa0e",
    "e\u0301 \u00e9 \u1ec7 \u0130\u0131 İstanbul ıŞİ ΑΣ ΑΣΑ ß ẞ ǅ ﬁ Å \u212b \u2126 \u1e9b\u0323 \u037e \u0387 \u1fef \u2260 <\u0338 =\u0338",
    "a\u0300\u0301\u0323\u0327b \u0301\u0302c x\u200d\u0301y \u0344 \u0f73\u0f71 \u302e\u302f \U0001d165\U0001d16d\u0301 \U0001d15e\u1d165",
    "각 \u1100\u1161\u11a8 \uac00\u11a8 한\u302e글", "हिन्दी தமிழ் ไทยไม่เว้น עִבְרִית العربية مُشَكَّلَة ١٢٣",
    "\x00a\x00b \x01\x02c\x1b[0m\x7f\x80\x85x\x0by\x0cz\x1c\x1f", "zero\u200bwidth\u200cjoin\u200der\ufeff\u2060 so\u00adft \u180ea\u061cb",
    "\u00a0nb\u2003em\u3000wide\u2028line\u2029par\u205f\u1680\u202f", "👩\u200d👩\u200d👧\u200d👦👍🏽🇩🇪 ❤\ufe0f 🏴\U000e0067\U000e0062 a👩\u200d🏭b",
    "\ufffd\ufffe\uffff\U0010ffff\U000f0000\ue000 a\ufffdb", "a" * 100, "a" * 101, "é" * 100, "é" * 101, "e\u0301" * 100, "the" * 90, "!" * 90, "漢" * 60,
    "“quotes” «guillemets» „low‟ — – ‐ … ‽ ⁂ 。、；： ・ ¡¿ § ¶ € $ + < > | ~ ^ ` = ° ± × ÷",
    "1 12 3.14159 1e-9 0x1F ½ ² ① Ⅷ 一二三 x\u00b2", "https://example.org/a_b-c?d=e&f=%20#g user@host.com C++ --flag=1",
]
HARD_BYTES = [b"\xff\xfe abc\x80d", b"caf\xc3", b"\xc3\xa9\xc3 \xe2\x82 \xf0\x9f\x98 x", b"\xed\xa0\x80a\xed\xb0\x80", b"\xc0\x80\xf5\x80\x80\x80\xf8z",
              b"the\xe9new\xe9er", b"\xf0\x9f\x98\x80\xf0\x9f\x98 \x00\xc2\x85"]
ADDED = [("new", False), ("Öl", True), ("漢字", True), ("x y", False), ("<ext>", True), ("Straße", True), ("ё", False), ("Neu", True)]
SETTINGS = {
    "uncased": {},
    "cased": {"normalizer": {"lowercase": False}},
    "accents": {"normalizer": {"strip_accents": False}},
    "stripped": {"normalizer": {"strip_accents": True, "lowercase": False}},
    "raw": {"normalizer": {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False},
            "model": {"max_input_chars_per_word": 8}, "decoder": {"cleanup": False}},
    "no normalizer": {"normalizer": None, "decoder": None},
    "another prefix": {"model": {"continuing_subword_prefix": "\u2581\u2581"}, "decoder": {"prefix": "\u2581\u2581"}},
    "added": {"added_tokens": True},
    "added, raw": {"added_tokens": True, "normalizer": {"clean_text": False, "strip_accents": False}},
}

codecs.register_error("each", lambda error: ("\ufffd" * (error.end - error.start), error.end))


def agrees(char):
    """True if the reference's tables have this character as Python's."""
    category = unicodedata.category(char)
    if category in ("Cn", "Cs"):
        return False
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    stripped = normalizers.BertNormalizer(**{**off, "strip_accents": True}).normalize_str(char)
    cleaned = normalizers.BertNormalizer(**{**off, "clean_text": True}).normalize_str(char)
    parts = len(pre_tokenizers.BertPreTokenizer().pre_tokenize_str("a" + char + "b"))
    own = "".join(c for c in unicodedata.normalize("NFD", char) if unicodedata.category(c) != "Mn")
    return (stripped == own and (not cleaned) == (category in ("Cc", "Cf", "Co") and char not in "\t\n\r" or char == "\ufffd")
            and (parts == 3) == (category[0] == "P" or ord(char) < 128 and not char.isalnum() and char.isprintable() and char != " "))


def characters(drawn):
    """Characters of all kinds. Most scripts have few."""
    ranges = [(0x20, 0x250), (0x300, 0x530), (0x590, 0x700), (0x900, 0xe80), (0x1100, 0x1200), (0x1e00, 0x2070), (0x2190, 0x2800),
              (0x3000, 0x3100), (0x4e00, 0x9fff), (0xac00, 0xd7a4), (0xf900, 0xfb00), (0x10000, 0x10400), (0x1f300, 0x1f650), (0xa0, 0x30000)]
    chars = [chr(drawn.randrange(*span)) for span in ranges for _ in range(60)]
    return [char for char in chars if not 0xd800 <= ord(char) < 0xe000 and agrees(char)]


def random_text(drawn, chars):
    often = list("aeinrst AEINRST  .,'?!-#[]\n\t\u0301\u0323\u200d\u200b\u00ad\x00\x1f漢字éÖßİ")
    often += ["the", "new", "er", "ing", "un", "<ext>", "Öl", "ö", "x y", "##", "\u2581\u2581", " do not", "n't", "[MASK]", "👩\u200d👧"]
    text = b""
    for _ in range(drawn.randrange(1, 60)):
        kind = drawn.random()
        if kind < 0.55:
            text += drawn.choice(often).encode()
        elif kind < 0.9:
            text += drawn.choice(chars).encode()
        elif kind < 0.95:
            text += bytes([drawn.randrange(0x80, 0x100)])
        else:
            text += drawn.choice(often).encode() * drawn.choice([2, 3, 7, 100])
    return text


def vocabulary(texts, drawn):
    """Special tokens, most of the texts' characters, and parts of their words."""
    forms = [text.decode(errors="each") for text in texts]
    forms += [normalizers.BertNormalizer(lowercase=lower, strip_accents=strip).normalize_str(form)
              for form in forms for lower in (False, True) for strip in (False, True)]
    chars = sorted({char for form in forms for char in form if not char.isspace()})
    words = sorted({word for form in forms for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(form)})
    tokens = dict.fromkeys(SPECIAL + ["new", "the", "##er", "Neu"])
    for char in chars:
        tokens.update(dict.fromkeys(token for token in (char, "##" + char) if drawn.random() < 0.93))
    for _ in range(250):
        word = drawn.choice(words)
        begin = drawn.randrange(len(word))
        token = ("##" if begin else "") + word[begin:begin + drawn.randrange(2, 6)]
        tokens[token] = None
    return [token for token in tokens if token != "##" and not token.startswith("\u2581\u2581")]


def added_token(number, content, kind):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": kind == "normalized",
            "special": kind == "special"}


def tokenizer_file(vocab, setting):
    prefix = setting.get("model", {}).get("continuing_subword_prefix", "##")
    vocab = [prefix + token.removeprefix("##") if token.startswith("##") else token for token in vocab]
    added = [added_token(number, content, "special") for number, content in enumerate(SPECIAL)]
    if "added_tokens" in setting:
        place = {token: number for number, token in enumerate(vocab)}
        for content, normalized in ADDED:
            number = place.setdefault(content, len(place))
            added.append(added_token(number, content, "normalized" if normalized else "raw"))
    parts = {
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
    }
    for key, part in parts.items():
        change = setting.get(key, {})
        parts[key] = None if change is None else part | change
    parts["model"]["vocab"] = {token: number for number, token in enumerate(vocab)}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}} | parts


def golden(count, seed=11):
    drawn = random.Random(seed)
    chars = characters(drawn)
    texts = [text.encode() for text in HARD] + HARD_BYTES
    while len(texts) < count:
        texts.append(random_text(drawn, chars))
    vocab = vocabulary(texts, drawn)
    cases = []
    for name, setting in SETTINGS.items():
        file = tokenizer_file(vocab, setting)
        tokenizer = Tokenizer.from_str(json.dumps(file))
        tokenizer.encode_special_tokens = True
        ids = [tokenizer.encode(text.decode(errors="each"), add_special_tokens=False).ids for text in texts]
        ids += [[drawn.randrange(tokenizer.get_vocab_size()) for _ in range(8)] for _ in range(20)]  # these are only decoded
        parts = {key: file[key] for key in ("normalizer", "decoder", "added_tokens")}
        parts["model"] = {key: value for key, value in file["model"].items() if key != "vocab"}
        cases.append({"name": name, "file": parts, "ids": ids, "decoded": [tokenizer.decode(tokens) for tokens in ids]})
    return {"tokenizers": tokenizers.__version__, "vocab": vocab, "texts": [text.hex() for text in texts], "cases": cases}


def write(path, count=60):
    content = golden(int(count))
    cases = ",\n".join(json.dumps(case, separators=(",", ":")) for case in content.pop("cases"))
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in content.items())
    with open(path, "w") as file:
        file.write("{\n" + lines + ",\n\"cases\": [\n" + cases + "\n]}\n")


if __name__ == "__main__":
    write(*sys.argv[1:])
