"""Where braid writes: never through a link that somebody planted, never half a file, never raw control characters on a
terminal; and what a refused run leaves."""
import os
import pty
import re
import resource
import shlex
import subprocess
import unittest

from braid_binary import BINARY
from tiny_run import TinyRun, TrainedRun

PRECIOUS = "precious\n"
CLUSTER = """nodes = 1
[[devices]]
per_node = 2
memory_gib = 16
memory_gbps = 10
peak_tflops = { float32 = 1 }
[node]
link_gbps = 1
latency_us = 10
"""
SIMULATED = ["simulate", "--schedule", "gpipe", "--ranks", "2", "--microbatches", "4"]


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

    def test_a_drawing_does_not_replace_its_schedule(self):
        table = self.path / "table.csv"
        table.write_text(self.braid("simulate", "--schedule", "1f1b", "--ranks", "2", "--microbatches", "2", "--csv").stdout)
        before = table.read_text()
        for option in ("--svg", "--trace"):
            done = self.braid("simulate", "--schedule", "file:table.csv", option, "./table.csv")
            self.assertEqual((done.returncode, done.stderr), (
                2, f"{option} = ./table.csv: must not replace the schedule that --schedule names\n"))
        self.assertEqual(table.read_text(), before)

    def test_a_run_does_not_write_into_its_data(self):
        before = sorted(os.listdir(self.path / "text"))
        for out in ("text", "text/run"):
            told = self.refused(f"train.out={out}")
            self.assertEqual(told, f'train.out = "{out}": must not lie in a folder of data.paths (text): the run\'s files would '
                                   "become documents\n")
        self.assertEqual(sorted(os.listdir(self.path / "text")), before)
        self.trained("train.out=text/run", 'data.include=["?.txt"]')

    def test_nothing_is_appended_through_a_link(self):
        self.plant("run/metrics.jsonl")
        (self.path / "elsewhere").mkdir()
        (self.path / "run/tensorboard").symlink_to(self.path / "elsewhere")
        (self.path / "run/timeline.svg").mkdir()
        (self.path / "run/step-6").mkdir()
        (self.path / "run/step-6/notes.txt").write_text("mine")
        before = sorted(os.listdir(self.path / "run"))
        for words in ([], ["train.overwrite=true"], ["train.overwrite=true", "train.resume=latest"]):
            told = self.refused(*words)
            if not words[1:]:
                for what in ("run/tensorboard must be a folder and no link", "run/timeline.svg must not be a folder",
                             "run/metrics.jsonl must be a regular file and no link",
                             "run/step-6 is no checkpoint"):
                    self.assertIn(what, told)
            self.assertEqual(sorted(os.listdir(self.path / "run")), before)
        self.assertEqual((self.path / "precious").read_text(), PRECIOUS)
        self.assertEqual(os.listdir(self.path / "elsewhere"), [])

    def refused(self, *words):
        done = self.braid("train", "run.toml", *words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_links_to_nothing_and_pipes_are_no_folder_and_no_lock(self):
        (self.path / "link").symlink_to("nowhere")
        self.assertIn("must be a folder, and is a link to nowhere, where there is nothing", self.refused("train.out=link"))
        for kind, plant in (("a link", lambda lock: lock.symlink_to("nowhere")), ("a pipe or device", os.mkfifo),
                            ("a folder", os.mkdir)):
            run = self.path / kind.replace(" ", "_")
            run.mkdir()
            plant(run / "run.lock")
            self.assertIn(f"run.lock: is {kind}, not a regular file", self.refused(f"train.out={run.name}"))
            self.assertEqual(os.listdir(run), ["run.lock"])

    def test_the_runs_folder_may_be_a_link(self):
        (self.path / "disk").mkdir()
        (self.path / "run").symlink_to(self.path / "disk")
        self.trained()
        self.assertTrue((self.path / "disk/timeline.svg").is_file())

    def test_named_files_replace_links_and_standard_output_is_written(self):
        self.plant("a.svg", "a.json")
        done = self.braid(*SIMULATED, "--svg", "a.svg", "--trace", "a.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect_replaced("a.svg", "a.json")
        self.assertIn("<svg", self.braid(*SIMULATED, "--svg", "/dev/stdout").stdout)


class Written(TrainedRun):
    def test_a_report_replaces_no_file_of_its_run(self):
        checkpoint = f"run/{self.checkpoints()[-1]}"
        for name in ("run/metrics.jsonl", "run/config.toml", f"{checkpoint}/model.safetensors"):
            before = (self.path / name).read_bytes()
            done = self.braid("report", "run", "--out", name)
            self.assertEqual((done.returncode, done.stderr), (2, f"--out = {name}: must not replace a file of the run\n"))
            self.assertEqual((self.path / name).read_bytes(), before)
        for name in ("run/page.html", "run/page.html"):
            self.assertEqual(self.braid("report", "run", "--out", name).returncode, 0)

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

    def test_lost_output_is_an_error(self):
        checkpoint = f"run/{self.checkpoints()[-1]}"
        for words, places in ((["config"], [">&-", ">/dev/full"]), (["help", "train"], [">&-"]), (["token"], [">&-"]),
                              (SIMULATED, [">&-"]), (["ckpt", "inspect", checkpoint], [">&-"]),
                              (["ckpt", "diff", checkpoint, "run/step-3"], [">/dev/full"]),
                              (["sample", "run", "--tokens", "1"], [">&-", ">/dev/full"]), (["report", "run"], [">&-"])):
            for place in places:
                done = subprocess.run(f'"{BINARY}" {shlex.join(words)} {place}', shell=True, cwd=self.path,
                                      capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr),
                                 (3, "braid: standard output: cannot be written\n"), (words, place))

    def test_a_dash_is_no_file_to_write(self):
        for words in (["report", "run", "--out"], [*SIMULATED, "--svg"], [*SIMULATED, "--trace"], ["token", "--out"],
                      ["doctor", "--cluster"], ["bench", "scaling", "run.toml", "--svg"], ["plan", "run.toml", "--fixed", "--svg"],
                      ["data", "train-bpe", "text", "--vocab", "300", "--out"], ["data", "prepare", "text", "--out"]):
            done = self.braid(*words, "-")
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertEqual(done.stderr, f"{words[-1]} = -: must name a file or folder; ./- names one that is called so\n")
            self.assertFalse((self.path / "-").exists())
        self.assertTrue(self.braid("report", "run", "--out", "/dev/stdout").stdout.endswith("</html>\n"))

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
        done = self.braid("report", "r\x1b[31m")
        self.assertEqual((done.returncode, done.stdout), (0, "r\\x1b[31m/report.html\n"), done.stderr)

    def test_a_run_in_an_odd_folder_shows_no_control_characters(self):
        done = self.trained("train.out='o\\u001b[31m'".replace("'", '"'), 'train.sample_prompt="the"',
                            "train.sample_tokens=2")
        lines = [line for line in done.stdout.splitlines() if "sample, also in" in line or "drawn in" in line]
        self.assertEqual(len(lines), 2, done.stdout)
        for line in lines:
            self.assertNotIn("\x1b", line)
            self.assertIn("o\\x1b[31m", line)


class Piped(TrainedRun):
    def in_bash(self, words):
        return subprocess.run(["bash", "-c", f'"{BINARY}" {words}'], cwd=self.path, capture_output=True, text=True, timeout=120)

    def same(self, with_files, with_pipes):
        of_files, of_pipes = self.in_bash(with_files), self.in_bash(with_pipes)
        self.assertEqual((of_files.returncode, of_files.stderr), (0, ""), with_files)
        self.assertEqual((of_pipes.returncode, of_pipes.stderr), (0, ""), with_pipes)
        self.assertTrue(of_files.stdout)
        varied = r"/dev/fd/\d+|/dev/stdin|\b(table\.csv|run\.toml|cluster\.toml)\b|in \S+ m?s\b"
        self.assertEqual(re.sub(varied, "", of_files.stdout), re.sub(varied, "", of_pipes.stdout))

    def test_what_is_named_and_read_once_may_be_a_pipe(self):
        (self.path / "prompts").write_text("the\nquick\n")
        (self.path / "times").write_text("2 1 1\n1 3 0\n")
        (self.path / "cluster.toml").write_text(CLUSTER)
        (self.path / "table.csv").write_text(self.braid(*SIMULATED, "--csv").stdout)
        for words, names in (("sample run --tokens 2 --greedy --prompts prompts", ["prompts"]),
                             ("simulate --schedule file:table.csv --stage-times times --json", ["table.csv", "times"]),
                             ("plan run.toml --cluster cluster.toml --fixed", ["run.toml", "cluster.toml"])):
            piped = words
            for name in names:
                piped = piped.replace(f" {name}", f" <(cat {name})").replace(f":{name}", f":<(cat {name})")
            self.same(words, piped)
        words = " ".join(SIMULATED)
        self.same(f"{words} --stage-times times", f"{words} --stage-times /dev/stdin < <(cat times)")

    def test_a_run_is_read_from_a_pipe_and_its_tables_are_not(self):
        done = self.in_bash("train <(cat run.toml) train.out=piped")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.losses("piped"), self.losses())
        done = self.in_bash('train run.toml train.out=other mesh.pipe=2 "pipeline.schedule=file:"<(echo 0F0,0B0)')
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("must name a regular file: every rank reads it", done.stderr)
        self.assertFalse((self.path / "other").exists())
        done = self.in_bash("simulate --schedule file:<(yes 0F0) --ranks 1 --microbatches 1")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("at most 268435456 bytes are read", done.stderr)


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
