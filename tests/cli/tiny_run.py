"""A run that takes a second, in a folder of its own, for tests of what braid train writes, says and survives; and runs
that are made once, for tests of what becomes of them afterwards."""
import functools
import json
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from braid_binary import BINARY, braid

TINY = """
[model]
layers = 2
heads = 2
width = 16
context = 16
[data]
paths = ["text"]
[optimizer]
lr = 1e-2
[train]
steps = 6
batch = 4
microbatch = 2
eval_every = 3
save_every = 3
out = "run"
threads = 1
"""
ENDLESS = ["train.steps=100000", "train.save_every=0", "train.eval_every=0"]


def let_signals_through():
    """In a child: a test may run where they are ignored, in the background of a script."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def write_inputs(path, configuration=TINY):
    (path / "text").mkdir()
    for number in range(8):
        (path / "text" / f"{number}.txt").write_text(f"{number} the quick brown fox jumps over the lazy dog\n" * 40)
    (path / "run.toml").write_text(configuration)


class TinyRun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.prepare()

    def prepare(self):
        write_inputs(self.path)

    def braid(self, *words, cwd=None, **options):
        return braid(*words, cwd=cwd or self.path, **options)

    def trained(self, *words):
        """The finished process of a run that must succeed."""
        done = self.braid("train", "run.toml", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def started(self, *words, **options):
        """A run that goes on; it ends with the test."""
        return self.started_command("train", "run.toml", *words, **options)

    def started_command(self, *words, **options):
        """A command of braid that runs on; it ends with the test."""
        options = {"cwd": self.path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                   "preexec_fn": let_signals_through} | options
        process = subprocess.Popen([BINARY, *words], text=True, errors="replace", **options)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def line_of(self, process, start):
        """The next line of the process that begins so; waits for it."""
        for line in process.stdout:
            if line.startswith(start):
                return line
        self.fail(f"no line began with {start!r}: {process.stderr.read()}")

    def wait_for(self, process, came):
        """Until came() is true of what the process makes, which no line tells."""
        deadline = time.monotonic() + 120
        while not came():
            self.assertIsNone(process.poll(), "the run ended by itself")
            self.assertLess(time.monotonic(), deadline, "it did not come within two minutes")
            time.sleep(0.01)

    def metrics(self, out="run"):
        return [json.loads(line) for line in (self.path / out / "metrics.jsonl").read_text().splitlines()]

    def assert_memory_as_predicted(self, out="run"):
        """The fullest rank was predicted to hold what it held, or up to 2 % more."""
        lines = self.metrics(out)
        held = max([line for line in lines if line["kind"] == "step"][-1]["peak_memory_bytes"])
        said = max([line for line in lines if line["kind"] == "prediction"][0]["peak_memory_bytes"])
        self.assertGreaterEqual(said / held, 1)
        self.assertLessEqual(said / held, 1.02)

    def losses(self, out="run"):
        return [line["loss"] for line in self.metrics(out) if line["kind"] == "step"]

    def checkpoints(self, out="run"):
        """The names of whole checkpoints, those set aside too: saves that were killed leave step-N.tmp.*, .old, .removed."""
        names = {path.parent.name for path in (self.path / out).glob("step-*/manifest.json")}
        return sorted(name for name in names if re.fullmatch(r"step-\d+(\.undone(-\d+)?)?", name))


@functools.cache
def trained_once(configuration, prepare):
    """A folder in which `configuration` has been trained, after prepare(folder); the same for the same two."""
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    path = pathlib.Path(folder.name)
    write_inputs(path, configuration)
    prepare(path)
    done = braid("train", "run.toml", cwd=path)
    assert done.returncode == 0, done.stderr
    return path


def nothing(path):
    pass


class TrainedRun(TinyRun):
    """Each test begins with a copy of a folder in which run.toml has been trained."""
    configuration = TINY
    before = staticmethod(nothing)

    def prepare(self):
        shutil.copytree(trained_once(self.configuration, type(self).before), self.path, dirs_exist_ok=True)
