"""A run for which there is too little memory says what its ranks held, what was predicted and what would fit; one within
memory.limit_gb and the room beside it (docs/memory.md) is not killed."""
import pathlib
import re
import resource
import unittest

from braid_binary import BINARY
from memory_group import MemoryGroup
from tiny_run import TinyRun

MIB = 2 ** 20
WIDE = ["model.layers=2", "model.width=512", "model.heads=4", "model.context=64", "train.batch=2", "train.microbatch=1",
        "train.steps=4", "train.eval_every=0", "train.save_every=0", "train.overwrite=true"]
RESIDENT = [f"memory.{tier}=resident" for tier in ("optimizer", "gradients", "parameters", "activations")]
DISK = [f'memory.paths=["{pathlib.Path(BINARY).parent}"]', "memory.chunk_mb=0.25"]
PROCESSES = ["run.ranks=processes", "run.max_restarts=0"]
ACCOUNT = r"[\d.]+ MiB \(parameters [^)]*\)"
ADVICE = (rf"\npredicted for rank (\d): {ACCOUNT}\n"
          r"overrides with which it fits, the fastest first:\n((?:  \S.*?  # holds [\d.]+ MiB, a step takes [\d.]+ times as long\n)+)")


class MemoryErrors(TinyRun):
    def assert_advice_trains(self, told, words):
        found = re.search(ADVICE, told)
        self.assertTrue(found, told)
        changes = found[2].splitlines()
        self.assertLessEqual(len(changes), 3)
        self.trained(*words, *changes[0].split("#")[0].split())

    def test_a_rank_that_its_group_kills_is_explained(self):
        words = [*WIDE, *RESIDENT, *DISK[1:], "run.ranks=processes", "mesh.data=2"]
        done = MemoryGroup(self, 280 * MIB).braid("train", "run.toml", *words, cwd=self.path)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"rank (\d): killed by signal 9 .*; the system has killed it because its control group "
                                      rf"had no memory left; it held {ACCOUNT}\npredicted for rank \1: ")
        self.assertNotIn("restart 2 of", done.stdout)  # which would be killed in the same step again
        self.assertRegex(done.stdout, r"note   no restart: it would need the same memory again after step [01]\n")
        self.assert_advice_trains(done.stderr, words)

    def test_a_run_that_is_killed_in_the_same_step_again_ends(self):
        """Copies for the save after step 2 need more memory than the steps before."""
        words = [*WIDE, *RESIDENT, *DISK[1:], "run.ranks=processes", "train.save_every=2", "checkpoint.async=true", "train.log_every=1"]
        done = MemoryGroup(self, 260 * MIB).braid("train", "run.toml", *words, cwd=self.path)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("note   restart 1 of 3, from the beginning\n", done.stdout)
        self.assertNotIn("restart 2 of 3", done.stdout)
        self.assertEqual(len(re.findall(ADVICE, done.stderr)), 2)  # at the first kill too

    def test_measurements_leave_the_memory_of_the_group(self):
        words = [*WIDE, *RESIDENT, *PROCESSES, "mesh.data=4", "train.batch=4", "sync.zero=1"]
        done = MemoryGroup(self, 560 * MIB).braid("train", "run.toml", *words, cwd=self.path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_system_that_refuses_memory_is_explained(self):
        words = [*WIDE, *RESIDENT, *DISK[1:], *PROCESSES, "model.width=1024", "train.steps=1"]
        done = self.braid("train", "run.toml", *words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, [720 * MIB] * 2))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stderr, rf"^braid: there is no memory for [\d.]+ MiB more; rank 0 holds {ACCOUNT}\npredicted for rank 0")

    def test_a_run_within_its_limit_is_not_killed(self):
        """The group has the room that docs/memory.md names. Measurements after the first step are within the limit too."""
        beside_rank, beside_command = 64, 64  # MiB, and an eighth of the limit
        shape = ["model.layers=3", "model.width=384", "model.heads=4", "model.context=128", "train.batch=4", "train.microbatch=2",
                 "train.steps=2", "train.eval_every=0", "train.eval_sequences=4", "train.save_every=1", "train.overwrite=true"]
        for tiers, ranks, limit in (([], 1, 106), (["optimizer"], 2, 65), (["activations"], 1, 101),
                                    (["optimizer", "gradients", "parameters", "activations"], 2, 53)):
            words = [*shape, *RESIDENT, *DISK, *PROCESSES, f"mesh.data={ranks}", f"memory.limit_gb={limit / 1024}",
                     *(f"memory.{tier}=disk" for tier in tiers)]
            with self.subTest(tiers=tiers):
                group = MemoryGroup(self, (ranks * (limit * 1.125 + beside_rank) + beside_command) * MIB)
                done = group.braid("train", "run.toml", *words, cwd=self.path)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
