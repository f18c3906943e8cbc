"""memory.recompute = "auto": what a limit makes of it is printed, written into the run's folder, and the same on resume."""
import re
import unittest

from predicted_memory_test import SHAPE
from tiny_run import TinyRun

STATES = ["memory.optimizer=resident", "train.save_every=2", 'train.reduction="reproducible"']
KEPT = [*SHAPE, *STATES, "memory.activations=resident"]
MOVING = ["model.layers=8", *SHAPE[1:], *STATES]


class AutomaticRecompute(TinyRun):
    def entry(self, out="run", key="recompute"):
        return re.search(f'^{key} = "(.*)"$', (self.path / out / "config.toml").read_text(), re.MULTILINE)[1]

    def predicted_gib(self, policy):
        self.trained(*KEPT, f"memory.recompute={policy}")
        said = [line for line in self.metrics() if line["kind"] == "prediction"][0]
        return max(said["peak_memory_bytes"]) / 2**30

    def test_is_a_text_that_a_user_can_write(self):
        most, least = self.predicted_gib("none"), self.predicted_gib("full")
        self.trained(*KEPT)
        losses = self.losses()
        texts = set()
        for share in (0.6, 0.2):
            limit = f"memory.limit_gb={least + share * (most - least) + 1e-6:.6f}"
            done = self.trained(*KEPT, "memory.recompute=auto", limit, f"train.out=auto{share}")
            text = self.entry(f"auto{share}")
            self.assertIn(f'chose  memory.recompute = "{text}": the fastest that {limit.replace("=", " = ")[:20]}', done.stdout)
            self.assertEqual(self.losses(f"auto{share}"), losses)
            texts.add(text)
        self.trained(*KEPT, f"memory.recompute={text}", limit, "train.out=written")
        self.assertEqual(self.losses("written"), losses)
        self.assertEqual(len(texts), 2)
        self.assertNotIn("none", texts)

    def test_moves_blocks_to_disk_where_that_is_faster(self):
        peak = []
        for tier in ("resident", "disk"):
            self.trained(*MOVING, f"memory.activations={tier}")
            peak.append(max([line for line in self.metrics() if line["kind"] == "prediction"][0]["peak_memory_bytes"]))
        losses = self.losses()
        limit = f"memory.limit_gb={(0.9 * peak[0] + 0.1 * peak[1]) / 2**30:.6f}"
        done = self.trained(*MOVING, "memory.recompute=auto", limit, "train.out=auto")
        self.assertIn('chose  memory.activation_blocks = "', done.stdout)
        self.assertEqual(self.entry("auto", "activations"), "disk")
        self.assertGreater(int(self.entry("auto", "activation_blocks")), 0)
        self.assertEqual(self.losses("auto"), losses)
        self.assert_memory_as_predicted("auto")

    def test_is_the_same_on_resume_unless_the_limit_changes(self):
        limit = f"memory.limit_gb={0.97 * self.predicted_gib('none'):.6f}"
        self.trained(*KEPT, "memory.recompute=auto", limit)
        text = self.entry()
        again = [*KEPT, "memory.recompute=auto", "train.resume=latest", "train.overwrite=false"]
        self.trained(*again, limit, "train.steps=4")
        self.assertEqual(self.entry(), text)
        self.trained(*again, "memory.limit_gb=0", "train.steps=5")
        self.assertEqual(self.entry(), "none")


if __name__ == "__main__":
    unittest.main()
