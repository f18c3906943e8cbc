"""Runs that are killed at random moments, and at the calls of a save, end as if nothing had happened: the same bits in
weights and optimizer, the same samples, nothing left behind. By default 20 kills: half at random moments, half at calls. With
BRAID_FULL=1 there are 1,000 at random moments and one at every call. Each test asserts how often it struck.

BRAID_CHAOS_KILLS=N sets the 20 or the 1,000; with BRAID_CHAOS_REPORT=FILE the counts are written there as a table."""
import collections
import itertools
import os
import pathlib
import random
import re
import shutil
import tempfile
import unittest

from survivor import STEPS, Survivor

FULL = "BRAID_FULL" in os.environ
KILLS = int(os.environ.get("BRAID_CHAOS_KILLS", 1000 if FULL else 20))
RANDOM_KILLS = KILLS if FULL else KILLS // 2
CALL_KILLS = KILLS - RANDOM_KILLS  # in a full run every call is struck, however many there are
PROCESSES = "run.ranks=processes"
BEHIND = "checkpoint.async=true"
ERRORS = {"ENOSPC": "No space left on device", "EIO": "Input/output error"}
LAYOUTS = {
    "servers": ["mesh.data=2", "sync.replication=parameter-server", "sync.servers=3", "train.reduction=fast"],
    "data 2": ["mesh.data=2"],
    "pipe 2": ["mesh.pipe=2", "pipeline.schedule=1f1b"],
    "tensor 2": ["mesh.tensor=2", "optimizer.state_dtype=bfloat16"],
    "zero 3": ["mesh.data=2", "sync.zero=3"],
    "zb-v": ["mesh.pipe=2", "pipeline.schedule=zb-v", "model.layers=4"],
    "zero 1, pipe 2": ["mesh.data=2", "mesh.pipe=2", "sync.zero=1", "train.microbatch=1"],
    "one rank": [],
}


