"""braid ckpt from-hf, braid ckpt to-hf and train.init as a user calls them, with the committed directories: no package is
needed. What transformers makes of the result is hf_round_trip_test.py's."""
import json
import shutil
import struct
import unittest

from braid_binary import SOURCE
from safetensors_file import tensors_of
from tiny_run import TinyRun

DATA = SOURCE / "tests/weights/data"
RUN = """
[data]
paths = ["text"]
tokenizer = "words"
[optimizer]
lr = 1e-3
[train]
init = "qwen2"
steps = 4
batch = 4
microbatch = 2
save_every = 2
threads = 1
out = "run"
"""


def widen(folder, vocab):
    """The embedding of a directory in one file gets rows of zeros, so that a tokenizer of `vocab` tokens fits."""
    path = folder / "model.safetensors"
    tensors = tensors_of(path)
    name = "model.embed_tokens.weight"
    kind, (rows, width), content = tensors[name]
    tensors[name] = (kind, [vocab, width], content + bytes(len(content) // rows * (vocab - rows)))
    header, data = {}, b""
    for each, (dtype, shape, content) in tensors.items():
        header[each] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": vocab}))


class Weights(TinyRun):
    def prepare(self):
        super().prepare()
        shutil.copytree(DATA / "qwen2", self.path / "qwen2")
        (self.path / "words").mkdir()
        tokenizer = json.loads((SOURCE / "tests/tokenize/data/marked_spaces.json").read_text())
        self.vocab = 1 + max(token["id"] for token in tokenizer["added_tokens"])
        widen(self.path / "qwen2", self.vocab)
        (self.path / "words/tokenizer.json").write_text(json.dumps(tokenizer))
        (self.path / "run.toml").write_text(RUN)

    def done(self, *words):
        done = self.braid(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, *words):
        done = self.braid(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_a_directory_comes_back_with_its_tokenizer(self):
        shutil.copy(self.path / "words/tokenizer.json", self.path / "qwen2")
        (self.path / "qwen2/generation_config.json").write_text('{"temperature": 0.5}')
        self.assertIn(f"the tokenizer of {self.vocab} tokens", self.done("ckpt", "from-hf", "qwen2", "checkpoint"))
        self.assertIn("weights in bfloat16, 1 file\n", self.done("ckpt", "to-hf", "checkpoint", "back", "--dtype", "bfloat16"))
        self.assertEqual(tensors_of(self.path / "back/model.safetensors"), tensors_of(self.path / "qwen2/model.safetensors"))
        for name in ("tokenizer.json", "generation_config.json"):
            self.assertEqual((self.path / "back" / name).read_bytes(), (self.path / "qwen2" / name).read_bytes())
        self.assertEqual(json.loads((self.path / "back/tokenizer_config.json").read_text())["eos_token"], "</s>")
        config = json.loads((self.path / "back/config.json").read_text())
        self.assertEqual((config["model_type"], config["eos_token_id"], config["torch_dtype"]), ("qwen2", 2, "bfloat16"))
        said = self.done("sample", "checkpoint", "--prompt", "the self", "--tokens", "5", "--temperature", "0")
        self.assertTrue(said.startswith("the self"), said)

    def test_float64_comes_back_bit_for_bit(self):
        path = self.path / "qwen2/model.safetensors"
        wide, data = {}, b""
        for name, (_, shape, content) in tensors_of(path).items():
            count = 1
            for extent in shape:
                count *= extent
            content = b"".join(struct.pack("<d", 1 / (3 + i)) for i in range(count))
            wide[name] = {"dtype": "F64", "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
            data += content
        text = json.dumps(wide).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        self.done("ckpt", "from-hf", "qwen2", "checkpoint")
        self.assertIn("weights in float64, 1 file\n", self.done("ckpt", "to-hf", "checkpoint", "back"))
        self.assertEqual(tensors_of(self.path / "back/model.safetensors"), tensors_of(path))
        self.assertEqual(json.loads((self.path / "back/config.json").read_text())["torch_dtype"], "float64")

    def test_a_run_begins_with_weights_and_goes_on_without_them(self):
        whole = self.done("train", "run.toml")
        self.assertIn("the weights of qwen2, a Hugging Face directory; all else begins anew", whole)
        self.assertIn("qwen2", (self.path / "run/config.toml").read_text())
        shutil.rmtree(self.path / "qwen2")  # what a run has written says its model itself
        self.done("train", "run.toml", "train.init=run", "train.out=again", "train.steps=1")
        self.assertEqual(self.done("sample", "run", "--tokens", "3", "--temperature", "0"),
                         self.done("sample", "run/step-4", "--tokens", "3", "--temperature", "0"))
        self.assertIn('init = "run/step-4"', (self.path / "again/config.toml").read_text())
        losses = self.losses()
        self.done("train", "run.toml", "train.init=run", "train.resume=run/step-2", "train.out=both")
        self.assertEqual(self.losses("both"), losses[2:], "the checkpoint's weights, not those of train.init")
        self.done("train", "run/config.toml", "train.init=", "train.resume=run/step-2", "train.out=other")
        self.assertEqual(self.losses("other"), losses[2:])

    def test_a_resumed_run_takes_model_and_tokenizer_from_its_checkpoint(self):
        text = RUN.replace('tokenizer = "words"\n', "")
        (self.path / "run.toml").write_text(text)
        shutil.copy(self.path / "words/tokenizer.json", self.path / "qwen2")
        self.done("train", "run.toml")
        losses = self.losses()
        # Without train.init, with its folder in place and with the folder gone.
        model = (self.path / "run/config.toml").read_text().split("[data]")[0]
        (self.path / "model.toml").write_text(model + text.replace('init = "qwen2"\n', ""))
        self.done("train", "model.toml", "train.resume=run/step-2", "train.out=no_init")
        self.assertEqual(self.losses("no_init"), losses[2:])
        shutil.rmtree(self.path / "qwen2")
        self.assertIn("the tokenizer that was saved with run/step-2",
                      self.done("train", "run.toml", "train.resume=run/step-2", "train.out=gone"))
        self.assertEqual(self.losses("gone"), losses[2:])
        shutil.rmtree(self.path / "run/step-4")
        self.done("train", "run.toml", "train.resume=latest")
        self.assertEqual(self.losses(), losses)
        self.assertIn('train.resume = "nowhere": must find a whole checkpoint; nowhere does not exist',
                      self.refused("train", "run.toml", "train.resume=nowhere"))
        self.assertIn('data.tokenizer = "bytes": must be the tokenizer of run/step-2',
                      self.refused("train", "run.toml", "train.resume=run/step-2", "data.tokenizer=bytes",
                                   "train.out=other"))

    def test_the_command_that_goes_on_takes_no_weights_again(self):
        process = self.started("train.steps=100000", "train.save_every=0")
        self.line_of(process, "step")
        process.terminate()
        said, _ = process.communicate()
        self.assertNotIn("train.init=", said.splitlines()[-1])
        again = self.started("train.steps=100000", "train.save_every=0", "train.resume=latest")
        self.line_of(again, "step")

    def test_the_space_in_front_of_a_document_is_no_text(self):
        self.done("ckpt", "from-hf", "qwen2", "checkpoint")
        found = []
        for count in (1, 3):
            (self.path / "documents.jsonl").write_text((json.dumps({"text": "the self"}) + "\n") * count)
            said = self.done("evaluate", "checkpoint", "documents.jsonl", "--tokenizer", "words", "--json")
            found.append(json.loads(said)["total"]["bytes"])
        self.assertEqual(found[1] - found[0], 2 * len("the self"))

    def test_the_tokenizer_of_the_weights_is_the_default(self):
        text = (self.path / "run.toml").read_text().replace('tokenizer = "words"\n', "")
        (self.path / "run.toml").write_text(text)
        said = self.refused("train", "run.toml")
        self.assertIn(f'data.tokenizer = "bytes": must be the tokenizer of the weights of qwen2, whose vocabulary of {self.vocab} tokens', said)
        self.assertIn("qwen2 has no tokenizer.json, nor vocab.json with merges.txt", said)
        shutil.copy(self.path / "words/tokenizer.json", self.path / "qwen2")
        self.done("train", "run.toml")
        self.assertIn('tokenizer = "qwen2"', (self.path / "run/config.toml").read_text())
        self.assertIn('data.tokenizer = "bytes": must be the tokenizer of the weights of qwen2: leave data.tokenizer out',
                      self.refused("train", "run.toml", "data.tokenizer=bytes", "train.out=other"))
        self.done("train", "run.toml", "data.tokenizer=words", "train.out=same")  # by content
        # A checkpoint's is the one stored in it.
        self.done("train", "run.toml", "train.init=run", "train.out=again", "train.steps=1")
        self.assertIn('must be the tokenizer of the weights of run/step-4: leave',
                      self.refused("train", "run.toml", "train.init=run", "data.tokenizer=bytes", "train.out=other"))
        # Prepared data carry a digest.
        self.done("data", "prepare", "text", "--out", "of_bytes")
        self.assertIn('data.paths = ["of_bytes"]: must be prepared with the tokenizer of the weights of qwen2, not with "bytes": prepare the data with --tokenizer qwen2',
                      self.refused("train", "run.toml", "data.paths=[of_bytes]", "train.out=other"))
        self.done("data", "prepare", "text", "--out", "of_words", "--tokenizer", "words")
        self.done("train", "run.toml", "data.paths=[of_words]", "train.out=other")

    def test_nothing_beside_the_place_is_removed(self):
        for name in ("out.tmp", "out.old"):
            (self.path / name).mkdir()
            (self.path / name / "mine").write_text("mine")
            self.assertIn(f"{name} is there", self.refused("ckpt", "from-hf", "qwen2", "out"))
            self.assertEqual((self.path / name / "mine").read_text(), "mine")
            shutil.rmtree(self.path / name)
        self.assertIn("there is no nowhere", self.refused("ckpt", "from-hf", "qwen2", "nowhere/out"))

    def test_what_contradicts_is_named_all_at_once(self):
        (self.path / "qwen2/config.json").write_text((DATA / "mistral/config.json").read_text())
        self.assertIn("model.layers.0.self_attn.q_proj.bias = [32]: is no tensor of the model that config.json describes",
                      self.refused("ckpt", "from-hf", "qwen2", "checkpoint"))
        self.assertFalse((self.path / "checkpoint").exists())
        (self.path / "taken").mkdir()
        (self.path / "taken/file").write_text("")
        self.assertEqual(self.refused("ckpt", "from-hf", "qwen2", "taken").splitlines()[-1].removeprefix("braid: "),
                         "OUT = taken: must not exist, or be an empty folder: nothing is overwritten")
        self.assertIn("DIR = nowhere: must be a Hugging Face directory, and is no folder",
                      self.refused("ckpt", "from-hf", "nowhere", "checkpoint"))


if __name__ == "__main__":
    unittest.main()
