"""Which functions have instructions of AVX-512 or AMX: only those that callers call after asking for the processor.

Any line of such a function may be one of these instructions, also the one that would ask. And a function of a header that is
compiled for such a processor in one source may be the one that all others get.
"""
import os
import re
import subprocess
import unittest

# Of namespace avx512, which processor.h chooses, and those that has_product_bf16() or has_product_amx() is asked before. The
# latter are of one source each, but for those of headers that are compiled for nothing else.
ASKED_BEFORE = re.compile(r"_ZZ?NK?5braid7kernels(6avx512|10WholeTiles(9configure|7restore)Ev|5weaveE|14transpose_tileE"
                          r"|12_GLOBAL__N_1\d+(multiply_blocks|multiply_pairs|multiply_tiles|prefetch|store_sums|store|stream"
                          r"|sum_pairs|tile)E)")
WIDE = re.compile(r"%zmm|%tmm|%[xy]mm(1[6-9]|2\d|3[01])|%k[0-7]\b|\tv(movdqu8|movdqu16|movdq[au](32|64)) |\ttile")


def functions_with_wide_instructions(library):
    lines = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True).stdout
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
        self.assertTrue(any("6avx512" in name for name in found))
        self.assertEqual(sorted(name for name in found if not ASKED_BEFORE.match(name)), [])


if __name__ == "__main__":
    unittest.main()
