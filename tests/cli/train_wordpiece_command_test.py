"""braid data train-wordpiece as a user calls it: what is written, what is printed, and how it ends."""
import json
import pathlib
import tempfile
import unittest

from braid_binary import SOURCE, braid

TEXT = SOURCE / "tests/tokenize/data/bpe_text.txt"
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


class TrainWordPiece(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def train(self, *words):
        return braid("data", "train-wordpiece", *map(str, words))

    def test_writes_a_tokenizer_that_prepare_reads(self):
        done = self.train("--vocab", 450, "--out", self.path / "tok", TEXT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^450 tokens from \d+ distinct pieces of 1 document\nwrote .*\n$")
        file = json.loads((self.path / "tok/tokenizer.json").read_text())
        self.assertEqual([token["content"] for token in file["added_tokens"]], BERT)
        self.assertEqual(list(file["model"]["vocab"])[:5], BERT)
        self.assertEqual(sorted(file["model"]["vocab"].values()), list(range(450)))
        self.assertEqual(file["normalizer"], {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                                              "strip_accents": True, "lowercase": True})
        self.assertEqual(file["post_processor"]["special_tokens"]["[SEP]"], {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]})
        done = braid("data", "prepare", "--out", str(self.path / "data"), "--tokenizer", str(self.path / "tok"), str(TEXT))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_cased_text_more_special_tokens_and_a_small_alphabet(self):
        done = self.train("--vocab", 100, "--out", self.path, "--cased", "--special", "[A]", "--special", "[B]",
                          "--alphabet", 20, "--min-frequency", 3, TEXT)
        self.assertEqual(done.returncode, 0, done.stderr)
        file = json.loads((self.path / "tokenizer.json").read_text())
        self.assertEqual([token["content"] for token in file["added_tokens"]], BERT + ["[A]", "[B]"])
        self.assertEqual(len({token for token in file["model"]["vocab"] if len(token) == 1}), 20)
        self.assertFalse(file["normalizer"]["lowercase"] or file["normalizer"]["strip_accents"])

    def test_names_everything_that_is_wrong(self):
        done = self.train("--vocab", 5, "--min-frequency", 0, "--alphabet", "x", "--special", "[UNK]", "--frob")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.splitlines(), [
            "--special = [UNK]: is a special token already",
            "--frob: is not an option of braid data train-wordpiece",
            "--vocab = 5: must be a whole number from 6 to 16777216; nearest valid is 6",
            "--min-frequency = 0: must be a whole number from 1 to 1099511627776; nearest valid is 1",
            "--out: is needed; the folder to write tokenizer.json into",
            "INPUT: is needed; text files, .jsonl files, folders of them",
            "--alphabet = x: must be a whole number from 1 to 1114112; nearest valid is 1",
        ])

    def test_a_vocabulary_too_small_for_the_characters_is_refused(self):
        done = self.train("--vocab", 40, "--out", self.path / "tok", TEXT)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^--vocab = 40: must be at least the number of special tokens and characters, .*"
                                      r"give a lower --alphabet; nearest valid is \d+\n$")
        self.assertFalse((self.path / "tok").exists())

    def test_a_file_that_is_not_supported_is_refused_with_every_key(self):
        self.train("--vocab", 450, "--out", self.path, TEXT)
        file = json.loads((self.path / "tokenizer.json").read_text())
        file["normalizer"]["lowercase"] = None
        file["pre_tokenizer"] = {"type": "Whitespace"}
        file["decoder"]["type"] = "Metaspace"
        (self.path / "tokenizer.json").write_text(json.dumps(file))
        done = braid("data", "prepare", "--out", str(self.path / "data"), "--tokenizer", str(self.path), str(TEXT))
        self.assertEqual(done.returncode, 2)
        for key in ("normalizer.lowercase", "pre_tokenizer", "decoder"):
            self.assertIn(f": {key}: must be ", done.stderr)


if __name__ == "__main__":
    unittest.main()
