"""Only functions that are called after a check of the processor have instructions of AVX-512 or AMX.

The compiler may use these instructions in any line of such a function, so it cannot check by itself. An inline function that
one source compiles for such a processor may replace the copies of all other sources.
"""
import os
import re
import subprocess
import unittest

# processor.h checks before it chooses namespace avx512. Callers of the others check has_product_bf16() or has_product_amx();
# these are local to one source, or inline functions that have a target of their own wherever they are compiled.
CHECKED_BEFORE = re.compile(r"_ZZ?NK?5braid7kernels(6avx512|10WholeTiles(9configure|7restore)Ev|5weaveE|14transpose_tileE"
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
    def test_are_only_where_callers_check_the_processor(self):
        found = functions_with_wide_instructions(os.environ["BRAID_NN_LIBRARY"])
        self.assertTrue(any("6avx512" in name for name in found))
        self.assertEqual(sorted(name for name in found if not CHECKED_BEFORE.match(name)), [])


if __name__ == "__main__":
    unittest.main()
