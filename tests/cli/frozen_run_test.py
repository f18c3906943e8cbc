"""Frozen parameters in a run: process ranks, checkpoints, resuming with others, and what is refused."""
import unittest

from safetensors_file import tensors_of
from tiny_run import TinyRun

HALF = 'optimizer.groups=[{match = "w?e.*", frozen = true}, {match = "blocks.0.*", frozen = true}]'
OTHER = 'optimizer.groups=[{match = "ln_f.*", frozen = true}]'
ALLOWED = "train.allow_change=[optimizer.groups]"
REPRODUCIBLE = 'train.reduction="reproducible"'
UNTIED = 'model.output_weights="untied"'


def is_frozen(name):
    return name.startswith(("wte.", "wpe.", "blocks.0."))


class FrozenRun(TinyRun):
    def tensors(self, step, out="run"):
        tensors = {}
        for file in (self.path / out / f"step-{step}").glob("*.safetensors"):
            tensors |= tensors_of(file)
        return tensors

    def steps(self, out):
        return [(line["loss"], line["grad_norm"]) for line in self.metrics(out) if line["kind"] == "step"]

    def test_processes_have_the_numbers_of_one_rank(self):
        self.trained(HALF, UNTIED, REPRODUCIBLE)
        self.trained(HALF, UNTIED, REPRODUCIBLE, "mesh.pipe=2", 'run.ranks="processes"', "train.out=ranks")
        self.assertEqual(self.steps("ranks"), self.steps("run"))

    def test_a_measured_partition_is_found(self):
        self.trained(HALF, UNTIED, "mesh.pipe=2", 'pipeline.partition="measured"')

    def test_checkpoints_have_frozen_weights_unmoved_and_no_states_of_them(self):
        for kind, words in (("F32", []), ("BF16", ["mesh.data=2", "sync.zero=3", 'train.dtype="bfloat16"']),
                            ("F16", ['train.dtype="float16"'])):
            with self.subTest(words=words):
                self.trained(HALF, UNTIED, "train.overwrite=true", *words)
                first, last = self.tensors(3), self.tensors(6)
                self.assertEqual(first.keys(), last.keys())
                for name in first:
                    weight = name.split("/")[-1]
                    if is_frozen(weight):
                        self.assertEqual(name, weight)
                        self.assertEqual(first[name], last[name])
                        self.assertEqual(first[name][0], kind)
                    else:
                        self.assertNotEqual(first[name], last[name], name)
                done = self.braid("sample", "run", "--prompt", "the", "--tokens", "2")
                self.assertEqual(done.returncode, 0, done.stderr)
                done = self.braid("ckpt", "to-hf", "run", f"hf-{kind}")
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_other_frozen_parameters_on_resume_are_allowed_by_name(self):
        self.trained(HALF, UNTIED, 'train.dtype="bfloat16"')
        words = ["train.resume=latest", "train.steps=8", UNTIED, OTHER, 'train.dtype="bfloat16"']
        refused = self.braid("train", "run.toml", *words)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("optimizer.groups", refused.stderr)
        before = self.tensors(6)
        done = self.trained(*words, ALLOWED)
        self.assertIn("begin at zero", done.stdout + done.stderr)
        after = self.tensors(8)
        self.assertEqual(after["wte.weight"][0], "F32")
        self.assertEqual(after["ln_f.weight"][0], "BF16")
        self.assertNotEqual(after["blocks.1.mlp.up.weight"], before["blocks.1.mlp.up.weight"])

    def test_refusals_name_the_key(self):
        for groups, said in (('[{match = "*", frozen = true}]', "must leave parameters to train"),
                             ('[{match = "blocks.9.*", frozen = true}]', "must match names of parameters"),
                             ('[{match = "*.bias", frozen = true, weight_decay = 0}]', "no rates")):
            done = self.braid("train", "run.toml", f"optimizer.groups={groups}")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertFalse((self.path / "run").exists())

    def test_operations_are_those_that_are_needed(self):
        self.trained("train.steps=1")
        done = self.trained("train.steps=1", HALF, UNTIED, "train.out=half")
        whole, half = ([line for line in self.metrics(out) if line["kind"] == "run"][0]["model_flops_per_token"]
                       for out in ("run", "half"))
        self.assertLess(half, whole)
        all_of_whole, trained = [[line[key] for line in self.metrics("half") if line["kind"] == "run"][0]
                                 for key in ("parameters", "trained_parameters")]
        layer = 12 * 16 * 16 + 13 * 16
        self.assertEqual(trained, layer + 2 * 16 + 257 * 16)  # the second layer, the last norm and the head
        self.assertIn(f"{all_of_whole:,} parameters ({trained:,} trained), 2 layers", done.stdout)


if __name__ == "__main__":
    unittest.main()
