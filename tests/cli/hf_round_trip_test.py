"""Weights and tokenizers through Hugging Face's own packages: what they save braid reads, what braid writes they load, and
both compute the same. Where this Python has no transformers, that of BRAID_PEER_PYTHON is taken; where that is not set
either, the test says so and is skipped (77)."""
import json
import pathlib
import random
import shutil
import struct
import tempfile
import unittest

import peer_python

peer_python.need("tokenizers", "torch", "transformers")
import tokenizers
import torch
import transformers

from braid_binary import SOURCE, braid

TEXT = (SOURCE / "tests/tokenize/data/bpe_text.txt").read_bytes().decode()
PROMPT, ANSWER = "The text ", 24
VOCAB = 320
SHAPE = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=64, bos_token_id=None, eos_token_id=0)
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 500.0, "factor": 8.0}
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 8.0, "original_max_position_embeddings": 16}
FAMILIES = {
    "GPT2": dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=0),
    "Llama": SHAPE | dict(rope_parameters=LLAMA3),
    "Llama linear": SHAPE | dict(rope_parameters={"rope_type": "linear", "rope_theta": 500.0, "factor": 8.0}),
    "Llama dynamic": SHAPE | dict(max_position_embeddings=36, rope_parameters=DYNAMIC),
    "Llama yarn": SHAPE | dict(rope_parameters=YARN),
    "Mistral": SHAPE | dict(sliding_window=7),
    "Qwen2": SHAPE | dict(tie_word_embeddings=True),
    "Qwen3": SHAPE | dict(head_dim=10),
    "Gemma2": SHAPE | dict(head_dim=10, sliding_window=7, query_pre_attn_scalar=12, attn_logit_softcapping=2.0,
                           final_logit_softcapping=3.0, attn_implementation="eager"),
}


def byte_level_tokenizer():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet,
                                             show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")


@torch.no_grad()
def saved_model(family, folder, number, dtype=torch.float32):
    """A model whose parts all count, with its tokenizer."""
    config = getattr(transformers, family.split()[0] + "Config")(vocab_size=VOCAB, **FAMILIES[family])
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    generator = torch.Generator().manual_seed(number)
    for name, param in model.named_parameters():
        values = torch.randn(param.shape, generator=generator)
        param.copy_(1 + 0.2 * values if param.dim() == 1 and name.endswith("weight") else 0.25 * values)
    model.to(dtype).save_pretrained(folder, max_shard_size="100KB")
    byte_level_tokenizer().save_pretrained(folder)


