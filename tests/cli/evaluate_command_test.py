"""braid evaluate as a user calls it: the table, JSON, prepared data, and what it refuses."""
import json
import math
import subprocess
import unittest

from braid_binary import BINARY
from tiny_run import TINY, TrainedRun


class Evaluate(TrainedRun):
    configuration = TINY

    def evaluate(self, *words):
        done = self.braid("evaluate", "run", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def measured(self, *words):
        return json.loads(self.evaluate("--json", *words))

    def refused(self, *words):
        done = self.braid("evaluate", *words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr.splitlines()

    def test_a_table_and_the_same_as_json(self):
        found = self.measured("text/0.txt", "text/1.txt")
        one, two = found["texts"]
        self.assertEqual((one["path"], two["path"]), ("text/0.txt", "text/1.txt"))
        size = (self.path / "text" / "0.txt").stat().st_size
        self.assertEqual((one["tokens"], one["bytes"]), (size, size - 1))  # end-of-text is one, the first byte is none
        self.assertAlmostEqual(one["perplexity"], math.exp(one["loss"]))
        self.assertAlmostEqual(one["nats_per_byte"] * one["bytes"], one["loss"] * one["tokens"])
        total = found["total"]
        self.assertAlmostEqual(total["loss"], (one["loss"] + two["loss"]) / 2)  # of equal length
        table = self.evaluate("text/0.txt", "text/1.txt").splitlines()
        self.assertEqual(table[0].split(), ["text", "tokens", "bytes", "nats/token", "nats/byte", "perplexity"])
        self.assertEqual(table[1].split(), ["text/0.txt", str(size), str(size - 1), f"{one['loss']:.4f}",
                                            f"{one['nats_per_byte']:.4f}", f"{one['perplexity']:.4f}"])
        self.assertEqual([line.split()[0] for line in table[1:]], ["text/0.txt", "text/1.txt", "total"])

    def test_lines_tell_of_progress_where_no_terminal_is(self):
        (self.path / "long.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 200_000)
        process = subprocess.Popen([BINARY, "evaluate", "run", "long.txt", "--stride", "1", "--batch", "1", "--json"],
                                   cwd=self.path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        self.assertRegex(process.stderr.readline(), r"^evaluated \d+\.\d %, loss \d\.\d{4}, \S+ left\n$")

    def test_a_folder_is_its_files(self):
        self.assertEqual(len(self.measured("text", "--include", "[13].txt", "--include", "?.txt")["texts"]), 8)

    def test_windows_overlap_by_the_stride(self):
        apart, overlapping = (self.measured("text/0.txt", *words)["total"] for words in ((), ("--stride", "4")))
        self.assertEqual(overlapping["tokens"], apart["tokens"])
        self.assertNotEqual(overlapping["loss"], apart["loss"])
        self.assertEqual(self.measured("text/0.txt", "--stride", "16")["total"], apart)
        self.assertAlmostEqual(self.measured("text/0.txt", "--batch", "1")["total"]["loss"], apart["loss"], places=5)

    # The tiny run has learned 16 positions.
    def test_the_context_may_be_shorter_and_is_said(self):
        done = self.braid("evaluate", "run", "--json", "--context", "8", "text/0.txt")
        self.assertRegex(done.stderr, "^evaluated with a context of 8 tokens; run.* was trained with 16\n$")
        short, strided = (json.loads(text)["total"] for text in (done.stdout, self.evaluate("--json", "--stride", "8", "text/0.txt")))
        self.assertEqual(short["tokens"], strided["tokens"])
        self.assertNotEqual(short["loss"], strided["loss"])
        self.assertEqual(self.measured("--context", "16", "text/0.txt"), self.measured("text/0.txt"))
        said = self.refused("run", "--context", "17", "--stride", "18", "text/0.txt")
        self.assertIn("--context = 17: must be at most 16: the model of ", said[0])
        self.assertIn("--stride = 18: must be at most 17, --context; nearest valid is 17", said[1])

    def test_rotary_models_take_a_longer_context(self):
        self.assertEqual(self.braid("train", "run.toml", 'model.family="llama"', "train.steps=2", "train.out=rotary").returncode, 0)
        (self.path / "short.txt").write_text("the quick brown")
        found = {}
        for name in ("short.txt", "text/0.txt"):
            for context in ("16", "64"):
                done = self.braid("evaluate", "rotary", "--json", "--context", context, name)
                self.assertEqual(done.returncode, 0, done.stderr)
                found[name, context] = json.loads(done.stdout)["total"]
        self.assertEqual(found["short.txt", "16"], found["short.txt", "64"])
        self.assertEqual(found["text/0.txt", "16"]["tokens"], found["text/0.txt", "64"]["tokens"])
        self.assertNotEqual(found["text/0.txt", "16"]["loss"], found["text/0.txt", "64"]["loss"])

    def test_lines_of_jsonl_are_documents(self):
        (self.path / "d.jsonl").write_text('{"body": "one"}\n{"body": "two"}\n{"text": "three"}\n')
        found = self.measured("d.jsonl", "--text-field", "body", "--skip-bad-lines")["total"]
        self.assertEqual((found["tokens"], found["bytes"]), (7, 5))
        self.assertIn("d.jsonl:3: must be a JSON object", self.refused("run", "d.jsonl", "--text-field", "body")[0])

    def test_held_out_tokens_of_prepared_data_are_what_the_run_measured_on(self):
        done = self.braid("data", "prepare", "--out", "prepared", "text", "--validation-fraction", "0.3")
        self.assertEqual(done.returncode, 0, done.stderr)
        held_out, train = (self.measured("prepared", *words)["texts"][0] for words in ((), ("--part", "train")))
        self.assertEqual((held_out["path"], train["path"]), ("prepared (held out)", "prepared (train)"))
        self.assertGreater(train["tokens"], held_out["tokens"])
        # Every window of what is held out, once.
        windows = held_out["tokens"] // 16
        done = self.braid("train", "run.toml", "data.paths=[\"prepared\"]", "train.out=next", f"train.eval_sequences={windows // 4 * 4}",
                          "data.validation_fraction=0.3")
        self.assertEqual(done.returncode, 0, done.stderr)
        evaluations = [line for line in self.metrics("next") if line["kind"] == "evaluation"]
        measured = json.loads(self.braid("evaluate", "next", "prepared", "--json").stdout)["total"]
        self.assertAlmostEqual(evaluations[-1]["validation_loss"], measured["loss"], delta=0.05)

    def test_ranks_that_are_processes_measure_the_same(self):
        loss = self.measured("text/0.txt")["total"]
        done = self.braid("train", "run.toml", "run.ranks=processes", "train.out=apart")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.braid("evaluate", "apart", "text/0.txt", "--json")
        self.assertAlmostEqual(json.loads(done.stdout)["total"]["loss"], loss["loss"], places=6)

    def test_ranks_share_the_model(self):
        loss = self.measured("text/0.txt")["total"]
        shared = self.measured("mesh.pipe=2", "text/0.txt", "mesh.tensor=2")["total"]
        self.assertEqual((shared["tokens"], shared["bytes"]), (loss["tokens"], loss["bytes"]))
        self.assertAlmostEqual(shared["loss"], loss["loss"], places=5)
        self.assertRegex(self.refused("run", "text", "mesh.tensor=3")[0], "^mesh.tensor = 3: must ")

    def test_all_that_is_wrong_is_said_at_once(self):
        self.assertEqual(self.refused("run", "text", "--stride", "-1", "--batch", "0", "--part", "all"), [
            "--part = all: must be one of held-out, train",
            "--stride = -1: must be a whole number of at least 0; nearest valid is 0",
            "--batch = 0: must be a whole number from 1 to 4096; nearest valid is 1"])
        self.assertEqual(self.refused("run", "nowhere", "text/0.txt", "nothing"),
                         ["PATH = nowhere: does not exist", "PATH = nothing: does not exist"])
        self.assertIn("--stride = 17: must be at most 16, the context of the model of run/step-6", self.refused(
            "run", "text", "--stride", "17")[0])
        self.assertIn("PATH: is needed", self.refused("run")[0])
        self.assertIn('--tokenizer = "nowhere": must be', self.refused("run", "text", "--tokenizer", "nowhere")[0])

    def test_data_of_another_tokenizer_are_refused(self):
        for words in (["train-bpe", "--vocab", "257", "--out", "bpe", "text"],
                      ["prepare", "--out", "prepared", "text", "--tokenizer", "bpe"]):
            done = self.braid("data", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.refused("run", "prepared"),
                         ["PATH = prepared: must be prepared with the tokenizer of run/step-6"])


if __name__ == "__main__":
    unittest.main()
