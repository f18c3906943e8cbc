"""Where braid writes: never through a link that somebody planted, never half a file, never raw control characters on a
terminal; and what a refused run leaves."""
import os
import pty
import resource
import subprocess
import unittest

from braid_binary import BINARY
from tiny_run import TinyRun, TrainedRun

PRECIOUS = "precious\n"


class Planted(TinyRun):
    def plant(self, *names):
        (self.path / "precious").write_text(PRECIOUS)
        for name in names:
            place = self.path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(self.path / "precious")

    def expect_replaced(self, *names):
        self.assertEqual((self.path / "precious").read_text(), PRECIOUS)
        for name in names:
            self.assertFalse((self.path / name).is_symlink(), name)
            self.assertNotEqual((self.path / name).read_text(), PRECIOUS, name)

    def test_files_of_a_run_replace_links(self):
        names = [f"run/{name}" for name in ("timeline.svg", "trace.json", "sample.txt", "config.toml", "config.toml.tmp",
                                            "report.html")]
        self.plant(*names)
        self.trained('train.sample_prompt="the"', "train.sample_tokens=4")
        done = self.braid("report", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect_replaced(*[name for name in names if not name.endswith(".tmp")])

    def test_nothing_is_appended_through_a_link(self):
        self.plant("run/metrics.jsonl")
        done = self.braid("train", "run.toml", "train.overwrite=true", "train.resume=latest")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual((self.path / "precious").read_text(), PRECIOUS)
        (self.path / "elsewhere").mkdir()
        (self.path / "other").mkdir()
        (self.path / "other/tensorboard").symlink_to(self.path / "elsewhere")
        done = self.braid("train", "run.toml", "train.out=other")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(os.listdir(self.path / "elsewhere"), [])

    def test_the_runs_folder_may_be_a_link(self):
        (self.path / "disk").mkdir()
        (self.path / "run").symlink_to(self.path / "disk")
        self.trained()
        self.assertTrue((self.path / "disk/timeline.svg").is_file())

    def test_named_files_replace_links_and_standard_output_is_written(self):
        self.plant("a.svg", "a.json")
        words = ["simulate", "--schedule", "gpipe", "--ranks", "2", "--microbatches", "4"]
        done = self.braid(*words, "--svg", "a.svg", "--trace", "a.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect_replaced("a.svg", "a.json")
        self.assertIn("<svg", self.braid(*words, "--svg", "/dev/stdout").stdout)


class Written(TrainedRun):
    def test_a_full_disk_leaves_the_old_report(self):
        self.assertEqual(self.braid("report", "run").returncode, 0)
        before = (self.path / "run/report.html").read_bytes()
        names = sorted(os.listdir(self.path / "run"))
        for words in ([], ["--out", "run/report.html"]):
            done = subprocess.run([BINARY, "report", "run", *words], cwd=self.path, capture_output=True, text=True,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("report.html", done.stderr)
            self.assertEqual((self.path / "run/report.html").read_bytes(), before)
            self.assertEqual(sorted(os.listdir(self.path / "run")), names)

    def on_terminal(self, *words):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([BINARY, *words], cwd=self.path, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # how a terminal says that nobody writes to it any more
            pass
        os.close(ours)
        self.assertEqual(process.wait(), 0, shown)
        return shown

    def test_samples_and_names_are_escaped_on_a_terminal(self):
        checkpoint = f"run/{self.checkpoints()[-1]}"
        words = ["sample", checkpoint, "--prompt", "a\x1b[31mb\tc", "--tokens", "1", "--greedy"]
        self.assertIn(b"a\\x1b[31mb\tc", self.on_terminal(*words))
        self.assertIn("a\x1b[31mb\tc", self.braid(*words).stdout)
        os.rename(self.path / "run", self.path / "r\x1b[31m")
        self.assertNotIn("\x1b", self.braid("report", "r\x1b[31m").stdout)

    def test_a_run_in_an_odd_folder_shows_no_control_characters(self):
        done = self.trained("train.out='o\\u001b[31m'".replace("'", '"'), 'train.sample_prompt="the"',
                            "train.sample_tokens=2")
        for line in done.stdout.splitlines():
            if "sample, also in" in line or "drawn in" in line:
                self.assertNotIn("\x1b", line)
                self.assertIn("o\\x1b[31m", line)


class Started(TinyRun):
    def test_closed_descriptors_put_no_console_text_into_files(self):
        for closed in ("<&- >&-", "<&- >&- 2>&-", "2>&-"):
            done = subprocess.run(f'"{BINARY}" train run.toml train.overwrite=true {closed}', shell=True, cwd=self.path,
                                  stdout=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, closed)
            self.assertEqual({line["kind"] for line in self.metrics()} & {"step"}, {"step"})

    def test_a_refused_run_leaves_no_folder(self):
        for words in (["data.paths=[nowhere]"], ["model.context=1000000"], ["train.resume=nowhere"],
                      ["model.vocab=16"], ["train.init=nowhere"]):
            done = self.braid("train", "run.toml", "train.out=deep/er/run", *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertFalse((self.path / "deep").exists(), words)
        (self.path / "deep").mkdir()
        self.assertEqual(self.braid("train", "run.toml", "train.out=deep/run", "data.paths=[nowhere]").returncode, 2)
        self.assertEqual(os.listdir(self.path / "deep"), [])


if __name__ == "__main__":
    unittest.main()
