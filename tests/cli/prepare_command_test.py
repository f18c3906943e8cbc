"""braid data prepare and inspect as a user calls them, and training on what they leave."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from braid_binary import BINARY, braid

GOLDEN_TOKENIZER = pathlib.Path(__file__).resolve().parent.parent / "tokenize/data/bpe.json"
RUN = """
[model]
layers = 1
heads = 2
width = 16
context = 16
[data]
paths = ["out"]
[train]
steps = 4
batch = 4
microbatch = 2
out = "run"
"""


class Prepare(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        (self.path / "text").mkdir()
        for number in range(20):
            (self.path / "text" / f"{number:02}.txt").write_text(f"the quick brown fox {number} jumps\n" * (20 + number))
        with open(self.path / "lines.jsonl", "w") as file:
            for number in range(300):
                file.write(json.dumps({"id": number, "text": f"tale {number} of a lazy dog \u00e9\n" * 10}) + "\n")

    def braid(self, *words):
        return braid(*words, cwd=self.path)

    def prepare(self, *words):
        return self.braid("data", "prepare", "--out", "out", *words)

    def contents(self, folder="out"):
        return {str(path.relative_to(self.path / folder)): path.read_bytes()
                for path in (self.path / folder).rglob("*") if path.is_file()}

    def test_it_says_what_it_made_and_inspect_agrees(self):
        done = self.prepare("text", "lines.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("out: 320 documents, ", done.stdout)
        self.assertIn("MB/s", done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        seen = self.braid("data", "inspect", "out")
        self.assertEqual(seen.returncode, 0, seen.stderr)
        self.assertIn("source0-train-00000.tokens", seen.stdout)
        self.assertIn("320 documents", seen.stdout)

    def test_killed_again_and_again_it_ends_in_the_same_bytes(self):
        words = ["--shard-tokens", "2000", "--weight", "1", "--weight", "2.5", "text", "lines.jsonl"]
        self.assertEqual(self.prepare(*words).returncode, 0)
        wanted = self.contents()
        (self.path / "out").rename(self.path / "whole")
        dice, kills = random.Random(1), 0
        for attempt in range(100):
            process = subprocess.Popen([BINARY, "data", "prepare", "--out", "out", *words], cwd=self.path,
                                       stdout=subprocess.DEVNULL)
            # Killed once it has one more file than the last time.
            while process.poll() is None and len(list((self.path / "out").glob("*"))) <= attempt:
                time.sleep(0.0005)
            time.sleep(dice.uniform(0, 0.002))
            process.kill()
            if process.wait() == 0:
                break
            kills += 1
        else:
            self.fail("it makes no way")
        self.assertGreater(kills, 0)
        self.assertEqual(self.contents(), wanted)

    def test_bad_input_is_named_all_at_once_and_nothing_is_written(self):
        done = self.prepare("nowhere", "text", "--tokenizer", "none.json", "--shard-tokens", "0", "--weight", "1")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        for word in ["nowhere", "none.json", "--shard-tokens", "--weight"]:
            self.assertIn(word, done.stderr)
        self.assertFalse((self.path / "out").exists())
        self.assertEqual(self.braid("data", "inspect", "text").returncode, 2)
        self.assertEqual(self.braid("data", "prepare", "text").returncode, 2)

    def test_what_is_finished_says_so_and_what_is_stopped_says_how_to_go_on(self):
        self.assertEqual(self.prepare("text").returncode, 0)
        before = self.contents()
        again = self.prepare("text")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("out is finished already: nothing was left to do (braid data inspect verifies it)\n", again.stdout)
        self.assertIn("out: 20 documents, ", again.stdout)
        self.assertEqual(self.contents(), before)
        changed = self.path / "text" / "07.txt"
        was = changed.read_bytes()
        changed.write_bytes(was.upper())
        os.utime(changed, (1, 1))
        again = self.prepare("text")
        self.assertEqual(again.returncode, 2, again.stdout)
        self.assertIn("INPUT = text/07.txt: was changed after out was begun\n", again.stderr)

        with open(self.path / "many.jsonl", "w") as file:
            for number in range(40000):
                file.write(json.dumps({"text": f"tale {number} of a lazy dog"}) + "\n")
        words = ["data", "prepare", "--out", "stopped one", "--shard-tokens", "2000", "many.jsonl"]
        for signal_, name in [(signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM")]:
            process = subprocess.Popen([BINARY, *words], cwd=self.path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       text=True)
            while not (self.path / "stopped one" / "progress.json").exists():
                self.assertIsNone(process.poll())
            process.send_signal(signal_)
            said = process.communicate()[1]
            self.assertEqual(process.returncode, 128 + signal_, said)
            self.assertIn(f"stopped; to continue: {BINARY} data prepare --out 'stopped one' --shard-tokens 2000 many.jsonl", said)
            shutil.rmtree(self.path / "stopped one")

    def test_the_command_that_goes_on_can_be_pasted_whatever_is_in_it(self):
        with open(self.path / "many.jsonl", "w") as file:
            for number in range(40000):
                file.write(json.dumps({"text": f"tale {number} of a lazy dog"}) + "\n")
        name = b"it's\x1b[31m \\ odd\n\xff1\xc2\x9b \xc3\xa9"
        out = os.path.join(os.fsencode(self.path), name)
        process = subprocess.Popen([BINARY, "data", "prepare", "--shard-tokens", "2000", "many.jsonl", "--out", name],
                                   cwd=self.path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not os.path.exists(out + b"/progress.json"):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        said = process.communicate()[1].decode()  # UTF-8 all of it
        command = said.strip().removeprefix("stopped; to continue: ")
        self.assertTrue(command.isprintable(), repr(command))
        self.assertTrue(command.endswith(r"--out $'it\'s\033[31m \\ odd\012\3771\302\233 é'"), command)
        again = subprocess.run(["bash", "-c", command], cwd=self.path, capture_output=True)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertTrue(os.path.exists(out + b"/manifest.json"))

    def test_bad_lines_are_named_or_skipped_and_counted(self):
        (self.path / "bad.jsonl").write_text('{"text": "good"}\n{"text": tru}\n[]\n{"text": "good"}\n'
                                             '{"text": "one", "text": "or"}\n')
        done = self.prepare("bad.jsonl")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.splitlines(), [
            "bad.jsonl:2: is not JSON: invalid literal",
            'bad.jsonl:3: must be a JSON object with a string "text"',
            'bad.jsonl:5: has the key "text" twice in one object',
            "braid data prepare, train-bpe and train-wordpiece pass over such lines with --skip-bad-lines, and count them"])
        done = self.prepare("bad.jsonl", "--skip-bad-lines")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("skipped 3 bad lines\n", done.stdout)
        self.assertIn("skipped 3 bad lines\n", self.prepare("bad.jsonl", "--skip-bad-lines").stdout)
        self.assertIn("--skip-bad-lines: must be given as when out was begun", self.prepare("bad.jsonl").stderr)

    def test_hidden_and_binary_files_are_passed_over_and_named(self):
        (self.path / "text" / ".hidden").write_text("secret")
        (self.path / "text" / "picture.png").write_bytes(b"\x89PNG\0")
        done = self.prepare("text")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("out: 20 documents, ", done.stdout)
        self.assertIn("passed over in folders: 1 binary (text/picture.png), 1 hidden (text/.hidden)\n", done.stdout)

    def test_a_bad_line_of_a_folder_is_named_or_skipped(self):
        (self.path / "shards").mkdir()
        (self.path / "shards" / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
        (self.path / "shards" / "b.jsonl").write_bytes(b'{"text": "three"}\n{"text": "fo\xffr"}\n{"text": "five"}\n')
        done = self.prepare("shards")
        self.assertEqual(done.returncode, 2)
        self.assertIn("shards/b.jsonl:2: is not JSON", done.stderr)
        done = self.prepare("shards", "--skip-bad-lines")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("out: 4 documents, ", done.stdout)
        self.assertIn("skipped 1 bad line\n", done.stdout)

    def test_files_in_other_formats_are_refused_with_a_way_to_give_them(self):
        (self.path / "array.json").write_text('[{"text": "first"}, {"text": "second"}]')
        (self.path / "wide.txt").write_bytes("some text".encode("utf-16"))
        done = self.prepare("array.json", "wide.txt")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.splitlines(), [
            "INPUT = array.json: is a JSON array: give its elements as a .jsonl file, one JSON object per line "
            "(`jq -c '.[]'` writes them)",
            "INPUT = wide.txt: is UTF-16: give the output of `iconv -f UTF-16 -t UTF-8`"])
        (self.path / "lines.json").write_text('{"text": "first"}\n{"text": "second"}\n')
        done = self.prepare("lines.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("out: 2 documents, ", done.stdout)

    def test_what_the_system_refuses_is_no_mistake_of_braid(self):
        (self.path / "loop").symlink_to("loop")
        os.mkfifo(self.path / "pipe")
        (self.path / "tokenizer").mkdir()
        (self.path / "tokenizer" / "vocab.json").symlink_to("vocab.json")
        long_name = "n" * 300
        for words in [["loop"], [long_name], ["pipe"], ["text", "--tokenizer", "loop"], ["text", "--tokenizer", long_name],
                      ["text", "--tokenizer", "/dev/zero"], ["text", "--tokenizer", "pipe"],
                      ["text", "--tokenizer", "tokenizer"], ["text", "--out", "loop"], ["text", "--out", long_name],
                      ["text", "--out", "lines.jsonl"], ["text", "--out", "loop/below"]]:
            out = [] if "--out" in words else ["--out", "out"]
            done = self.braid("data", "prepare", *out, *words)
            self.assertIn(done.returncode, (2, 3), (words, done.stderr))
            self.assertNotIn("internal error", done.stderr)
            self.assertIn(words[-1], done.stderr)
        for words in [["inspect", "loop"], ["inspect", long_name]]:
            done = self.braid("data", *words)
            self.assertIn(done.returncode, (2, 3), (words, done.stderr))

    def test_damage_is_found_and_named(self):
        self.assertEqual(self.prepare("text").returncode, 0)
        victim = self.path / "out" / "source0-train-00000.tokens"
        bytes_ = bytearray(victim.read_bytes())
        bytes_[5000] ^= 1
        victim.write_bytes(bytes_)
        done = self.braid("data", "inspect", "out")
        self.assertEqual(done.returncode, 3)
        self.assertIn("source0-train-00000.tokens", done.stderr)
        self.assertIn("4096", done.stderr)

    def test_a_tokenizer_that_is_another_one_is_found(self):
        tokenizer = self.path / "bpe.json"
        shutil.copy(GOLDEN_TOKENIZER, tokenizer)
        self.assertEqual(self.prepare("--tokenizer", str(tokenizer), "text").returncode, 0)
        self.assertEqual(self.braid("data", "inspect", "out").returncode, 0)
        copy = self.path / "out" / "tokenizer" / "tokenizer.json"
        copy.write_text(copy.read_text() + "\n")
        for damage in [lambda: None, copy.unlink]:
            damage()
            done = self.braid("data", "inspect", "out")
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertIn("tokenizer  DAMAGED", done.stdout)
            self.assertIn("tokenizer", done.stderr)

    def test_training_on_it_is_training_on_the_text(self):
        if "train" not in braid("--help").stdout.split():
            self.skipTest("a build without LibTorch does not train")
        (self.path / "run.toml").write_text(RUN)
        self.assertEqual(self.prepare("text").returncode, 0)
        streams = []
        for paths in ["out", "text"]:
            done = self.braid("train", "run.toml", f"data.paths=[{paths}]", f"train.out=run_{paths}")
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = (self.path / f"run_{paths}" / "metrics.jsonl").read_text().splitlines()
            steps = [json.loads(line) for line in lines]
            streams.append([(line["sample_hash"], line["loss"]) for line in steps if line["kind"] == "step"])
        self.assertEqual(len(streams[0]), 4)
        self.assertEqual(streams[0], streams[1])
        for words, said in [(['data.paths=["out", "text"]'], "must be prepared data like the others"),
                            (['data.paths=["text"]', "data.weights=[2.0]"], "data.weights"),
                            (['data.include=["*.txt"]'], "data.include"),
                            (["data.validation_fraction=0.3"], "data.validation_fraction")]:
            done = self.braid("train", "run.toml", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr)
        for out, words in [("weighted", ["data.weights=[1.0, 3.0]", 'data.paths=["out", "out"]']),
                           ("document", ['data.attention="document"'])]:
            done = self.braid("train", "run.toml", f"train.out={out}", *words)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