def chosen(all_of_them, most):
    """Spread evenly over the list; all of it in a full run."""
    if FULL or len(all_of_them) <= most:
        return list(all_of_them)
    return [all_of_them[i * len(all_of_them) // most] for i in range(most)]


def kind(call):
    """A call without what differs from save to save: "pwrite model.safetensors"."""
    name, place = call.split(" ", 1)
    place = re.sub(r"\S*/step-[0-9]+", "step", place)
    return f"{name} {re.sub(r'[.]tmp[.][^/ ]*', '.tmp', place)}"


class Chaos(unittest.TestCase):
    counts = collections.Counter()

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.references = {}

    @classmethod
    def tearDownClass(cls):
        if "BRAID_CHAOS_REPORT" in os.environ:
            rows = [f"| {what} | {count} |" for what, count in sorted(cls.counts.items())]
            pathlib.Path(os.environ["BRAID_CHAOS_REPORT"]).write_text(
                "\n".join(["| what was struck | kills |", "|---|---|", *rows]) + "\n")

    def survivor(self, name, words, after=None):
        return Survivor(self.folder / name.replace(" ", "_").replace(",", ""), words, after)

    def reference(self, layout):
        """The layout's run to which nothing happens."""
        if layout not in self.references:
            self.references[layout] = self.survivor(f"reference {layout}", LAYOUTS[layout])
            self.references[layout].finish()
        return self.references[layout]

    def half_way(self, layout, ranks, name):
        """The same run in the middle, where two saves are still to come."""
        reference = self.reference(layout)
        run = self.survivor(name, LAYOUTS[layout] + ranks + ["run.max_restarts=0"], reference)
        run.go_back(STEPS - 4)
        return run

    def calls(self, layout, ranks):
        """What the rest of that run asks of the file system."""
        run = self.half_way(layout, ranks, f"calls {layout}")
        calls = run.calls()
        shutil.rmtree(run.path)
        return calls

    def expect_the_same_end(self, run, layout):
        run.finish()
        wanted, found = self.reference(layout).state(), run.state()
        for what in wanted:
            self.assertEqual(found[what], wanted[what], f"{layout}: {what}")
        self.assertEqual(run.leftovers(), [])
        shutil.rmtree(run.path)

    def expect_strikes(self, wanted, kinds):
        """That many strikes of these kinds were made: a suite that struck less often would prove less than its page says."""
        self.assertEqual(sum(count for what, count in self.counts.items() if re.match(kinds, what)), wanted)

    def test_killed_at_random_moments(self):
        draw = random.Random(1)
        kinds = ([PROCESSES], [BEHIND], [PROCESSES, BEHIND], [])
        variants = list(itertools.product(LAYOUTS, kinds)) if FULL else list(zip(LAYOUTS, kinds))
        for number, (layout, ranks) in enumerate(variants):
            kills = RANDOM_KILLS * (number + 1) // len(variants) - RANDOM_KILLS * number // len(variants)
            with self.subTest(layout=layout, ranks=ranks):
                done, run = 0, self.survivor(f"random {number}", LAYOUTS[layout] + ranks)
                while done < kills:
                    step = run.saved_step() + draw.randint(1, 4)
                    if step >= STEPS:
                        self.expect_the_same_end(run, layout)
                        run = self.survivor(f"random {number}", LAYOUTS[layout] + ranks)
                        continue
                    whom = draw.choice(["rank", "run"]) if PROCESSES in ranks else "run"
                    struck = run.strike_in_step(step, draw, whom)
                    self.counts[f"{whom}, at a random moment, {layout}"] += struck
                    done += struck
                self.expect_the_same_end(run, layout)
        self.expect_strikes(RANDOM_KILLS, "(rank|run), at a random moment")

    def test_killed_at_the_calls_of_a_save(self):
        variants = [("zero 3", [PROCESSES], "kill"), ("pipe 2", [], "kill"), ("one rank", [], "kill"),
                    ("zero 3", [PROCESSES, BEHIND], "kill-run"), ("tensor 2", [PROCESSES, BEHIND], "kill"),
                    ("zb-v", [BEHIND], "kill")]
        wanted = 0
        for number_of_variant, (layout, ranks, fault) in enumerate(chosen(variants, 2)):
            calls = self.calls(layout, ranks)
            kinds = {}  # the first call of each kind: the named points of a save
            for number, call in enumerate(calls, 1):
                kinds.setdefault(kind(call), number)
            most = (CALL_KILLS + number_of_variant) // 2
            numbers = range(1, len(calls) + 1) if FULL else chosen(sorted(kinds.values()), most)
            wanted += len(calls) if FULL else most
            for number in numbers:
                what = kind(calls[number - 1])
                with self.subTest(layout=layout, call=number, kind=what, fault=fault):
                    run = self.half_way(layout, ranks, f"struck {layout} {fault} {number}")
                    code, said = run.strike_call(number, fault)
                    self.assertIn(code, (3, -9), said)
                    self.counts[f"{'rank' if PROCESSES in ranks and fault == 'kill' else 'run'}, {what}"] += 1
                    self.expect_the_same_end(run, layout)
        self.expect_strikes(wanted, "(rank|run), (?!at a random)")

    def test_killed_while_an_earlier_run_is_removed(self):
        """What is left of a checkpoint is recognised, in whichever order a file system lists its files."""
        earlier, begins = self.reference("one rank"), "train.overwrite=true"
        log = self.folder / "removal"
        run = self.survivor("removed", ["train.steps=1"], after=earlier)
        self.assertEqual(run.ended(run.start(begins, log=log)), (0, ""))
        calls = log.read_text().splitlines()
        removals = [number for number, call in enumerate(calls, 1) if call.startswith("unlink")]
        for number in removals:
            self.assertRegex(calls[number - 1], r"/step-[0-9]+[.]removed/")
        for number in removals if FULL else removals[1:2]:
            run = self.survivor(f"removal {number}", ["train.steps=1"], after=earlier)
            self.assertEqual(run.ended(run.start(begins, at=number, fault="kill"))[0], -9)
            self.assertEqual(run.ended(run.start(begins)), (0, ""))

    def test_errors_of_the_disk_are_told_and_survived(self):
        variants = [("zero 3", [PROCESSES, BEHIND]), ("one rank", []), ("pipe 2", []), ("zero 3", [PROCESSES])]
        for layout, ranks in chosen(variants, 1):
            calls = self.calls(layout, ranks)
            saves = [number for number, call in enumerate(calls, 1) if not call.startswith(("unlink", "rmdir"))]
            for number, (fault, words) in itertools.product(chosen(saves, 3), ERRORS.items()):
                with self.subTest(layout=layout, call=number, kind=kind(calls[number - 1]), fault=fault):
                    run = self.half_way(layout, ranks, f"error {layout} {fault} {number}")
                    before = {path.name for path in run.checkpoints()}
                    code, said = run.strike_call(number, fault)
                    self.assertEqual(code, 3, said)
                    self.assertRegex(said, f"step-.*{words}")
                    self.assertLessEqual(before, {path.name for path in run.checkpoints()})
                    self.assertEqual(run.leftovers(), [], "a save that fails removes what it wrote")
                    self.counts[f"{fault}, {kind(calls[number - 1])}"] += 1
                    self.expect_the_same_end(run, layout)


if __name__ == "__main__":
    unittest.main()
