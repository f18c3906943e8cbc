"""Signals to braid train in every phase: what is saved, what is said, how it ends. Nothing waits for a time: a test goes
on when a line or a file is there."""
import array
import fcntl
import os
import pty
import shlex
import signal
import subprocess
import termios
import time
import unittest

from braid_binary import BINARY
from tiny_run import ENDLESS, TinyRun, let_signals_through

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONG_EVALUATION = ["train.steps=100000", "train.eval_every=1", "train.eval_sequences=400000000"]


def ignoring(number):
    def prepare():
        let_signals_through()
        signal.signal(number, signal.SIG_IGN)
    return prepare


class StopSignals(TinyRun):
    def ended(self, process):
        """Exit code, and what was said on both outputs since they were last read."""
        said, told = process.stdout.read(), process.stderr.read()
        return process.wait(timeout=120), said, told

    def last_step(self):
        return max(int(name.removeprefix("step-")) for name in self.checkpoints())

    def test_each_saves_and_prints_the_command_that_goes_on(self):
        (self.path / "run.toml").rename(self.path / "it's a run.toml")
        os.symlink("it's a run.toml", self.path / "run.toml")
        for number in STOPS:
            with self.subTest(number.name):
                out = f"a {number.name}"
                process = self.started(*ENDLESS, f"train.out={out}", 'train.sample_prompt="it\'s "',
                                       "train.sample_tokens=2", "train.overwrite=true",
                                       f"data.paths=[{', '.join(['text'] * 4000)}]")  # a long command is shown whole
                self.line_of(process, "step 1/")
                process.send_signal(number)
                code, said, told = self.ended(process)
                self.assertEqual(code, 128 + number, told)
                self.assertIn(f"braid: {number.name}: the step is finished and saved", told)
                self.assertIn(f"interrupted by {number.name}: stopped cleanly after step", said)
                name, = self.checkpoints(out)
                last = [line for line in self.metrics(out) if line["kind"] == "step"][-1]["step"]
                self.assertEqual(name, f"step-{last}")
                self.assertEqual(self.metrics(out)[-1]["kind"], "checkpoint", "nothing is evaluated while others wait")
                command = said.splitlines()[-1]
                self.assertEqual(shlex.split(command)[:3], [BINARY, "train", "run.toml"])
                self.assertEqual(shlex.split(command)[-1], f'train.resume="{out}/{name}"')
                again = subprocess.run(f"{command} train.steps={last + 1}", shell=True, cwd=self.path, text=True,
                                       capture_output=True, timeout=120, errors="replace")
                self.assertEqual(again.returncode, 0, again.stderr)
                self.assertIn(f"resumed at step {last} from {out}/{name}", again.stdout)
                steps = [line["step"] for line in self.metrics(out) if line["kind"] == "step"]
                self.assertEqual(steps, list(range(1, last + 2)))

    def test_a_run_whose_output_nobody_reads_saves(self):
        """mpirun reads none between its signal and the end of its processes. The signal interrupts no write of a rank."""
        ours, theirs = os.pipe()
        fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 8192)
        process = subprocess.Popen([BINARY, "train", "run.toml", *ENDLESS, "run.ranks=processes"], cwd=self.path,
                                   stdout=theirs, preexec_fn=let_signals_through)
        self.addCleanup(process.kill)
        waiting, before = array.array("i", [0]), -1
        while waiting[0] < 4000 or waiting[0] > before:  # until it waits
            before = waiting[0]
            time.sleep(0.5)
            fcntl.ioctl(ours, termios.FIONREAD, waiting)
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 143)
        self.assertEqual(len(self.checkpoints()), 1)
        for end in (ours, theirs):
            os.close(end)

    def test_one_before_the_first_step_ends_at_once(self):
        with open(self.path / "long", "wb") as text:
            text.truncate(64 << 20)  # zeros, which take a while to become tokens
        process = self.started("data.paths=[long]")
        self.wait_for(process, (self.path / "run" / "run.lock").exists)
        process.send_signal(signal.SIGTERM)
        code, said, told = self.ended(process)
        self.assertEqual((code, said), (143, ""))
        self.assertIn("braid: SIGTERM before the first step: there was nothing to save", told)
        self.assertFalse((self.path / "run" / "metrics.jsonl").exists())

    def test_one_during_an_evaluation_or_a_save_is_heard_before_the_next_step(self):
        process = self.started("train.steps=100000", "train.eval_every=1", "train.save_every=1")
        self.line_of(process, "step 1  validation loss")
        process.send_signal(signal.SIGTERM)
        code, said, _ = self.ended(process)
        self.assertEqual(code, 143)
        kinds = [(line["kind"], line.get("step")) for line in self.metrics() if line["kind"] in ("step", "checkpoint")]
        last = self.last_step()
        self.assertEqual(kinds[-2:], [("step", last), ("checkpoint", last)], "saved once")

    def test_a_second_one_ends_at_once(self):
        process = self.started(*LONG_EVALUATION, "train.save_every=1")
        self.line_of(process, "step 1  weights")  # the evaluation comes next
        process.send_signal(signal.SIGTERM)
        self.assertIn("braid: SIGTERM", process.stderr.readline())

        def is_ended():
            process.send_signal(signal.SIGINT)
            return process.poll() is not None

        while not is_ended():
            pass
        code, said, told = self.ended(process)
        self.assertEqual(code, 130, told)
        self.assertIn("braid: SIGINT, the second", told)
        self.assertEqual(self.checkpoints(), ["step-1"])

    def test_two_of_one_event_are_one(self):
        process = self.started(*ENDLESS)
        self.line_of(process, "step 1/")
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCONT):
            process.send_signal(number)
        code, said, told = self.ended(process)
        self.assertIn(code, (143, 129), told)
        self.assertIn("stopped cleanly", said)
        self.assertEqual(len(self.checkpoints()), 1)

    def test_what_was_ignored_stays_ignored(self):
        process = self.started(*ENDLESS, preexec_fn=ignoring(signal.SIGHUP))
        self.line_of(process, "step 1/")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        code, said, _ = self.ended(process)
        self.assertEqual(code, 143)
        self.assertIn("interrupted by SIGTERM", said)

    def test_a_run_whose_output_is_gone_goes_on_and_saves(self):
        process = self.started("train.steps=100000", "train.save_every=1", "train.eval_every=0")
        self.line_of(process, "step 1/")
        process.stdout.close()
        process.stderr.close()
        self.wait_for(process, (self.path / "run" / "step-5" / "manifest.json").exists)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=120), 143)
        last = [line for line in self.metrics() if line["kind"] == "step"][-1]["step"]
        self.assertEqual(self.last_step(), last)

    def test_a_terminal_that_is_closed_saves(self):
        ours, theirs = pty.openpty()

        def with_a_terminal():
            let_signals_through()
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        process = self.started(*ENDLESS, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=with_a_terminal)
        os.close(theirs)
        said = b""
        while b"/100000 " not in said:  # of the bar
            said += os.read(ours, 4096)
        os.close(ours)
        self.assertEqual(process.wait(timeout=120), 129)
        last = [line for line in self.metrics() if line["kind"] == "step"][-1]["step"]
        self.assertEqual(self.checkpoints(), [f"step-{last}"])

    def test_one_while_the_sample_is_made_ends_at_once(self):
        (self.path / "run").mkdir()
        os.mkfifo(self.path / "run" / "sample.txt")  # which waits for a reader
        process = self.started("train.sample_prompt=the", "train.sample_tokens=1")
        self.line_of(process, "bubble of the last step")
        process.send_signal(signal.SIGHUP)
        code, said, told = self.ended(process)
        self.assertEqual(code, 129, told)
        self.assertEqual(self.checkpoints(), ["step-3", "step-6"])


if __name__ == "__main__":
    unittest.main()
