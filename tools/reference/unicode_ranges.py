#!/usr/bin/env python3
"""Writes braid/data/unicode_ranges.cpp: the letters and numbers that the reference tokenizer's regular expressions know.

    pip install tokenizers==0.23.3
    tools/reference/unicode_ranges.py braid/data/unicode_ranges.cpp

Asks the reference itself, code point by code point, so that its version of Unicode is ours too.
"""
import pathlib
import sys

from tokenizers import Regex, pre_tokenizers

CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def matching(pattern):
    """The code points that `pattern` matches, as [first, last] ranges."""
    remover = pre_tokenizers.Split(Regex(pattern), "removed")
    ranges = []
    for begin in range(0, len(CODES), 4096):
        block = CODES[begin:begin + 4096]
        kept = set()
        for _, (first, end) in remover.pre_tokenize_str("".join(map(chr, block))):
            kept.update(range(first, end))
        for place, code in enumerate(block):
            if place in kept:
                continue
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return ranges


def array(name, ranges):
    lines, line = [], "   "
    for first, last in ranges:
        word = f" {{{first:#x}, {last:#x}}},"
        if len(line) + len(word) > 118:
            lines.append(line)
            line = "   "
        line += word
    lines.append(line)
    return f"constexpr CodeRange {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


text = """// Letters and numbers of Unicode 16 as ranges of code points. Written by tools/reference/unicode_ranges.py.
// It knows no text: unicode_classes.h does.
#include "braid/data/unicode_ranges.h"

namespace braid {
namespace {

// clang-format off
%s
%s// clang-format on

}  // namespace

std::span<const CodeRange> letter_ranges() { return kLetters; }

std::span<const CodeRange> number_ranges() { return kNumbers; }

}  // namespace braid
""" % (array("kLetters", matching(r"\p{L}")), array("kNumbers", matching(r"\p{N}")))
pathlib.Path(sys.argv[1]).write_text(text)
