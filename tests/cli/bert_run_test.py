"""BERT from text to weights: vocabulary, prepared data, training on several layouts, evaluation; and what is refused."""
import json
import os
import unittest

from tiny_run import TinyRun

CONFIGURATION = """
[model]
family = "bert"
layers = 2
heads = 2
width = 16
context = 16
norm_eps = 1e-12
[data]
paths = ["prep"]
[optimizer]
lr = 1e-2
[train]
steps = 4
batch = 4
microbatch = 2
eval_sequences = 8
threads = 1
reduction = "reproducible"
save_every = 0
out = "run"
overwrite = true
"""
MEMORY = ["model.layers=4", "model.heads=4", "model.width=192", "model.context=128", "train.batch=16", "train.microbatch=4",
          "train.steps=3", 'train.reduction="fast"']
LAYOUTS = [["mesh.data=2", "sync.zero=3"]]
if os.environ.get("BRAID_FULL"):
    LAYOUTS += [[], ["model.dropout=0.1"], ['memory.recompute="full"'], ['memory.recompute="selective"'], ["mesh.tensor=2"],
                ["mesh.pipe=2"], ["mesh.data=2", "sync.zero=1"], ["mesh.pipe=2", 'pipeline.partition="2.5,1.5"']]


class BertRun(TinyRun):
    def prepare(self):
        (self.path / "text").mkdir()
        words = [f"w{number % 7}{number % 11}x{number % 5}" for number in range(3000)]
        for number in range(40):
            (self.path / "text" / f"{number}.txt").write_text(" ".join(words[number * 70:(number + 1) * 70 - number]))
        (self.path / "run.toml").write_text(CONFIGURATION)
        for call in (["train-wordpiece", "text", "--out", "tok", "--vocab", "120"],
                     ["prepare", "--out", "prep", "--tokenizer", "tok", "text", "--validation-fraction", "0.3"]):
            done = self.braid("data", *call)
            self.assertEqual(done.returncode, 0, done.stderr)

    def steps(self, *words):
        self.trained(*words)
        return [(line["loss"], line["grad_norm"]) for line in self.metrics() if line["kind"] == "step"]

    def test_process_ranks_have_the_bits_of_one_rank_packed_and_padded(self):
        for cut in ("packed", "documents"):
            with self.subTest(cut=cut):
                alone = self.steps(f'data.sequences="{cut}"')
                ranks = self.steps(f'data.sequences="{cut}"', "mesh.pipe=2", "mesh.data=2", 'run.ranks="processes"')
                self.assertEqual(ranks, alone)

    def test_a_model_is_evaluated_on_the_same_masks_each_time_and_continues_no_text(self):
        self.trained("train.save_every=4")
        first, second = self.braid("evaluate", "run", "prep", "--json"), self.braid("evaluate", "run", "prep", "--json")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(first.stdout, second.stdout)
        for command, said in ((["sample", "run", "--prompt", "w"], "must be a causal family"),
                              (["evaluate", "run", "prep", "--stride", "4"], "--stride"),
                              (["train", "run.toml", 'train.objective="causal"'], 'must be "auto" or "masked"'),
                              (["train", "run.toml", 'data.paths=["text"]'], "[MASK]"),
                              (["train", "run.toml", 'model.family="gpt2"', 'train.objective="masked"'], '"causal"')):
            done = self.braid(*command)
            self.assertEqual(done.returncode, 2, command)
            self.assertIn(said, done.stderr)

    def nats(self, *documents):
        """The loss of a text of these documents, times the tokens that were predicted."""
        (self.path / "text.jsonl").write_text("".join(json.dumps({"text": each}) + "\n" for each in documents))
        done = self.braid("evaluate", "run", "text.jsonl", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)["total"]
        return told["loss"] * told["tokens"]

    def test_a_model_of_documents_is_evaluated_on_each_document_alone(self):
        self.trained('data.sequences="documents"', "train.save_every=4")
        one, other, last = "w00x0 w11x1 w22x2", "w22x2 w00x0 w11x1", "w33x3 w44x4"
        self.assertNotAlmostEqual(self.nats(one), self.nats(other), places=4)
        self.assertAlmostEqual(self.nats(one, last) - self.nats(one), self.nats(other, last) - self.nats(other), places=4)

    def test_utilisation_counts_the_logits_of_chosen_tokens_alone(self):
        self.trained("train.peak_flops=1e15")
        start, *lines = self.metrics()
        for line in lines:
            if line["kind"] == "step":
                flops = line["tokens_per_second"] * start["model_flops_per_token"]
                self.assertAlmostEqual(line["mfu"] * 1e15 / flops, 1, places=6)

    def test_transformers_finds_the_tokens_of_masks_beside_written_weights(self):
        self.trained("train.save_every=4")
        done = self.braid("ckpt", "to-hf", "run", "hf")
        self.assertEqual(done.returncode, 0, done.stderr)
        config = json.loads((self.path / "hf" / "tokenizer_config.json").read_text())
        names = {key: name for key, name in config.items() if key.endswith("_token")}
        self.assertEqual(names, {"eos_token": "[SEP]", "mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
                                 "pad_token": "[PAD]"})

    def test_memory_is_what_was_predicted_or_a_fiftieth_less(self):
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                self.trained(*MEMORY, *layout)
                self.assert_memory_as_predicted()


if __name__ == "__main__":
    unittest.main()
