"""A run of GPT-3 in a folder, and its plans."""
import json
import pathlib
import tempfile
import unittest

from braid_binary import braid

GPT3 = """
[model]
layers = 96
heads = 96
width = 12288
context = 2048
vocab = 51200
[train]
batch = 64
microbatch = 1
dtype = "bfloat16"
[mesh]
pipe = 8
tensor = 8
"""


class PlannedRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        (self.path / "run.toml").write_text(GPT3)

    def plan(self, *words, cluster="dgx-a100-80gb", code=0):
        done = braid("plan", "run.toml", "--cluster", cluster, *words, cwd=self.path)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def layouts(self, *words, **more):
        return json.loads(self.plan("--json", *words, **more))["layouts"]

    def refused(self, *words):
        done = braid("plan", *words, cwd=self.path)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr
