"""How the threads of the braid binary wait for each other, as the OpenMP runtime that it has loaded tells it."""
import os
import re
import subprocess
import unittest

from braid_binary import BINARY, braid

SAID = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


def looks(command=(BINARY,), **said):
    """How often a waiting thread looks before it sleeps."""
    clean = {key: value for key, value in os.environ.items() if key not in SAID}
    done = subprocess.run([*command, "config"], capture_output=True, text=True, timeout=300,
                          env=clean | {"OMP_DISPLAY_ENV": "verbose"} | said)
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)
    assert shown, done.stderr
    return int(shown[-1])


class PassiveWaiting(unittest.TestCase):
    def setUp(self):
        for key in SAID:
            os.environ.pop(key, None)

    def test_threads_sleep_where_nothing_is_said(self):
        self.assertEqual(looks(), 0)
        self.assertEqual(looks([os.path.relpath(BINARY)]), 0)

    def test_what_the_user_says_is_kept(self):
        self.assertGreater(looks(OMP_WAIT_POLICY="active"), 1_000_000)
        self.assertEqual(looks(GOMP_SPINCOUNT="77"), 77)

    def test_words_and_exit_codes_come_through(self):
        done = braid("no such command", "with a word")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no such command: is no command of braid", done.stderr)

    def test_a_binary_that_a_dynamic_loader_was_told_to_load_runs_too(self):
        program_headers = subprocess.run(["readelf", "-l", BINARY], capture_output=True, text=True, check=True).stdout
        loader = re.search(r"program interpreter: (\S+)\]", program_headers)[1]
        self.assertGreaterEqual(looks([loader, BINARY]), 0)


if __name__ == "__main__":
    unittest.main()
