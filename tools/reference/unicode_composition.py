#!/usr/bin/env python3
"""Writes braid/data/unicode_composition.cpp: decompositions and combining classes for the normal form C.

    pip install tokenizers==0.23.3
    tools/reference/unicode_composition.py braid/data/unicode_composition.cpp

From Python's unicodedata, without what the reference tokenizer's normalizer does not know. Hangul is arithmetic and left out.
"""
import pathlib
import sys
import unicodedata

from tokenizers import normalizers

NFC, NFD = normalizers.NFC(), normalizers.NFD()


def codes():
    return (code for code in range(0x110000) if not 0xD800 <= code < 0xE000 and not 0xAC00 <= code <= 0xD7A3)


def rows(items):
    lines, line = [], "   "
    for word in items:
        if len(line) + len(word) + 2 > 120:
            lines.append(line)
            line = "   "
        line += f" {word},"
    return "\n".join(lines + [line])


def decompositions():
    for code in codes():
        parts = unicodedata.decomposition(chr(code))
        if not parts or parts.startswith("<"):
            continue
        if NFD.normalize_str(chr(code)) != unicodedata.normalize("NFD", chr(code)):
            continue
        first, second = (parts.split() + ["0"])[:2]
        composes = second != "0" and NFC.normalize_str(chr(code)) == chr(code)
        yield f"{{{code:#x}, 0x{int(first, 16):x}, 0x{int(second, 16):x}, {int(composes)}}}"


def is_sorted(mark, value):
    """Whether the reference knows the class of this mark: it then swaps it with one of another class."""
    text = "x\u0301" + mark if value == 1 else "x" + mark + "\u0334"
    return NFC.normalize_str(text) != text


def combining():
    ranges = []
    for code in codes():
        value = unicodedata.combining(chr(code))
        if value and not is_sorted(chr(code), value):
            continue
        if value and ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == value:
            ranges[-1][1] = code
        elif value:
            ranges.append([code, code, value])
    return (f"{{{first:#x}, {last:#x}, {value}}}" for first, last, value in ranges)


pathlib.Path(sys.argv[1]).write_text("""// Canonical decompositions and combining classes. Written by tools/reference/unicode_composition.py.
// It knows no text: normal_form.h does.
#include "braid/data/unicode_composition.h"

namespace braid {
namespace {

// clang-format off
constexpr Decomposition kDecompositions[] = {
%s
};
constexpr CombiningRange kCombining[] = {
%s
};
// clang-format on

}  // namespace

std::span<const Decomposition> decompositions() { return kDecompositions; }

std::span<const CombiningRange> combining_ranges() { return kCombining; }

}  // namespace braid
""" % (rows(decompositions()), rows(combining())))
