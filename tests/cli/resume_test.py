"""What a checkpoint knows of its run: its tokenizer, its data and the learning rate's horizon, wherever and however the
run goes on."""
import json
import shutil
import unittest

from braid_binary import braid
from tiny_run import TINY, TrainedRun

RUN = TINY.replace("[train]", 'warmup_steps = 1\n[train]\nreduction = "reproducible"')


class Resume(TrainedRun):
    configuration = RUN

    def setUp(self):
        super().setUp()
        (self.path / "elsewhere").mkdir()

    def train(self, *words, cwd=None):
        done = self.braid("train", str(self.path / "run.toml"), *words, cwd=cwd)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, *words):
        done = self.braid("train", "run.toml", "train.resume=run/step-3", "train.out=refused", *words)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def steps(self, key, out="run"):
        return [line[key] for line in self.metrics(out) if line["kind"] == "step"]


class Tokenizer(Resume):
    configuration = RUN.replace("[optimizer]", 'tokenizer = "tok"\n[optimizer]')

    # Two tokenizers of the same size: in the second, bytes have each other's numbers. Both have two tokens that could end a text.
    @staticmethod
    def before(path):
        done = braid("data", "train-bpe", "--vocab", "280", "--out", "tok", "text", cwd=path)
        assert done.returncode == 0, done.stderr
        file = path / "tok" / "tokenizer.json"
        tokenizer = json.loads(file.read_text())
        tokenizer["added_tokens"].append(tokenizer["added_tokens"][0] | {"id": 280, "content": "<|other|>"})
        file.write_text(json.dumps(tokenizer))
        shutil.copytree(path / "tok", path / "other")
        file = path / "other" / "tokenizer.json"
        vocab = tokenizer["model"]["vocab"]
        letters = [token for token in vocab if len(token) == 1]
        numbers = [vocab[token] for token in letters]
        vocab.update(zip(letters, reversed(numbers)))
        file.write_text(json.dumps(tokenizer))

    def replace_tokenizer(self):
        shutil.rmtree(self.path / "tok")
        shutil.copytree(self.path / "other", self.path / "tok")

    def sample(self, cwd=None):
        done = self.braid("sample", str(self.path / "run/step-6"), "--tokens", "12", "--prompt", "quick ", cwd=cwd)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_its_files_are_inside_and_listed_with_their_hash(self):
        manifest = json.loads((self.path / "run/step-6/manifest.json").read_text())
        inside = self.path / "run/step-6/tokenizer.json"
        self.assertEqual(inside.read_bytes(), (self.path / "tok/tokenizer.json").read_bytes())
        self.assertEqual(manifest["files"]["tokenizer.json"]["bytes"], inside.stat().st_size)
        self.assertEqual(len(manifest["tokenizer_xxh64"]), 16)
        inside.write_bytes(inside.read_bytes().replace(b"BPE", b"bpe"))
        done = self.braid("sample", "run/step-6")
        self.assertEqual(done.returncode, 3)
        self.assertIn("run/step-6/tokenizer.json", done.stderr)

    def test_sampling_is_the_same_whatever_becomes_of_the_original(self):
        said = self.sample()
        self.assertEqual(self.sample(cwd=self.path / "elsewhere"), said)
        self.replace_tokenizer()
        self.assertEqual(self.sample(), said)
        shutil.rmtree(self.path / "tok")
        self.assertEqual(self.sample(), said)

    def test_a_run_goes_on_with_its_own_when_the_original_is_gone_or_another(self):
        whole = self.steps("loss")
        words = [f'data.paths=["{self.path}/text"]', f"train.resume={self.path}/run/step-3"]
        said = self.train(*words, f"train.out={self.path}/a", cwd=self.path / "elsewhere")
        self.assertIn("there is none at tok", said)
        self.assertEqual(self.steps("loss", "a"), whole[3:])
        self.replace_tokenizer()
        said = self.train(*words, "train.out=b")
        self.assertIn("the one at tok is another", said)
        self.assertEqual(self.steps("loss", "b"), whole[3:])
        again = self.train("train.resume=b/step-6", "train.steps=7", "train.out=c")
        self.assertIn("the one at tok is another", again)
        self.assertEqual((self.path / "c/step-7/tokenizer.json").read_bytes(),
                         (self.path / "run/step-6/tokenizer.json").read_bytes())

    def test_another_is_refused_by_name_and_the_same_elsewhere_is_not(self):
        shutil.move(self.path / "tok", self.path / "moved")
        self.assertIn('data.tokenizer = "other": must be the tokenizer of run/step-3; nearest valid is "tok"',
                      self.refused("data.tokenizer=other"))
        self.assertIn('data.tokenizer = "bytes": must be the tokenizer of run/step-3',
                      self.refused("data.tokenizer=bytes"))
        self.train("train.resume=run/step-3", "data.tokenizer=moved", "train.out=next")
        self.assertEqual(self.steps("loss", "next"), self.steps("loss")[3:])

    def test_prepared_data_give_theirs_and_one_that_was_changed_there_is_refused(self):
        self.assertEqual(self.braid("data", "prepare", "--out", "tokens", "--tokenizer", "tok", "text").returncode, 0)
        self.train("data.paths=[tokens]", "data.tokenizer=bytes", "train.out=prepared")
        self.assertEqual((self.path / "prepared/step-6/tokenizer.json").read_bytes(),
                         (self.path / "tok/tokenizer.json").read_bytes())
        shutil.copy(self.path / "other/tokenizer.json", self.path / "tokens/tokenizer/tokenizer.json")
        done = self.braid("train", "run.toml", "data.paths=[tokens]", "data.tokenizer=bytes", "train.out=next")
        self.assertEqual(done.returncode, 3)
        self.assertIn("tokens/tokenizer: is not the tokenizer that the data in tokens were prepared with", done.stderr)

    def test_another_end_of_text_is_another_tokenizer(self):
        shutil.copytree(self.path / "tok", self.path / "ended")
        (self.path / "ended/tokenizer_config.json").write_text(json.dumps({"eos_token": "<|other|>"}))
        self.assertIn('data.tokenizer = "ended": must be the tokenizer of run/step-3',
                      self.refused("data.tokenizer=ended"))


