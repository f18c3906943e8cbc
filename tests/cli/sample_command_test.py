"""braid sample as a user calls it: prompts, choices of tokens, whole characters, and what it refuses."""
import json
import os
import subprocess
import unittest

from braid_binary import BINARY
from tiny_run import TINY, TrainedRun


class Sample(TrainedRun):
    # One step that changes nothing: all bytes are about as likely.
    configuration = (TINY.replace("steps = 6", "steps = 1").replace("lr = 1e-2", "lr = 1e-30") +
                     'sample_prompt = "the \u20ac"\nsample_tokens = 60\n')

    def sample(self, *words, prompt=None):
        """The bytes that are printed."""
        done = subprocess.run([BINARY, "sample", "run", *words], input=prompt, capture_output=True, timeout=60,
                              cwd=self.path)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout

    def refused(self, *words):
        done = self.braid("sample", "run", *words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_no_half_of_a_character_is_printed(self):
        texts = ""
        for seed in range(4):  # most bytes do not go together
            text = self.sample("--tokens", "60", "--temperature", "100", "--seed", str(seed), "--prompt", "\u20ac")
            self.assertTrue(text.decode().startswith("\u20ac"))
            texts += text.decode()
        self.assertIn("\ufffd", texts)

    def test_what_a_run_leaves_has_whole_characters(self):
        text = (self.path / "run" / "sample.txt").read_bytes().decode()
        self.assertTrue(text.startswith("the \u20ac"), text)

    def test_a_prompt_from_standard_input_is_taken_as_it_is(self):
        words = ["--tokens", "5", "--temperature", "0"]
        given = self.sample("--prompt", "the quick\n", *words)
        self.assertTrue(given.startswith(b"the quick\n"))
        self.assertEqual(self.sample("--prompt", "-", *words, prompt=b"the quick\n"), given)
        alone = self.sample(*words, prompt=b"")
        self.assertEqual(self.sample(*words, prompt=b"the quick\n"), alone)  # read where it is asked for

    def test_standard_input_that_cannot_be_read_is_no_prompt(self):
        folder = os.open(self.path / "text", os.O_RDONLY)
        self.addCleanup(os.close, folder)
        done = subprocess.run([BINARY, "sample", "run", "--prompt", "-"], stdin=folder, capture_output=True, timeout=60,
                              text=True, cwd=self.path)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (3, "", "braid: standard input: cannot be read: Is a directory\n"))

    def test_top_p_of_almost_nothing_is_the_likeliest_token(self):
        greedy = self.sample("--tokens", "12", "--temperature", "0")
        self.assertEqual(self.sample("--tokens", "12", "--top-p", "1e-9"), greedy)
        self.assertEqual(self.sample("--tokens", "12", "--top-p", "1"), self.sample("--tokens", "12"))

    def test_options_out_of_their_range_are_named_all_at_once(self):
        said = self.refused("--temperature", "nan", "--tokens", "0", "--top-k", "-1", "--top-p", "1.5", "--seed", "-1",
                            "--threads", "1000", "--temprature=1", "--num-samples", "0", "--batch", "5000", "--stop",
                            "", "--dtype", "int8")
        self.assertEqual(said.splitlines(), [
            "--temprature: is not an option of braid sample; nearest valid is --temperature",
            "--num-samples = 0: must be a whole number of at least 1; nearest valid is 1",
            "--tokens = 0: must be a whole number of at least 1; nearest valid is 1",
            "--stop: must not be empty",
            "--temperature = nan: must be a finite number of at least 0",
            "--top-k = -1: must be a whole number of at least 0; nearest valid is 0",
            "--top-p = 1.5: must be a number above 0 and at most 1; nearest valid is 1",
            "--seed = -1: must be a whole number from 0 to 18446744073709551615",
            "--batch = 5000: must be a whole number from 1 to 4096; nearest valid is 4096",
            "--threads = 1000: must be a whole number from 0 to 256; nearest valid is 256",
            "--dtype = int8: must be one of float32, bfloat16"])
        for temperature, top_p, seed in (("inf", "0", "18446744073709551616"), ("-inf", "nan", "0x1"),
                                         ("-0.5", "-1", "1e3"), ("warm", "2", "-1"), ("1e999", "one", "1.5"),
                                         ("", "inf", "one")):
            said = self.refused("--temperature", temperature, "--top-p", top_p, "--seed", seed)
            self.assertIn(f"--temperature{' = ' + temperature if temperature else ''}: must be", said)
            self.assertIn(f"--top-p = {top_p}: must be", said)
            self.assertIn(f"--seed = {seed}: must be a whole number from 0 to 18446744073709551615\n", said)
        self.assertEqual(self.refused("--seed", "1", "--top-k", "3", "--seed", "2", "--top-k", "4").splitlines(),
                         ["--top-k: must be given once, and is given 2 times: 3 and 4",
                          "--seed: must be given once, and is given 2 times: 1 and 2"])
        self.assertEqual(self.refused("--tokens", "3", "--tokens", "0"),
                         "--tokens: must be given once, and is given 2 times: 3 and 0\n")

    def lines(self, *words):
        return [json.loads(line) for line in self.sample("--json", *words).decode().splitlines()]

    def test_a_stop_word_ends_the_text(self):
        words = ["--tokens", "40", "--temperature", "5"]
        text = self.sample(*words).decode()
        whole = self.lines(*words)[0]
        self.assertEqual((whole["reason"], len(whole["tokens"])), ("length", 40))
        stop = whole["text"].replace("\ufffd", "")[5:7]
        cut = self.lines(*words, "--stop", stop, "--stop", "never met")[0]
        self.assertEqual((cut["reason"], cut["text"]), ("stop", whole["text"].partition(stop)[0]))
        self.assertEqual(self.sample(*words, "--stop", stop).decode(), cut["text"] + "\n")
        self.assertEqual(self.sample(*words, "--stop", "never met").decode(), text)

    def test_greedy_is_temperature_0(self):
        self.assertEqual(self.sample("--tokens", "8", "--greedy"), self.sample("--tokens", "8", "--temperature", "0"))
        self.assertEqual(self.refused("--greedy", "--temperature", "1"),
                         "--temperature = 1: must be left out beside --greedy\n")

    def test_several_prompts_and_samples(self):
        (self.path / "prompts.txt").write_text("one\n\ntwo\r\n")
        (self.path / "prompts.jsonl").write_text('{"prompt": "a\\nb \u20ac"}\n')
        words = ["--tokens", "6", "--num-samples", "2"]
        found = self.lines(*words, "--prompt", "zero", "--prompts", "prompts.txt", "--batch", "3")
        self.assertEqual({(line["prompt"], line["prompt_index"], line["sample"]) for line in found},
                         {(prompt, i, sample) for i, prompt in enumerate(("zero", "one", "two")) for sample in (0, 1)})
        for line in found:
            self.assertLess(line["logprob"], 0)
        again = self.lines(*words, "--prompt", "zero", "--prompt", "one", "--batch", "1")
        by_place = {(line["prompt_index"], line["sample"]): line for line in found}
        for line in again:
            self.assertEqual(by_place[line["prompt_index"], line["sample"]]["tokens"], line["tokens"])
        self.assertEqual(self.lines("--tokens", "1", "--prompts", "prompts.jsonl")[0]["prompt"], "a\nb \u20ac")
        shown = self.sample(*words, "--prompt", "zero", "--prompt", "one").decode()
        for i in (1, 2):
            self.assertIn(f"=== prompt {i} of 2, sample 2 of 2 (", shown)
        self.assertIn("\nzero", shown)

    def test_a_file_of_prompts_has_a_limit(self):
        with open(self.path / "large", "wb") as file:
            file.truncate(1 << 30)
        self.assertEqual(self.refused("--prompts", "large"), "--prompts = large: cannot be read (large: at byte 268435456: "
                         "has 1073741824 bytes; at most 268435456 are read)\n")

    def test_prompts_that_are_none_are_named_all_at_once(self):
        (self.path / "bad.jsonl").write_text('{"prompt": "good"}\n{"text": "x"}\n[1]\n')
        (self.path / "empty.txt").write_text("\n")
        rule = "must be a JSON object with a string \"prompt\""
        self.assertEqual(self.refused("--prompts", "bad.jsonl").splitlines(),
                         [f"bad.jsonl:2: {rule}", f"bad.jsonl:3: {rule}"])
        self.assertEqual(self.refused("--prompts", "nowhere", "--prompt", "-", "--prompt", "-").splitlines(),
                         ["--prompt = -: must be given once: standard input is read to its end",
                          "--prompts = nowhere: does not exist"])
        self.assertEqual(self.refused("--prompts", "empty.txt"), "--prompts = empty.txt: has no line with a prompt\n")

    def test_speed_is_told_on_standard_error(self):
        done = self.braid("sample", "run", "--tokens", "5", "--temperature", "9", "--speed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^read 1 token, [\d.]+ tokens/s; then took [0-4] one by one, [\d.-]+ tokens/s\n$")

    def test_ranks_that_are_processes_give_the_same_text(self):
        words = ["--tokens", "12", "--prompt", "ab", "--prompt", "c"]
        given, one = self.lines(*words), self.sample("--tokens", "12", "--prompt", "ab")
        done = self.braid("train", "run.toml", "run.ranks=processes", "train.out=apart")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.braid("sample", "apart", "--json", "--speed", *words)
        self.assertEqual(([json.loads(line)["tokens"] for line in done.stdout.splitlines()], done.returncode),
                         ([line["tokens"] for line in given], 0), done.stderr)
        self.assertRegex(done.stderr, "^read 3 tokens")
        done = subprocess.run([BINARY, "sample", "apart", "--tokens", "12", "--prompt", "ab"], capture_output=True,
                              timeout=60, cwd=self.path)
        self.assertEqual(done.stdout, one)

    def test_ranks_share_the_model(self):
        words = ["--tokens", "12", "--prompt", "ab", "--greedy"]
        one = self.sample(*words)
        self.assertEqual(self.sample(*words, "mesh.pipe=2", "mesh.tensor=2"), one)
        done = self.braid("train", "run.toml", "run.ranks=processes", "train.out=apart")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([BINARY, "sample", "apart", *words, "mesh.tensor=2"], capture_output=True, timeout=60,
                              cwd=self.path)
        self.assertEqual((done.stdout, done.returncode), (one, 0), done.stderr)

    def test_ranks_that_cannot_share_the_model_are_named(self):
        self.assertEqual(self.refused("mesh.pipe=0", "mesh.tp=2", "train.steps=5").splitlines(), [
            "mesh.pipe = 0: must be a whole number from 1 to 1024; nearest valid is 1",
            "mesh.tp = 2: is not a key of this command, which has mesh.pipe and mesh.tensor; nearest valid is mesh.tensor",
            "train.steps = 5: is not a key of this command, which has mesh.pipe and mesh.tensor"])
        self.assertEqual(self.refused("text"), "text: must be mesh.pipe=N or mesh.tensor=N\n")
        self.assertRegex(self.refused("mesh.tensor=3"), "^mesh.tensor = 3: must ")

    def test_another_type(self):
        self.assertEqual(len(self.lines("--tokens", "4", "--dtype", "bfloat16", "--temperature", "9")), 1)

    def test_prepared_data_are_no_checkpoint(self):
        done = self.braid("data", "prepare", "--out", "prepared", "text")
        self.assertEqual(done.returncode, 0, done.stderr)
        rule = "must be a checkpoint or a run's folder; prepared holds prepared data (braid data prepare), which data.paths takes\n"
        for words, said in ((["sample", "prepared"], f"CHECKPOINT = prepared: {rule}"),
                            (["train", "run.toml", "train.resume=prepared", "train.out=next"],
                             f'train.resume = "prepared": {rule}')):
            done = self.braid(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", said))

    def test_another_tokenizer_must_be_one_and_fit_the_model(self):
        self.assertEqual(self.sample("--tokens", "8", "--tokenizer", "bytes"), self.sample("--tokens", "8"))
        self.assertIn('--tokenizer = "nowhere": must be', self.refused("--tokenizer", "nowhere"))
        done = self.braid("data", "train-bpe", "--vocab", "260", "--out", "large", "text")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--tokenizer = large: must have at most 257 tokens", self.refused("--tokenizer", "large"))


if __name__ == "__main__":
    unittest.main()
