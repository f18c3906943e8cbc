"""What a user meets when a host, a rank or a cable fails in the middle of a training on several hosts: who is named, who
goes on, with which exit code; and that the end is always the one of a training to which nothing happened."""
import os
import random
import re
import signal
import unittest

from case import FULL, HostsTest
from job import STEPS

KILLS = int(os.environ.get("BRAID_CHAOS_KILLS", 50 if FULL else 5))
SLOW = ["train.batch=16", "model.context=64"]  # steps long enough to be struck in
QUICK = ["run.heartbeat_seconds=0.5"]
DATA = ["mesh.data=2", *SLOW]
MIXED = ["mesh.data=2", "mesh.tensor=2", "sync.zero=1", *SLOW]
LONG = 500_000  # lines of text, which take a while to prepare
EVALUATING = ["train.eval_every=1", "train.eval_sequences=4000", "train.save_every=0"]
SAVING = ["train.eval_every=0", "train.save_every=1", "model.width=128"]
ENDLESS = ["train.steps=100000", "train.save_every=0"]


class Faults(HostsTest):
    def struck(self, job, strike, step=3):
        """The job, when strike() was called while it was at work after that step, and it has ended; anew where it was
        over too soon."""
        for _ in range(5):
            job.start()
            job.come_to_step(step)
            strike()
            if job.last_step() < STEPS:
                return
            job.end()
            job.forget()
        self.fail("the training is always over before it is struck")

    # A rank: the run goes on.

    def test_a_rank_that_is_killed_is_named_and_the_run_goes_on(self):
        for words in [DATA, MIXED] if FULL else [MIXED]:
            with self.subTest(words=words):
                job, victim = self.job(*words), []

                def kill():
                    victim[:] = [job.rank(1 if words == DATA else 3)]
                    os.kill(victim[0], signal.SIGKILL)

                self.struck(job, kill)
                self.expect_codes(job, 0, 0)
                for node in job.nodes:
                    self.assertRegex(node.told.splitlines()[0],
                                     rf"rank [13]: killed by signal 9 \(Killed\), process {victim[0]} on h1: .*, [0-9.]+ s")
                self.assertRegex(job.nodes[0].said, "restart 1 of 3, from run/step-[0-9]+")
                self.expect_the_same_end(job)

    def test_a_rank_that_hangs_is_named_and_the_run_goes_on(self):
        job, victim = self.job(*DATA, "run.progress_seconds=1"), []

        def stop():
            victim[:] = [job.rank(1)]
            os.kill(victim[0], signal.SIGSTOP)

        self.struck(job, stop)
        self.expect_codes(job, 0, 0)
        for node in job.nodes:
            self.assertRegex(node.told.splitlines()[0],
                             r"rank 1: makes no progress on h1 \(rank 0 at .*; rank 1 at .*\)")
        self.assertIn("restart 1 of 3", job.nodes[0].said)
        self.expect_the_same_end(job, but=["run.progress_seconds=1"])

    # A host: the run ends everywhere, and can be started again.

    def lost(self, job, strike, victim):
        """The other nodes end with 3, and name it."""
        self.struck(job, strike)
        others = [node for number, node in enumerate(job.nodes) if number != victim]
        self.assertEqual(job.ended(others), [3] * len(others), job.told())
        for node in others:
            self.assertIn(f"node {victim} on h{victim} ", node.told.splitlines()[0])

    def test_a_command_that_is_killed_ends_the_others(self):
        for num_nodes, victim in ((2, 0), (4, 1), (2, 1), (4, 0), (4, 3))[:None if FULL else 2]:
            with self.subTest(nodes=num_nodes, victim=victim):
                job = self.job(f"mesh.data={num_nodes}", *SLOW, num_nodes=num_nodes)
                self.lost(job, lambda: job.nodes[victim].send(signal.SIGKILL), victim)
                job.nodes[victim].process.wait()
                self.expect_nothing_left()
                self.expect_the_same_end(job)

    def test_a_command_that_is_stopped_ends_the_others_and_hears_of_it(self):
        for victim in (0, 1) if FULL else (1,):
            with self.subTest(node=victim):
                job = self.job(*DATA, *QUICK)
                self.lost(job, lambda: job.nodes[victim].send(signal.SIGSTOP), victim)
                job.nodes[victim].send(signal.SIGCONT)
                self.assertEqual(job.ended()[victim], 3, job.told())
                self.assertRegex(job.nodes[victim].told.splitlines()[0], "node [01] on h[01] ")
                self.expect_nothing_left()
                self.expect_the_same_end(job, but=QUICK)

    def preparing(self, node):
        """A job of which that node prepares its data, and has no rank yet."""
        job = self.job("mesh.data=2", *QUICK)
        (job.path / "text/long.txt").write_text("the quick brown fox jumps over the lazy dog\n" * LONG)
        job.start()
        job.wait_until(lambda: f"h{node} has rank" in job.nodes[node].said)  # what it says last before
        self.assertEqual(job.nodes[node].ranks(), [])
        return job

    def test_a_command_that_is_stopped_while_it_prepares_its_data_ends_the_others(self):
        for victim in (0, 1):
            with self.subTest(node=victim):
                job = self.preparing(victim)
                job.nodes[victim].send(signal.SIGSTOP)
                other = job.nodes[1 - victim]
                self.assertEqual(job.ended([other]), [3], job.told())
                self.assertIn(f"node {victim} on h{victim} was silent for ", other.told.splitlines()[0])
                job.nodes[victim].send(signal.SIGCONT)
                self.assertEqual(job.ended(), [3, 3], job.told())
                self.expect_nothing_left()

    def test_a_cut_line_ends_both_sides(self):
        for victim in (0, 1) if FULL else (1,):
            with self.subTest(node=victim):
                job = self.job(*DATA, *QUICK)
                self.struck(job, job.hosts[victim].cut)
                self.expect_codes(job, 3, 3)
                self.assertIn("node 1 on h1 was silent for 0.", job.nodes[0].told.splitlines()[0])
                self.assertIn("node 0 on h0 was silent for 0.", job.nodes[1].told.splitlines()[0])
                self.expect_nothing_left()
                job.hosts[victim].mend()
                self.expect_the_same_end(job, but=QUICK)

    def test_a_cut_between_two_members_ends_all(self):
        hurry = ["run.progress_seconds=1", "run.max_restarts=0"]
        job = self.job("model.layers=3", "mesh.pipe=3", *SLOW, *QUICK, *hurry, num_nodes=3)

        def cut():
            for host in job.hosts[1:]:
                host.isolate()

        self.struck(job, cut)
        self.expect_codes(job, 3, 3, 3)
        for node in job.nodes:
            self.assertRegex(node.told, r"rank [012]: makes no progress on h[012] \(rank 0 .*; rank 1 .*; rank 2 .*\)")
        self.expect_nothing_left()
        self.network.mend()
        self.expect_the_same_end(job, but=[*QUICK, *hurry])

    def test_a_bad_line_changes_no_bit(self):
        bad = {"loss": 0.01, "delay": 0.02, "bits_per_second": 200e6}
        for how in [bad, *({name: value} for name, value in bad.items())] if FULL else [bad]:
            with self.subTest(**how):
                job = self.job("mesh.data=2", *(["mesh.pipe=2", "train.microbatch=1"] if FULL else []))
                job.hosts[1].worsen(**how)
                self.expect_the_same_end(job)
                if "loss" in how:
                    self.assertGreater(job.hosts[1].line.lost, 0)
                job.hosts[1].mend()

    # Signals.

    def test_a_signal_to_any_node_is_one_to_the_run(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130))[:None if FULL else 1]:
            with self.subTest(signal=number):
                job = self.job(*MIXED)
                self.struck(job, lambda: job.nodes[1].send(number))
                self.expect_codes(job, code, code)
                self.assertIn(f"interrupted by {number.name}: stopped cleanly after step", job.nodes[0].said)
                self.assertEqual(job.saved_step(), job.last_step())
                self.expect_nothing_left()
                self.expect_the_same_end(job)

    def test_sigusr1_to_any_node_saves_and_the_run_goes_on(self):
        job = self.job("mesh.data=2", *ENDLESS)
        job.start()
        job.come_to_step(2)
        job.nodes[1].send(signal.SIGUSR1)
        job.wait_until(job.checkpoints)
        step = job.last_step()
        job.come_to_step(step + 2)
        job.nodes[0].send(signal.SIGINT)
        self.expect_codes(job, 130, 130)
        self.assertEqual(len(job.checkpoints()), 2)

    def test_a_signal_in_an_evaluation_or_a_save_is_agreed_on_before_the_next_step(self):
        at = {"an evaluation": (EVALUATING, lambda job: job.last_step() >= 2),
              "a save": (SAVING, lambda job: list((job.path / "run").glob("step-*.tmp*")))}
        for what, (words, reached) in at.items():
            with self.subTest(what):
                job = self.job("mesh.data=2", "train.steps=100000", *words)
                job.start()
                job.wait_until(lambda: reached(job))
                job.nodes[1].send(signal.SIGUSR1)
                job.wait_until(lambda: "SIGUSR1: the run is saved after this step" in job.nodes[1].told)
                step = job.last_step()
                job.wait_until(lambda: job.saved_step() >= step)
                job.wait_until(lambda: job.last_step() > step and reached(job))
                job.nodes[1].send(signal.SIGTERM)
                self.expect_codes(job, 143, 143)
                self.assertEqual(job.saved_step(), job.last_step())
                self.assertEqual(job.leftovers(), [])
                self.expect_nothing_left()

    def test_signals_while_a_node_prepares_its_data(self):
        job = self.preparing(1)
        job.nodes[1].send(signal.SIGUSR1)
        job.wait_until(lambda: "SIGUSR1: there is nothing to save" in job.nodes[1].told)
        job.nodes[1].send(signal.SIGTERM)
        self.expect_codes(job, 143, 143)
        for node in job.nodes:
            self.assertIn("SIGTERM to node 1 on h1 before the first step: there was nothing to save", node.told)
        self.expect_nothing_left()

    def test_a_sample_is_made_when_the_others_have_gone(self):
        job = self.job("mesh.data=2", 'train.sample_prompt="the"', "train.sample_tokens=1")
        job.start()
        self.expect_codes(job, 0, 0)
        self.assertEqual((job.path / "run/sample.txt").read_bytes()[:3], b"the")
        self.expect_nothing_left()

    # Again and again.

    def test_struck_again_and_again(self):
        draw = random.Random(1)
        job = self.job(*(MIXED if FULL else DATA), *QUICK, "run.max_restarts=1000")
        done = 0
        while done < KILLS:
            job.start()
            job.wait_until(lambda: all(node.ranks() for node in job.nodes))
            job.come_to_step(job.saved_step() + draw.randint(1, 4))
            whom = draw.choice(["rank", "rank", "command"])
            try:
                number = job.rank(draw.randrange(4 if FULL else 2)) if whom == "rank" else draw.choice(job.nodes).process.pid
                os.kill(number, signal.SIGKILL)
            except (LookupError, ProcessLookupError):
                pass  # it is over already
            codes = job.ended()
            self.assertIn(sorted(codes), ([0, 0], [-9, 3], [-9, 0]), job.told())
            done += -9 in codes or re.search("killed by signal", job.told()) is not None
            if job.saved_step() == STEPS:
                self.expect_the_same_end(job, but=[*QUICK, "run.max_restarts=1000"])
                job.forget()
        self.expect_the_same_end(job, but=[*QUICK, "run.max_restarts=1000"])
        self.expect_nothing_left()


if __name__ == "__main__":
    unittest.main()