class Data(Resume):
    def test_other_text_is_refused_and_the_same_elsewhere_is_not(self):
        shutil.copytree(self.path / "text", self.path / "elsewhere/copy")
        self.train("train.resume=run/step-3", "data.paths=[elsewhere/copy]", "train.out=next")
        self.assertEqual(self.steps("loss", "next"), self.steps("loss")[3:])
        file = self.path / "text/3.txt"
        before = file.read_text()
        file.write_text(before.replace("quick", "quack", 1))
        self.assertRegex(self.refused(), r'data\.paths = \["text"\]: must hold the data of run/step-3, which has text '
                         r"\(8 documents, 14720 bytes, xxh64 [0-9a-f]{16}\) in place of text "
                         r"\(8 documents, 14720 bytes, xxh64 [0-9a-f]{16}\)")
        file.write_text(before)
        (self.path / "text/9.txt").write_text("one more of them\n" * 10)
        self.assertIn("in place of text (9 documents, 14890 bytes, ", self.refused())

    def test_other_prepared_data_are_refused_by_the_file_that_differs(self):
        for out, words in (("tokens", []), ("shards", ["--shard-tokens", "2000"])):
            done = self.braid("data", "prepare", "--out", out, "text", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.train("data.paths=[tokens]", "train.out=prepared")
        shutil.move(self.path / "tokens", self.path / "elsewhere/tokens")
        resume = "train.resume=prepared/step-3"
        self.train(resume, "data.paths=[elsewhere/tokens]", "train.out=next")
        self.assertEqual(self.steps("loss", "next"), self.steps("loss", "prepared")[3:])
        self.assertRegex(self.refused(resume, "data.paths=[shards]"), r"must hold the data of prepared/step-3, which has "
                         r"source0-train-00000\.tokens \(\d+ documents, \d+ bytes, xxh3 [0-9a-f]{16}\) in place of "
                         r"source0-train-00000\.tokens")
        self.assertIn("in place of text (8 documents", self.refused(resume, "data.paths=[text]"))
        self.assertIn("which ends before source0-train-00000.tokens",
                      self.refused(resume, "data.paths=[elsewhere/tokens, elsewhere/tokens]"))


class AllSteps(Resume):
    def test_a_run_that_has_made_them_ends_again_without_another(self):
        files = {path: path.read_bytes() for path in (self.path / "run").glob("step-*/*")}
        before = self.metrics("run")
        self.assertIn("resumed at step 6", self.train("train.resume=latest"))
        self.assertEqual(files, {path: path.read_bytes() for path in (self.path / "run").glob("step-*/*")})
        made = self.metrics("run")[len(before):]
        self.assertEqual([line["kind"] for line in made], ["run", "evaluation"])
        self.assertEqual(made[-1], before[-1])

    def test_elsewhere_it_leaves_what_it_has(self):
        self.train("train.resume=run/step-6", "train.out=copy")
        self.assertEqual(*((self.path / out / "step-6/model.safetensors").read_bytes() for out in ("run", "copy")))


class LearningRate(Resume):
    def test_a_longer_run_keeps_the_curve_and_stays_at_its_lowest(self):
        rates = self.steps("learning_rate")
        self.assertEqual(rates[:2], [0.01, 0.01])
        self.assertAlmostEqual(rates[-1], 0.001, places=15)
        said = self.train("train.resume=run/step-3", "train.steps=8", "train.out=longer")
        self.assertIn("optimizer.decay_steps = 6, as in run/step-3: the learning rate stays at its lowest", said)
        self.assertEqual(self.steps("learning_rate", "longer"), rates[3:] + rates[-1:] * 2)
        said = self.train("train.resume=longer/step-8", "train.steps=9", "train.out=longest")
        self.assertIn("optimizer.decay_steps = 6, as in longer/step-8", said)
        self.assertEqual(self.steps("learning_rate", "longest"), rates[-1:])

    def test_the_user_may_say_otherwise_and_every_change_is_said(self):
        self.train("train.steps=8", "train.out=whole")
        said = self.train("train.resume=run/step-3", "train.steps=8", "optimizer.decay_steps=8", "train.out=stretched",
                          "optimizer.weight_decay=0.2",
                          "train.allow_change=[optimizer.decay_steps, optimizer.weight_decay]")
        self.assertIn("a decay of the learning rate up to step 8; it was 6 in run/step-3", said)
        self.assertIn("optimizer.weight_decay = 0.2; it was 0.1 in run/step-3", said)
        self.assertEqual(self.steps("learning_rate", "stretched"), self.steps("learning_rate", "whole")[3:])
        self.assertNotIn("decay", self.train("train.resume=run/step-3", "train.out=same"))
        otherwise = ["data.attention=document", "model.dropout=0.1", "train.dtype=bfloat16"]
        told = self.refused(*otherwise)
        for change in ('data.attention = "document": must be as in run/step-3, unless it is allowed to change; nearest '
                       'valid is "causal"', "model.dropout = 0.1: must be", 'train.dtype = "bfloat16": must be'):
            self.assertIn(change, told)
        allowed = 'train.allow_change = ["model.dropout", "data.attention", "train.dtype"]'
        self.assertIn(f"would have to name what is to change: {allowed}", told)
        said = self.train("train.resume=run/step-3", "train.out=otherwise", *otherwise, allowed.replace(" = ", "="))
        for change in ('data.attention = "document"; it was "causal"', "model.dropout = 0.1; it was 0",
                       'train.dtype = "bfloat16"; it was "float32"'):
            self.assertIn(f"{change} in run/step-3", said)

    def test_a_warm_up_beyond_the_horizon_is_refused(self):
        self.assertIn("optimizer.warmup_steps = 7: must be at most optimizer.decay_steps (6); nearest valid is 6",
                      self.refused("train.steps=8", "optimizer.warmup_steps=7"))


if __name__ == "__main__":
    unittest.main()
