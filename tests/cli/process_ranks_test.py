"""braid train whose ranks are processes, as a user calls it: it says and leaves what it does on threads, signals save, and
a rank that is killed is named."""
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import termios
import time
import unittest

from braid_binary import BINARY
from tiny_run import ENDLESS, TinyRun

PROCESSES = "run.ranks=processes"
LONG = ["mesh.data=2", "train.steps=200", "train.save_every=50", "train.eval_every=0", PROCESSES]


def said_of(done):
    """Lines that do not depend on the clock."""
    return [line for line in done.stdout.splitlines() if re.match("model|data|mesh|step [0-9]+  |validation|sample", line)]


def ranks_of(process):
    """The processes of its ranks, by rank."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            _, name, rest = re.split(r"[()]", stat.read_text())
        except (OSError, ValueError):
            continue
        if rest.split()[1] == str(process.pid) and name.startswith("rank "):
            found[int(name.split()[1])] = int(stat.parent.name)
    return found


class ProcessRanks(TinyRun):
    def followed(self, *words):
        """A run that waits until its lines are read: it is at most some 120 steps ahead."""
        process = self.started(*words)
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        return process

    def test_a_run_says_and_leaves_what_it_does_on_threads_and_goes_on_on_either(self):
        words = ["mesh.pipe=2", 'train.sample_prompt="the "', "train.sample_tokens=5"]
        threads = self.trained(*words)
        sample = ["sample", "run", "--tokens", "9", "--seed", "3", "--prompt", "a brown fox "]
        samples = [self.braid(*sample).stdout]
        (self.path / "run").rename(self.path / "threads")
        processes = self.trained(*words, PROCESSES)
        samples.append(self.braid(*sample).stdout)
        self.assertEqual(said_of(processes), said_of(threads))
        self.assertIn("drawn in run/timeline.svg", processes.stdout)
        self.assertEqual(samples[0], samples[1])
        self.assertEqual(samples[1].count("a brown fox "), 1, samples[1])
        for name in ("sample.txt", "step-3/model-00001-of-00002.safetensors",
                     "step-6/optimizer-00002-of-00002.safetensors"):
            self.assertEqual(*((self.path / run / name).read_bytes() for run in ("threads", "run")), name)
        for name in ("timeline.svg", "trace.json", "config.toml"):
            self.assertTrue((self.path / "run" / name).exists(), name)
        self.assertEqual(self.losses(), self.losses("threads"))
        steps = [line for line in self.metrics() if line["kind"] == "step"]
        self.assertTrue(all(len(step["peak_memory_bytes"]) == 2 and min(step["peak_memory_bytes"]) > 0 for step in steps))

    def test_a_signal_saves_and_ends_with_its_code(self):
        process = self.started(*ENDLESS, "mesh.data=2", PROCESSES)
        self.line_of(process, "step 1/")
        process.send_signal(signal.SIGTERM)
        said, told = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 143, told)
        self.assertEqual(told, "braid: SIGTERM: the step is finished and saved; another signal, a moment from now, ends "
                               "at once\n")
        self.assertIn("interrupted by SIGTERM: stopped cleanly after step", said)
        name, = self.checkpoints()
        last = [line for line in self.metrics() if line["kind"] == "step"][-1]["step"]
        self.assertEqual(name, f"step-{last}")
        command = said.splitlines()[-1]
        self.assertIn(PROCESSES, command)
        again = subprocess.run(f"{command} train.steps={last + 1}", shell=True, cwd=self.path, text=True,
                               capture_output=True, timeout=120)
        self.assertEqual(again.returncode, 0, again.stderr)

    def test_a_signal_to_a_rank_is_one_to_the_run_and_a_second_one_to_the_caller_ends_at_once(self):
        process = self.started("train.steps=100000", "train.eval_every=1", "train.eval_sequences=400000000",
                               "train.save_every=1", "train.out=other", "mesh.data=2", PROCESSES)
        self.line_of(process, "step 1  weights")  # a long evaluation comes next
        ranks = ranks_of(process)
        self.assertEqual(sorted(ranks), [0, 1])
        os.kill(ranks[1], signal.SIGTERM)
        self.assertIn("braid: SIGTERM", process.stderr.readline())
        for _ in range(4):  # a second event to the caller, were it sent there
            time.sleep(0.1)
            os.kill(ranks[1], signal.SIGTERM)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
        self.assertEqual(process.returncode, 130)
        self.wait_until_gone(ranks)

    def test_a_signal_to_every_process_ends_the_sample_at_once(self):
        process = self.started("train.steps=60", "train.eval_every=0", 'train.sample_prompt="the "',
                               "train.sample_tokens=100000000", PROCESSES)
        while not (self.path / "run" / "trace.json").exists():
            self.assertIsNone(process.poll())
        while not ranks_of(process):  # of the sample
            self.assertIsNone(process.poll())
        ranks = ranks_of(process)
        for number in [*ranks.values(), process.pid]:
            os.kill(number, signal.SIGTERM)
            time.sleep(0.05)  # one after the other, within the time of one event
        _, told = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, told)
        self.assertEqual(told, "braid: SIGTERM after the last step: all is saved\n")
        self.wait_until_gone(ranks)

    def test_a_rank_that_is_killed_is_named_and_nobody_is_left(self):
        process = self.started(*ENDLESS, "mesh.data=2", PROCESSES, "run.max_restarts=0")
        self.line_of(process, "step 3/")  # rank 1 has ended step 1 at least
        ranks = ranks_of(process)
        os.kill(ranks[1], signal.SIGKILL)
        _, told = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 3)
        self.assertRegex(told, f"rank 1: killed by signal 9 \\(Killed\\), process {ranks[1]} on {socket.gethostname()}: .*, "
                               r"[0-9.]+ s; after its last step it held [\d.]+ .iB \(parameters [^)]*optimizer [^)]*\)")
        failure = (self.path / "run" / "failure.txt").read_text()
        self.assertIn("rank 1: killed by signal 9", failure.splitlines()[0])
        self.assertRegex(failure, r"; rank 0 was in [a-z_]+ #[0-9]+ on [a-z]+ for ")
        self.assertRegex(failure, r"oldest first:\n(batch )?#[0-9]+ ")
        self.wait_until_gone(ranks)

    def test_a_run_goes_on_by_itself_after_a_rank_was_killed(self):
        words = (*LONG, "train.reduction=reproducible")
        self.trained(*words, "train.out=whole")
        process = self.followed(*words)
        self.line_of(process, "step 55/")
        victim = ranks_of(process)[1]
        os.kill(victim, signal.SIGKILL)
        said, told = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, told)
        self.assertRegex(told.splitlines()[0], f"rank 1: killed by signal 9 .*process {victim} ")
        self.assertRegex(said, "restart 1 of 3, from run/step-(50|100|150)")
        self.assertEqual(self.losses(), self.losses("whole"))

    def test_a_run_that_fails_for_good_says_the_command_that_goes_on(self):
        words = ("mesh.data=2", *ENDLESS, "train.save_every=4", PROCESSES, "run.max_restarts=1")
        process = self.started(*words)
        for start in ("step 5/", "resumed at step "):
            self.line_of(process, start)
            os.kill(ranks_of(process)[1], signal.SIGKILL)
        said, told = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 3, told)
        self.assertIn("note   all restarts that run.max_restarts allows are used up: 1\n", said)
        lines = said.splitlines()
        self.assertEqual(lines[-2], "note   the run has failed; to resume from its newest whole checkpoint:")
        self.assertRegex(lines[-1], f"^{BINARY} train run.toml mesh.data=2 .* train.resume=run/step-[0-9]+$")

    def test_a_run_that_has_saved_nothing_begins_anew(self):
        process = self.followed("mesh.data=2", "train.save_every=0", PROCESSES, "train.steps=150")
        self.line_of(process, "step 1/")
        os.kill(ranks_of(process)[0], signal.SIGKILL)
        said, told = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, told)
        self.assertIn("restart 1 of 3, from the beginning", said)
        self.assertEqual(len(self.losses()), 150)

    def test_a_rank_that_dies_before_the_run_has_begun_leaves_nothing_of_an_earlier_run_to_go_on_from(self):
        self.trained()
        words = ["model.width=256", "model.layers=8", "train.overwrite=true", PROCESSES]  # takes a while to begin
        process = self.started(*words)
        while not ranks_of(process):
            self.assertIsNone(process.poll())
        os.kill(ranks_of(process)[0], signal.SIGKILL)
        said, told = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, told)
        restarted, removed = said.index("restart 1 of 3, from the beginning"), said.index("removed what an earlier run")
        self.assertLess(restarted, removed, "it was killed too late")

    def test_a_rank_whose_reader_pauses_does_not_hang(self):
        process = self.followed("mesh.data=2", "train.steps=300", "train.save_every=0", "train.eval_every=0", PROCESSES,
                                "run.progress_seconds=0.2", "run.max_restarts=0")
        self.line_of(process, "step 1/")
        time.sleep(4)  # twice as long as it would take to be found hung, at two looks
        said, told = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, told)

    def test_a_rank_that_hangs_is_named_killed_and_survived(self):
        process = self.followed(*LONG, "run.progress_seconds=1")
        self.line_of(process, "step 55/")
        hung = ranks_of(process)[1]
        os.kill(hung, signal.SIGSTOP)
        said, told = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, told)
        self.assertRegex(told.splitlines()[0], rf"rank 1: makes no progress \(rank 0 at .*; rank 1 at .*\), process {hung} on ")
        self.assertIn("restart 1 of 3, from run/step-", said)

    def test_sigusr1_saves_and_goes_on(self):
        process = self.started("mesh.data=2", "train.steps=2000", "train.save_every=0", PROCESSES)
        self.line_of(process, "step 1/")
        process.send_signal(signal.SIGUSR1)
        self.wait_for(process, lambda: [name for name in self.checkpoints() if "tmp" not in name])
        first, = self.checkpoints()
        saved = int(first.split("-")[1])
        self.assertLess(saved, 2000)
        self.line_of(process, f"step {saved + 1}/")
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 143, told)
        self.assertIn("braid: SIGUSR1: the run is saved after this step and continues", told)
        self.assertEqual(len(self.checkpoints()), 2)

    def test_a_terminal_that_stops_writers_in_its_background_shows_the_run(self):
        ours, theirs = pty.openpty()
        settings = termios.tcgetattr(theirs)
        settings[3] |= termios.TOSTOP
        termios.tcsetattr(theirs, termios.TCSANOW, settings)

        def with_a_terminal():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        process = self.started("mesh.data=2", PROCESSES, stdin=theirs, stdout=theirs, preexec_fn=with_a_terminal)
        os.close(theirs)
        said = b""
        while b"bubble of the last step" not in said:
            self.assertTrue(select.select([ours], [], [], 60)[0], said)
            said += os.read(ours, 4096)
        self.assertIn(b"6/6 ", said)
        self.assertEqual(process.wait(timeout=120), 0)
        os.close(ours)

    def test_a_killed_rank_and_an_interrupt_end_a_sample_and_an_evaluation(self):
        (self.path / "long.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 100_000)
        self.trained("train.steps=1", "train.save_every=1", PROCESSES)
        mesh = ["mesh.pipe=2", "mesh.tensor=2"]
        for words in (["sample", "run", *mesh, "--greedy", "--tokens", "100000000"], ["evaluate", "run", "long.txt", *mesh]):
            for is_killed in (True, False):
                with self.subTest(words[0], is_killed=is_killed):
                    process = self.started_command(*words)
                    # Rank 0 writes text, or how far it is, so all ranks are at work.
                    (process.stdout if words[0] == "sample" else process.stderr).read(1)
                    ranks = ranks_of(process)
                    self.assertEqual(sorted(ranks), [0, 1, 2, 3])
                    os.kill(ranks[2], signal.SIGKILL) if is_killed else process.send_signal(signal.SIGINT)
                    _, told = process.communicate(timeout=60)
                    self.assertEqual(process.returncode, 3 if is_killed else -signal.SIGINT, told)
                    if is_killed:
                        self.assertRegex(told, f"braid: .*rank 2: killed by signal 9 \\(Killed\\), process {ranks[2]} ")
                    self.wait_until_gone(ranks)

    def wait_until_gone(self, ranks):
        for number in ranks.values():
            stat = pathlib.Path(f"/proc/{number}/stat")
            while stat.exists() and ") Z " not in stat.read_text():  # a zombie where nobody buries orphans
                pass


if __name__ == "__main__":
    unittest.main()