@torch.no_grad()
def logits(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model(torch.arange(40)[None] * 7 % VOCAB).logits


@torch.no_grad()
def greedy(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer.encode(PROMPT)
    out = model.generate(torch.tensor([tokens]), max_new_tokens=ANSWER, do_sample=False, pad_token_id=0)[0].tolist()
    return tokenizer.decode(out, skip_special_tokens=True).encode(errors="replace")


class HfRoundTrip(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def braid(self, *words):
        done = braid(*words, cwd=self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_logits_tokens_and_text_are_equal_both_ways(self):
        for number, family in enumerate(FAMILIES):
            with self.subTest(family):
                there, checkpoint, back = (f"{family}.{kind}" for kind in ("hf", "braid", "back"))
                saved_model(family, self.path / there, number)
                self.braid("ckpt", "from-hf", there, checkpoint)
                self.braid("ckpt", "to-hf", checkpoint, back, "--shard-gb", "0.0001")
                self.assertTrue(torch.equal(logits(self.path / there), logits(self.path / back)))
                tokenizer = transformers.AutoTokenizer.from_pretrained(self.path / back)
                own = transformers.AutoTokenizer.from_pretrained(self.path / there)
                self.assertEqual(tokenizer.encode(TEXT), own.encode(TEXT))
                self.assertEqual(tokenizer.eos_token_id, own.eos_token_id)
                said = self.braid("sample", checkpoint, "--prompt", PROMPT, "--tokens", str(ANSWER), "--temperature", "0")
                self.assertEqual(said.removesuffix("\n"), greedy(self.path / there).decode(errors="replace"))

    def test_a_model_in_16_bits_comes_back_in_16_bits(self):
        saved_model("Qwen2", self.path / "there", 7, torch.bfloat16)
        self.braid("ckpt", "from-hf", "there", "checkpoint")
        self.braid("ckpt", "to-hf", "checkpoint", "back", "--dtype", "bfloat16")
        self.assertTrue(torch.equal(logits(self.path / "there"), logits(self.path / "back")))
        self.assertEqual(transformers.AutoModelForCausalLM.from_pretrained(self.path / "back").dtype, torch.bfloat16)

    def braid_tokens(self, tokenizer, texts):
        """Each text's tokens, from the file that braid data prepare makes of it."""
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (self.path / "texts.jsonl").write_text(lines)
        self.braid("data", "prepare", "--out", "prepared", "--tokenizer", tokenizer, "--validation-fraction", "0", "texts.jsonl")
        content = (self.path / "prepared/source0-train-00000.tokens").read_bytes()
        width, = struct.unpack_from("<I", content, 12)
        count, documents = struct.unpack_from("<QQ", content, len(content) - 64)
        tokens = struct.unpack_from(f"<{count}{'H' if width == 2 else 'I'}", content, 4096)
        ends = struct.unpack_from(f"<{documents}Q", content, 4096 + (count * width + 7) // 8 * 8)
        return [list(tokens[begin:end - 1]) for begin, end in zip((0, *ends), ends)]

    def test_random_texts_have_the_tokens_of_the_package(self):
        drawn = random.Random(5)
        pool = list("abe tnshr \n\t.,()_=:\"'#0129") + ["  ", "\u2581", "the", "self", "\u00e9", "\u6f22", "\U0001f600", "def "]
        texts = ["".join(drawn.choice(pool) for _ in range(drawn.randrange(1, 200))) for _ in range(500)]
        there = SOURCE / "tests/tokenize/data"
        for name in ("marked_spaces.json", "bpe.json"):
            with self.subTest(name):
                shutil.rmtree(self.path / "prepared", ignore_errors=True)
                package = tokenizers.Tokenizer.from_file(str(there / name))
                package.encode_special_tokens = True
                want = [package.encode(text, add_special_tokens=False).ids for text in texts]
                self.assertEqual(self.braid_tokens(str(there / name), texts), want)

    def test_a_run_begins_with_weights_and_ends_as_a_directory(self):
        saved_model("Qwen3", self.path / "there", 3)
        (self.path / "text").mkdir()
        (self.path / "text" / "a.txt").write_text(TEXT)
        (self.path / "run.toml").write_text("""
[model]
context = 32
[data]
paths = ["text"]
tokenizer = "there"
validation_fraction = 0
[mesh]
pipe = 2
tensor = 2
[optimizer]
lr = 1e-30
weight_decay = 0
[train]
init = "there"
steps = 1
batch = 4
microbatch = 2
threads = 1
out = "run"
""")
        said = self.braid("train", "run.toml")
        self.assertIn("the weights of there, a Hugging Face directory; all else begins anew", said)
        self.braid("ckpt", "to-hf", "run", "back")
        self.assertLess((logits(self.path / "there") - logits(self.path / "back")).abs().max().item(), 1e-5)
        config = json.loads((self.path / "back/config.json").read_text())
        self.assertEqual((config["model_type"], config["max_position_embeddings"]), ("qwen3", 32))
        done = braid("train", "run.toml", "model.qk_norm=false", "model.heads=2", "train.out=other", cwd=self.path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("model.heads = 2: must be as in there, whose weights train.init takes", done.stderr)
        self.assertIn("model.qk_norm = false: must be as in there", done.stderr)


if __name__ == "__main__":
    unittest.main()
