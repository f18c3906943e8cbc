"""A model that needs several times memory.limit_gb trains with the bits of training in memory; with --full GPT-2 774M."""
import os
import pathlib
import re
import unittest

from braid_binary import BINARY
from tiny_run import TinyRun

STEPS = ["train.save_every=0", "train.eval_every=0", "train.overwrite=true", 'train.reduction="reproducible"',
         f'memory.paths=["{pathlib.Path(BINARY).parent}"]']
SMALL = ["train.steps=4", "model.layers=8", "model.heads=4", "model.width=192", "model.context=64", "train.batch=4",
         "train.microbatch=2", "memory.chunk_mb=0.25"]
GPT2_774M = ["train.steps=3", "model.layers=36", "model.heads=20", "model.width=1280", "model.context=256", "model.vocab=50257",
             "train.batch=1", "train.microbatch=1", 'train.dtype="bfloat16"', "train.threads=2"]


class LimitedMemory(TinyRun):
    def numbers(self, *words):
        """Losses and gradient norms of all steps, and the most bytes that a rank held."""
        self.trained(*STEPS, *words)
        steps = [line for line in self.metrics() if line["kind"] == "step"]
        return [(line["loss"], line["grad_norm"]) for line in steps], max(max(line["peak_memory_bytes"]) for line in steps)

    def assert_same_bits(self, model, limit_gb, most_clipping, on_disk):
        # The norms of the first steps are above the first limit of the norm, and no norm is above the second.
        for clip_norm in (1, most_clipping):
            clip = f"optimizer.clip_norm={clip_norm}"
            want, resident = self.numbers(*model, clip)
            got, held = self.numbers(*model, clip, f"memory.limit_gb={limit_gb}")
            self.assertEqual(got, want)
            self.assertLessEqual(held, limit_gb * 2**30)
            self.assertGreater(resident, 3 * held)
            tiers = re.findall(r'^(optimizer|gradients|parameters) = "disk"', (self.path / "run/config.toml").read_text(), re.M)
            self.assertEqual(tiers, on_disk)

    def test_a_small_model_has_the_bits_of_memory(self):
        self.assert_same_bits(SMALL, 0.02, 1000, ["optimizer", "gradients", "parameters"])

    @unittest.skipUnless(os.environ.get("BRAID_FULL"), "scripts/test --full")
    def test_gpt2_774m_has_the_bits_of_memory(self):
        self.assert_same_bits(GPT2_774M, 3, 1000, ["optimizer", "gradients"])


if __name__ == "__main__":
    unittest.main()
