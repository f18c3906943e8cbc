"""braid data train-bpe as a user calls it: what is written, what is said, and how it ends."""
import json
import pathlib
import tempfile
import unittest

from braid_binary import SOURCE, braid

TEXT = SOURCE / "tests/tokenize/data/bpe_text.txt"


class TrainBpe(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def train(self, *words):
        return braid("data", "train-bpe", *map(str, words))

    def test_writes_the_tokenizer_asked_for(self):
        done = self.train("--vocab", 300, "--out", self.path / "new/folder", "--pattern", "llama3", TEXT)
        self.assertEqual(done.returncode, 0, done.stderr)
        file = json.loads((self.path / "new/folder/tokenizer.json").read_text())
        self.assertEqual(len(file["model"]["vocab"]), 300)
        self.assertEqual(len(file["model"]["merges"]), 43)
        self.assertEqual(file["model"]["merges"][0], ["à", "¤"])
        self.assertEqual([token["content"] for token in file["added_tokens"]], ["<|endoftext|>"])
        self.assertTrue(file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"].startswith("(?i:'s|'t"))
        self.assertRegex(done.stdout, r"^300 tokens \(43 merges\) from \d+ distinct pieces of 1 document\nwrote .*\n$")

    def test_says_when_there_are_fewer_tokens(self):
        done = self.train("--vocab", 5000, "--out", self.path, "--min-frequency", 9, TEXT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("fewer than asked for: no other pair occurs 9 times", done.stdout)

    def test_names_everything_that_is_wrong(self):
        (self.path / "tokenizer.json").write_text("{}")
        done = self.train("--vocab", 256, "--min-frequency", "x", "--pattern", "gpt3", "--out", self.path, "--frob",
                          self.path / "nothing")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.splitlines(), [
            "--frob: is not an option of braid data train-bpe",
            "--vocab = 256: must be a whole number from 257 to 16777216; nearest valid is 257",
            "--min-frequency = x: must be a whole number from 1 to 1099511627776; nearest valid is 1",
            f"--out = {self.path}: has a tokenizer.json already; remove it or name another folder",
            f"INPUT = {self.path}/nothing: does not exist",
            "--pattern = gpt3: must be one of gpt2, llama3, qwen2; nearest valid is gpt2",
        ])

    def test_names_what_is_missing(self):
        done = self.train()
        self.assertEqual(done.returncode, 2)
        for key in ("--vocab", "--out", "INPUT"):
            self.assertIn(f"{key}: is needed", done.stderr)

    def test_includes_as_prepare_does_and_counts_what_it_passes_over(self):
        text = self.path / "text"
        text.mkdir()
        (text / "a.txt").write_bytes(TEXT.read_bytes())
        (text / "b.md").write_bytes(TEXT.read_bytes())
        (text / ".hidden.txt").write_text("hidden")
        (text / "c.txt").write_bytes(b"\0" * 10)
        done = self.train("--vocab", 300, "--out", self.path / "tok", "--include", "*.txt", text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("distinct pieces of 1 document\n"
                      f"passed over in folders: 1 binary ({text}/c.txt), 1 hidden ({text}/.hidden.txt)\n", done.stdout)
        done = self.train("--vocab", 300, "--out", self.path / "new", "--include", "*.py", text)
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"INPUT = {text}: holds no file that --include names (*.py)\n"))

    def test_lines_of_jsonl_are_read_as_prepare_reads_them(self):
        lines, text = self.path / "lines.jsonl", self.path / "text.txt"
        words = ["the strand\n", "the third", "a third strand"]
        lines.write_text("".join(json.dumps({"id": 7, "story": word}) + "\n" for word in words))
        text.write_text("of the strand")
        done = self.train("--vocab", 270, "--out", self.path / "lined", "--text-field", "story", lines, text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(" pieces of 4 documents\n", done.stdout)
        whole = [self.path / f"{number}.txt" for number in range(len(words))]
        for file, word in zip(whole, words):
            file.write_text(word)
        self.assertEqual(self.train("--vocab", 270, "--out", self.path / "whole", text, *whole).returncode, 0)
        self.assertEqual((self.path / "lined/tokenizer.json").read_text(), (self.path / "whole/tokenizer.json").read_text())

        done = self.train("--vocab", 270, "--out", self.path / "bad", lines)
        self.assertEqual((done.returncode, done.stderr.splitlines()[0]),
                         (2, f'{lines}:1: must be a JSON object with a string "text"'))
        self.assertIn("braid data prepare, train-bpe and train-wordpiece pass over such lines with --skip-bad-lines, and count them", done.stderr)
        self.assertFalse((self.path / "bad").exists())
        done = self.train("--vocab", 270, "--out", self.path / "good", "--skip-bad-lines", lines, text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(" pieces of 1 document\n", done.stdout)
        self.assertIn("skipped 3 bad lines\n", done.stdout)
        self.assertIn("--text-field: must not be empty", self.train("--text-field", "", text).stderr)

    def test_what_the_system_refuses_is_no_mistake_of_braid(self):
        (self.path / "loop").symlink_to("loop")
        long_name = self.path / ("n" * 300)
        for words in [["--out", self.path / "tok", self.path / "loop"], ["--out", self.path / "tok", long_name],
                      ["--out", self.path / "loop", TEXT], ["--out", long_name, TEXT], ["--out", TEXT, TEXT]]:
            done = self.train("--vocab", 300, *words)
            self.assertIn(done.returncode, (2, 3), (words, done.stderr))
            self.assertNotIn("internal error", done.stderr)

    def test_subcommands(self):
        self.assertIn("train-bpe", braid("data", "--help").stdout)
        done = braid("data", "train-bp")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nearest valid is train-bpe", done.stderr)
        self.assertEqual(braid("data").returncode, 2)


if __name__ == "__main__":
    unittest.main()
