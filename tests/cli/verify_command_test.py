"""braid verify as a user calls it: equal and different layouts, JSON, what is refused."""
import json
import unittest

from braid_binary import SOURCE, braid
from tiny_run import TinyRun

LARGE = """
[model]
family = "llama"
layers = 32
heads = 32
kv_heads = 8
width = 4096
ffn = 11008
context = 4096
vocab = 32000
[mesh]
pipe = 2
data = 2
tensor = 2
sequence_parallel = true
[pipeline]
schedule = "interleaved"
[sync]
zero = 1
[memory]
recompute = "selective"
[train]
batch = 64
microbatch = 1
dtype = "bfloat16"
"""


class VerifyCommand(TinyRun):
    def verify(self, *words, code=0):
        done = braid("verify", "run.toml", *words, cwd=self.path)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code > 1 else done.stdout

    def test_a_run_with_its_own_data(self):
        text = self.verify("mesh.data=2", "mesh.tensor=2", "--steps", "1")
        self.assertIn("4 ranks: data 2 x pipe 1 x tensor 2\n", text)
        self.assertIn("equal to the run on one rank up to rounding", text)
        self.assertIn("The reference shares its kernels with the run", text)
        self.assertFalse((self.path / "run").exists())

    def test_one_rank_is_bitwise_equal(self):
        text = self.verify()
        self.assertIn("\nbitwise equal to the run on one rank\n", text)
        self.assertRegex(text, r"gradients +blocks\.\*\.attention\.qkv\.weight +- +\S+  bitwise equal\n")

    def test_a_model_of_billions_is_shrunk(self):
        (self.path / "run.toml").write_text(LARGE)
        verdict = json.loads(self.verify("--shrink", "--json"))
        self.assertEqual(list(verdict)[:4], ["verdict", "steps", "max_relative_difference", "first_divergence"])
        self.assertEqual((verdict["verdict"], verdict["steps"], verdict["first_divergence"]), ("equal", 2, None))
        rows = {(row["phase"], row["tensor"]): row for row in verdict["tensors"]}
        for phase in "initial weights", "gradients", "update", "weights":
            self.assertIn((phase, "blocks.*.attention.qkv.weight"), rows)
        self.assertIn(("forward", "logits"), rows)
        self.assertLess(verdict["max_relative_difference"], 1e-8)
        self.assertTrue(all(row["equal"] for row in rows.values()))
        self.assertGreater(max(row["max_relative_difference"] for row in json.loads(
            self.verify("--shrink", "--json", "--own-dtype"))["tensors"]), 1e-5)

    def test_examples(self):
        for name in "quickstart", "llama":
            (self.path / "run.toml").write_text((SOURCE / "examples" / f"{name}.toml").read_text())
            self.verify("--shrink")

    def test_all_layouts(self):
        text = self.verify("--shrink", "--all-layouts", "2")
        self.assertIn("2 ranks: data 1 x pipe 2 x tensor 1, zb-h1", text)
        self.assertIn("2 ranks: data 2 x pipe 1 x tensor 1, ZeRO 3", text)
        for form in "ring", "all-gather", "ulysses":
            self.assertIn(f"2 ranks: data 1 x pipe 1 x tensor 1 x context 2 ({form}), ZeRO 1", text)
        self.assertRegex(text, r"\n(\d+) layouts of \1 verified, 0 different\n")
        every = json.loads(self.verify("--shrink", "--all-layouts", "2", "--minutes", "0", "--json"))
        self.assertEqual(len(every["layouts"]), 1)
        self.assertGreater(every["num_layouts"], 1)

    def test_other_training_is_compared_with_a_serial_program(self):
        for words in (["mesh.data=2", "sync.replication=diloco", "sync.period=2", "--steps", "5"],
                      ["mesh.data=2", "sync.replication=local-sgd", "sync.period=500"],
                      ["mesh.pipe=2", "pipeline.schedule=pipedream", "model.output_weights=untied"]):
            text = self.verify(*words, "--shrink")
            # On some processors even the bits are equal.
            self.assertRegex(text, r"\n(bitwise )?equal to a serial program of the training")

    def test_states_of_fewer_bits_are_compared(self):
        for words in (["state_dtype=bfloat16"], ["state_dtype=bfloat16", "--own-dtype"], ["state_dtype=int8", "--own-dtype"]):
            text = self.verify("mesh.tensor=2", "--shrink", "optimizer." + words[0], *words[1:])
            self.assertIn("equal to the run on one rank up to rounding", text)

    def test_more_steps_than_the_run_has_are_compared(self):
        self.assertIn("equal", self.verify("--shrink", "train.steps=1", "mesh.tensor=2"))

    def test_numbers_that_are_not_finite_are_not_equal(self):
        text = self.verify("mesh.data=2", "train.dtype=float16", "train.loss_scale=16777216", "--own-dtype", "--shrink",
                           code=3)
        self.assertIn("is not finite; a smaller train.loss_scale may help", text)

    def test_what_changes_the_mathematics_is_refused_by_name(self):
        for words, what in (
            (["sync.replication=parameter-server", "sync.consistency=asp"], "sync.consistency = asp"),
            (["sync.replication=parameter-server"], "optimizer.clip_norm = 1"),
            (["sync.compression=top-k"], "sync.compression = top-k"),
        ):
            message = self.verify("mesh.data=2", *words, "--shrink", code=2)
            self.assertIn(f"{what}: no run on one rank trains the same", message)

    def test_wrong_input(self):
        self.assertIn("mesh.tensor", self.verify("mesh.tensor=3", code=2))
        self.assertIn("must leave parameters to train", self.verify('optimizer.groups=[{match = "*", frozen = true}]', code=2))
        self.assertIn("--steps", self.verify("--steps", "0", code=2))
        self.assertIn("--minutes", self.verify("--minutes", "1", code=2))


if __name__ == "__main__":
    unittest.main()
