"""scripts/run_tests on the word of a ctest made for the purpose: what it counts, and what it says of tests that were
skipped or failed."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = """1/4 Testing: nn
Running main() from gtest_main.cc
/house/tests/nn/kernels_test.cpp:199: Skipped
one set of kernels here
what another test prints
/house/tests/nn/kernels_test.cpp:201: Skipped

[==========] 3 tests from 1 test suite ran. (2 ms total)
[  SKIPPED ] 2 tests.
2/4 Testing: prepare
test_a (__main__.Prepare.test_a) ... skipped "the user's wing"
test_b (__main__.Prepare.test_b)
What it is about. ... skipped "the user's wing"
test_c (__main__.Prepare.test_c) ... ok
3/4 Testing: cuda_library
skipped: libc10_cuda.so cannot be loaded
"""
FAILED = """1/4 Testing: comm
/house/tests/comm/sums_test.cpp:7: Failure
Expected equality of these values:
  taken(4)
    Which is: 0
  8
/house/tests/comm/sums_test.cpp:8: Failure
Value of: more
[  FAILED  ] OwnSums.are_taken (3 ms)
[  FAILED  ] Gloo/Groups.are_split/on_host, where GetParam() = 8-byte object <...> (12 ms)
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] OwnSums.are_taken
<end of output>
2/4 Testing: launch
======================================================================
FAIL: test_a_rank_is_killed (__main__.Launch.test_a_rank_is_killed)
A rank that is killed.
----------------------------------------------------------------------
Traceback (most recent call last):
  File "launch_test.py", line 3, in test_a_rank_is_killed
    self.assertEqual(1, 2)
AssertionError: 1 != 2

======================================================================
ERROR: test_a_rank_hangs (__main__.Launch.test_a_rank_hangs) (rank=1)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "launch_test.py", line 9, in test_a_rank_hangs
    raise first
OSError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "launch_test.py", line 9, in test_a_rank_hangs
    raise second
Cut: second
 : rank 0 said so

----------------------------------------------------------------------
Ran 9 tests in 1.0s
<end of output>
3/4 Testing: pipe
unknown file: Failure
C++ exception with description "no peer" thrown in the test body.
<end of output>
Test Failed.
4/4 Testing: chaos
begins
Segmentation fault
<end of output>
Test Failed.
"""


class RunTests(unittest.TestCase):
    def run_tests(self, summary, details, **variables):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("scripts/run_tests", "tools/test_outcomes"):
                (root / name).parent.mkdir()
                shutil.copy(SOURCE / name, root / name)
            (root / "bin").mkdir()
            (root / "bin" / "ctest").write_text(f"#!/bin/sh\necho \"ctest $*\"\ncat <<'END'\n{summary}END\n")
            (root / "bin" / "ctest").chmod(0o755)
            (root / "build/release/Testing/Temporary").mkdir(parents=True)
            (root / "build/release/Testing/Temporary/LastTest.log").write_text(details)
            environment = {name: value for name, value in os.environ.items() if name != "BRAID_FULL"} | variables
            environment["PATH"] = f"{root / 'bin'}:{os.environ['PATH']}"
            done = subprocess.run([root / "scripts/run_tests", "release", "."], capture_output=True, text=True,
                                  env=environment)
            return done.returncode, done.stdout.splitlines()

    def test_what_was_skipped_is_listed_by_its_reason_and_is_no_failure(self):
        code, said = self.run_tests("1/3 Test  #1: nn .......   Passed    0.03 sec\n"
                                    "2/3 Test  #2: prepare ..   Passed    0.02 sec\n"
                                    "3/3 Test #11: cuda_library ...***Skipped   0.01 sec\n", SKIPPED)
        self.assertEqual(said[1:], [
            "skipped: one set of kernels here: nn kernels_test.cpp:199",
            "skipped: no reason given: nn kernels_test.cpp:201",
            "skipped: the user's wing: prepare test_a, prepare test_b",
            "skipped: libc10_cuda.so cannot be loaded: cuda_library",
            "release: 2 passed, 0 failed, 1 skipped"])
        self.assertEqual(code, 0)

    def test_many_with_one_reason_take_one_line(self):
        log = "1/1 Testing: t\n" + "".join(f"test_{i} (X.test_{i}) ... skipped 'so'\n" for i in range(9))
        code, said = self.run_tests("1/1 Test #1: t ...   Passed    0.03 sec\n", log)
        self.assertEqual(said[1:-1], ["skipped: so: t test_0, t test_1, t test_2 and 6 more"])

    def test_a_failure_and_nothing_at_all_are_errors(self):
        for summary, counts in (("1/2 Test #1: a ...   Passed 0.1 sec\n2/2 Test #2: b ...***Failed 0.1 sec\n", "1 passed, 1"),
                                ("1/1 Test #1: a ...***Skipped 0.1 sec\n", "0 passed, 0")):
            code, said = self.run_tests(summary, "")
            self.assertEqual(code, 1)
            self.assertIn(f"release: {counts} failed", said[-1])

    def test_failures_are_named_at_the_end_with_their_messages(self):
        _, said = self.run_tests("1/2 Test #1: comm ...***Failed 0.1 sec\n2/2 Test #2: launch ...***Failed 0.1 sec\n", FAILED)
        self.assertEqual(said[-7:-1], [
            "failed: comm OwnSums.are_taken: sums_test.cpp:7 Expected equality of these values: taken(4) Which is: 0 8 "
            "sums_test.cpp:8 Value of: more",
            "failed: comm Gloo/Groups.are_split/on_host: no message",
            "failed: launch test_a_rank_is_killed: AssertionError: 1 != 2",
            "failed: launch test_a_rank_hangs (rank=1): Cut: second : rank 0 said so",
            "failed: pipe outside of a test, or the suite ended in it: unknown file C++ exception with description "
            '"no peer" thrown in the test body.',
            "failed: chaos (no test named): begins Segmentation fault"])

    def test_exhaustive_variants_have_longer(self):
        for variables, limit in (({}, 900), ({"BRAID_FULL": "1"}, 10800)):
            _, said = self.run_tests("1/1 Test #1: a ...***Failed 0.1 sec\n", "", **variables)
            self.assertIn(f" --timeout {limit} ", said[1])  # of a failed run the log is printed


if __name__ == "__main__":
    unittest.main()
