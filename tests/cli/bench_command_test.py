"""braid bench scaling: a row and a point for every count of ranks, and one message for everything that is wrong."""
import pathlib
import re
import tempfile
import unittest

from braid_binary import braid

RUN = """
[model]
layers = 2
heads = 2
width = 16
context = 16
[data]
paths = ["TEXT"]
[train]
batch = 8
microbatch = 2
"""


class Scaling(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        text = pathlib.Path(self.folder.name, "text.txt")
        text.write_text("to be or not to be, that is the question\n" * 50)
        self.run_file = pathlib.Path(self.folder.name, "run.toml")
        self.run_file.write_text(RUN.replace("TEXT", str(text)))

    def tearDown(self):
        self.folder.cleanup()

    def test_table_and_picture(self):
        picture = pathlib.Path(self.folder.name, "scaling.svg")
        done = braid("bench", "scaling", str(self.run_file), "--ranks", "1,2,4", "--steps", "2", "--svg", str(picture))
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^(strong|weak) +(\d+) +([\d.]+) +\S+ +([\d.]+) +(\d+) %$", done.stdout, re.M)
        self.assertEqual([(kind, int(ranks)) for kind, ranks, *_ in rows],
                         [(kind, ranks) for kind in ("strong", "weak") for ranks in (1, 2, 4)])
        self.assertTrue(all(float(seconds) > 0 for _, _, seconds, _, _ in rows))
        self.assertEqual(picture.read_text().count("<circle"), 6)

    def test_everything_that_is_wrong_at_once(self):
        done = braid("bench", "scaling", str(self.run_file), "train.batch=6", "--ranks", "1,2,4")
        self.assertEqual(done.returncode, 2)
        self.assertIn("divisible by train.microbatch x mesh.data (2 x 2 = 4)", done.stderr)
        self.assertIn("(2 x 4 = 8)", done.stderr)
        done = braid("bench", "scaling", str(self.run_file), "--ranks", "2,1", "--steps", "none")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--ranks", done.stderr)
        self.assertIn("--steps", done.stderr)
        done = braid("bench", "scaling", str(self.run_file), "--ranks", "1,2147483647")
        self.assertRegex(done.stderr, r"^--ranks = 2147483647: must be at most (\d+), .*; nearest valid is \1\n$")

    def test_what(self):
        self.assertEqual(braid("bench").returncode, 2)
        self.assertEqual(braid("bench", "--help").returncode, 0)
        self.assertIn("scaling", braid("bench", "scalig").stderr)


unittest.main()
