"""braid plan --try and --calibrate: layouts that are run for some steps beside what was predicted, and what measures."""
import json
import unittest

from tiny_run import TinyRun

CLUSTER = """
name = "two cores"
nodes = 1
[[devices]]
name = "core"
per_node = 2
memory_gib = 4
memory_gbps = 10
peak_tflops = { float32 = 0.05 }
shared_cores = true
[node]
link_gbps = 10
latency_us = 10
"""


class TriedLayouts(TinyRun):
    def prepare(self):
        super().prepare()
        (self.path / "c.toml").write_text(CLUSTER)

    def test_the_first_are_run_and_nothing_is_kept(self):
        done = self.braid("plan", "run.toml", "--cluster", "c.toml", "--top", "2", "--try", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = json.loads(done.stdout)["layouts"]
        self.assertGreater(first["measured"]["step_seconds"], 0)
        self.assertGreater(first["measured"]["peak_gib"], 0)
        self.assertNotIn("measured", second)
        self.assertFalse((self.path / "run").exists())

    def test_both_columns_are_printed(self):
        done = self.braid("plan", "run.toml", "--cluster", "c.toml", "--fixed", "--try", "3")
        self.assertRegex(done.stdout, r"(?m)^   tried:   step \S+ s where \S+ were predicted")

    def test_what_this_host_cannot_run_is_said_and_nothing_runs(self):
        words = ["mesh.data=1024", "train.batch=2048", 'data.paths=["nothing"]']
        done = self.braid("plan", "run.toml", *words, "--cluster", "c.toml", "--fixed", "--try", "1")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("mesh.data", done.stderr)

    def test_a_layout_that_does_not_fit_this_host_is_not_run(self):
        words = ["model.width=8192", "model.heads=64", "model.layers=64", "mesh.tensor=8", "train.batch=8", "train.microbatch=1"]
        done = self.braid("plan", "run.toml", *words, "--cluster", "h100-96gb-500w", "--nodes", "64", "--fixed", "--try", "1")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("must fit in memory", done.stderr)

    def test_who_calibrates_plans_nothing(self):
        done = self.braid("plan", "run.toml", "--calibrate", "host.toml")
        self.assertEqual((done.returncode, done.stderr), (2, "FILE excludes --calibrate\n"))
        self.assertFalse((self.path / "host.toml").exists())


if __name__ == "__main__":
    unittest.main()
