"""What tests of braid simulate share: running it, reading what it says, tables to give it."""
import json
import os
import re
import tempfile
import unittest

from braid_binary import braid

# 1F1B on two ranks with rank 0's steady state fused: runs, by hand, 1F0 1..2, 1B0 2..4, pair 4..7, 1F1 7..8, 1B1
# 8..10, 0B1 10..12.
FUSED = "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n"


def simulate(*words):
    return braid("simulate", *words)


def known_schedules():
    said = simulate("--schedule", "nothing-like-it", "--ranks", "1", "--microbatches", "1").stderr
    return re.search(r"must be one of ([^;\n]*)", said).group(1).strip().split(", ")


class Simulations(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def written(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(content)
        return path

    def said(self, *words):
        """The objects that --json prints."""
        done = simulate(*words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def refused(self, *words):
        """What is said of words that are wrong."""
        done = simulate(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr
