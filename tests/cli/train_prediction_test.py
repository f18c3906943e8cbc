"""What braid train says of a step's speed: its peak, its prediction and its ideal beside what was measured."""
import json
import re
import unittest

from tiny_run import TinyRun


class TrainPrediction(TinyRun):
    def test_no_step_reaches_more_than_the_peak_and_a_peak_that_was_too_low_is_said(self):
        done = self.trained("train.peak_flops=1")
        shares = [line["mfu"] for line in self.metrics() if line["kind"] == "step"]
        self.assertEqual(shares[0], 1)
        self.assertLessEqual(max(shares), 1)
        peaks = [line for line in self.metrics() if line["kind"] == "peak"]
        self.assertEqual([line["source"] for line in peaks], ["given"] + ["step"] * (len(peaks) - 1))
        self.assertIn("reached by a step, more than was known before; mfu is measured against it", done.stdout)
        self.assertEqual(len(re.findall("^peak ", done.stdout, re.M)), 2, "however often it grows")

    def test_what_was_expected_stands_beside_what_was_measured(self):
        wide = ["model.width=128", "model.context=128", "train.batch=16", "train.log_every=1", "train.eval_sequences=4"]
        for mesh in (["mesh.pipe=2"], ["mesh.data=2", "sync.zero=1"], ["mesh.data=4"]):
            done = self.trained(*wide, *mesh, "train.overwrite=true")
            said = [line for line in self.metrics() if line["kind"] == "prediction"]
            self.assertEqual(len(said), 1)
            ways = [line for line in self.metrics() if line["kind"] == "comparison"][0]["ways"]
            self.assertEqual(list(ways), ["data", "data, ZeRO 3", "tensor", "pipe"])
            self.assertAlmostEqual(sum(said[0]["seconds"].values()), said[0]["step_seconds"])
            last = [line for line in self.metrics() if line["kind"] == "step"][-1]
            self.assertAlmostEqual(said[0]["sync_bytes"] / last["sync_bytes"], 1, delta=0.05)  # buffers are aligned
            self.assertEqual(len(said[0]["peak_memory_bytes"]), 2 if mesh[0] == "mesh.pipe=2" else 1)
            self.assertRegex(done.stdout, r"(?m)^predict step \S+ s, bubble ")
            self.assertRegex(done.stdout, r"(?m)^step .* %$")
        self.trained(*wide, "train.overwrite=true")
        kinds = [line["kind"] for line in self.metrics()]
        self.assertIn("prediction", kinds)
        self.assertNotIn("comparison", kinds, "a rank alone has no link to measure")
        self.trained("train.overwrite=true")
        self.assertNotIn("prediction", [line["kind"] for line in self.metrics()], "fewer than 1,000 small steps")

    def test_small_steps_and_a_schedule_from_a_file_are_predicted(self):
        (self.path / "table.csv").write_text("0F0,0F1,,,0B0,0B1\n,1F0,1F1,1B0,1B1\n")
        many = ["train.steps=1001", "train.eval_every=0", "train.save_every=0", "mesh.pipe=2", "train.microbatch=2", "train.batch=4"]
        done = self.trained(*many, "pipeline.schedule=file:table.csv", "train.overwrite=true", "train.log_every=1000")
        said, = [line for line in self.metrics() if line["kind"] == "prediction"]
        self.assertEqual(len(said["peak_memory_bytes"]), 2)
        self.assertGreater(said["bubble_fraction"], 0.1)
        self.assertRegex(done.stdout, r"(?m)^predict step \S+ s, bubble ")

    def test_what_is_called_ideal_is_never_slower_than_what_was_measured(self):
        for schedule in ("1f1b", "zb-h1"):
            done = self.trained("mesh.pipe=2", f"pipeline.schedule={schedule}", f"train.out={schedule}")
            events = json.loads((self.path / schedule / "trace.json").read_text())["traceEvents"]
            ends = [max(event["ts"] + event["dur"] for event in events if event["ph"] == "X" and event["pid"] == pid)
                    for pid in (0, 1)]
            self.assertLess(ends[1], ends[0])
            measured, ideal = re.search(r"([\d.]+) % measured, ([\d.]+) % ideal", done.stdout).groups()
            self.assertLessEqual(float(ideal), float(measured))


if __name__ == "__main__":
    unittest.main()
