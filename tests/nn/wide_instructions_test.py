"""Which functions have instructions of AVX-512 or AMX: only those that callers call after asking for the processor.

Any line of such a function may be one of these instructions, also the one that would ask. And a function of a header that is
compiled for such a processor in one source may be the one that all others get.
"""
import os
import re
import subprocess
import unittest

# Of namespace avx512, which processor.h chooses, and those that has_product_bf16() or has_product_amx() is asked before.
ASKED_BEFORE = re.compile(r"braid::kernels::(avx512::|WholeTiles::(configure|restore)\(|"
                          r"(\(anonymous namespace\)::)?(weave|transpose_tile|multiply_blocks|multiply_pairs|multiply_tiles"
                          r"|prefetch|store_sums|store|stream|sum_pairs|tile)\()")
WIDE = re.compile(r"%zmm|%tmm|%[xy]mm(1[6-9]|2\d|3[01])|%k[0-7]\b|\tv(movdqu8|movdqu16|movdq[au](32|64)) |\ttile")


def functions_with_wide_instructions(library):
    lines = subprocess.run(["objdump", "-dC", "--no-show-raw-insn", library], capture_output=True, text=True, check=True).stdout
    found, name = set(), ""
    for line in lines.splitlines():
        if line.endswith(">:"):
            name = line[line.index("<") + 1:-2]
        elif WIDE.search(line):
            found.add(name)
    return found


class WideInstructions(unittest.TestCase):
    def test_are_in_functions_that_callers_ask_for(self):
        found = functions_with_wide_instructions(os.environ["BRAID_NN_LIBRARY"])
        self.assertTrue(any("avx512::" in name for name in found))
        self.assertEqual(sorted(name for name in found if not ASKED_BEFORE.search(name)), [])


if __name__ == "__main__":
    unittest.main()
