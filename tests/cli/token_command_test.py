"""braid token: a secret on standard output or in a file that only its owner may read, and never the same one."""
import os
import pathlib
import re
import stat
import tempfile
import unittest

from braid_binary import braid


class Token(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "token")

    def test_it_is_printed(self):
        tokens = {braid("token").stdout for _ in range(2)}
        self.assertEqual(len(tokens), 2)
        for token in tokens:
            self.assertRegex(token, r"^[0-9a-f]{64}\n$")

    def test_in_a_file_it_is_its_owners_alone(self):
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        done = braid("token", "--out", str(self.path))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        self.assertTrue(re.fullmatch(r"[0-9a-f]{64}\n", self.path.read_text()))

    def test_what_is_there_stays(self):
        self.path.write_text("mine")
        done = braid("token", "--out", str(self.path))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(f"--out = {self.path}: must be a file that is not there yet", done.stderr)
        self.assertEqual(self.path.read_text(), "mine")

    def test_a_folder_that_is_not_there(self):
        done = braid("token", "--out", str(self.path / "below"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot create", done.stderr)


if __name__ == "__main__":
    unittest.main()
