"""Disks that fail under a run's tiers: the run ends with a sentence, trains on nothing that is wrong, leaves no file, and
resumes."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from braid_binary import BINARY
from tiny_run import TINY, TrainedRun, TinyRun

FAULTS = os.environ["BRAID_FILE_FAULTS"]
SMALL = TINY.replace("width = 16", "width = 64").replace("context = 16", "context = 32") + """
reduction = "reproducible"
[memory]
chunk_mb = 0.03125
"""
STEPS = ["train.eval_every=0", "train.save_every=2", "train.steps=6"]
OPTIMIZER = ["memory.optimizer=disk"]
GRADIENTS, PARAMETERS = [*OPTIMIZER, "memory.gradients=disk"], [*OPTIMIZER, "memory.parameters=disk"]
ACTIVATIONS = ["memory.activations=disk"]
ALL = [*GRADIENTS, PARAMETERS[1], *ACTIVATIONS]
SCRATCH = "braid: scratch file in run: "


class DiskFaults(TrainedRun):
    """In run/ are the steps of the run with everything in memory."""
    configuration = SMALL

    def prepare(self):
        super().prepare()
        self.expected = self.losses()[:6]

    def struck(self, words, **settings):
        """A run that overwrites run/, one call of which is struck."""
        environment = {"LD_PRELOAD": FAULTS, "FILE_FAULTS_STATE": str(self.path / "faults.state"), "FILE_FAULTS_PLACE": "/#"}
        environment |= {f"FILE_FAULTS_{name.upper()}": str(value) for name, value in settings.items()}
        (self.path / "faults.state").unlink(missing_ok=True)
        done = self.braid("train", "run.toml", *STEPS, *words, "train.overwrite=true", env=os.environ | environment)
        self.assertEqual(self.losses(), self.expected[:len(self.losses())])
        self.assertFalse([name for name in os.listdir(self.path / "run") if re.search("braid-|#", name)])
        return done

    def assert_ends_and_resumes(self, words, message, **settings):
        done = self.struck(words, **settings)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn(message, done.stderr)
        self.trained(*STEPS, *words, "train.resume=latest" if self.checkpoints() else "train.overwrite=true")
        self.assertEqual(self.losses(), self.expected)
        self.assertFalse([name for name in os.listdir(self.path / "run") if re.search(r"\.tmp|\.old", name)])

    def test_a_fault_in_each_tier(self):
        for words, message, settings in (
                (OPTIMIZER, "their checksum differs", {"call": "pread", "fault": "flip", "at": 2}),  # the first states
                (GRADIENTS, "No space left on device", {"call": "pwrite", "fault": "ENOSPC", "at": 200}),
                (PARAMETERS, "Input/output error", {"call": "pread", "fault": "EIO", "at": 300}),
                (ACTIVATIONS, "the file ends after 0 bytes of them", {"call": "pread", "fault": "end", "at": 90}),
                ([*ALL, "mesh.data=2", "run.ranks=processes"], "Input/output error",
                 {"call": "pwrite", "fault": "EIO", "at": 500})):
            with self.subTest(words=words, **settings):
                self.assert_ends_and_resumes(words, SCRATCH, **settings)

    def test_half_of_a_read_is_read_to_its_end(self):
        done = self.struck(ALL, call="pread", fault="short", at=400)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.losses(), self.expected)
        self.assertIn("io_uring is refused (Operation not permitted); threads read and write the scratch files", done.stdout)

    def test_a_rank_that_is_killed_while_it_swaps_is_restarted(self):
        done = self.struck([*ALL, "mesh.data=2", "run.ranks=processes"], call="pwrite", fault="kill", at=500)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("killed by signal 9", done.stderr)
        self.assertEqual(self.losses(), self.expected)

    def test_a_disk_that_dies_while_its_states_are_saved(self):
        self.assert_ends_and_resumes(OPTIMIZER, "braid: a disk with scratch files (memory.paths, or train.out) failed while a checkpoint",
                                     place="step-4", call="mkdir", fault="cut", at=1)

    def test_stripes_on_two_folders_are_the_same_bits(self):
        for name in ("a", "b"):
            (self.path / name).mkdir()
        self.trained(*STEPS, *ALL, "train.overwrite=true", f'memory.paths=["{self.path}/a", "{self.path}/b"]')
        self.assertEqual(self.losses(), self.expected)
        self.assertFalse([*(self.path / "a").iterdir(), *(self.path / "b").iterdir()])


class SmallDisk(TinyRun):
    def test_ranks_and_folders_that_share_a_disk_are_summed(self):
        with tempfile.TemporaryDirectory(dir=pathlib.Path(BINARY).parent) as place:
            os.mkdir(f"{place}/disk")
            for words in (["truncate", "-s", "16M", f"{place}/image"], ["mkfs.ext4", "-q", "-O", "^has_journal", f"{place}/image"],
                          ["mount", "-o", "loop", f"{place}/image", f"{place}/disk"]):
                if subprocess.run(["env", *words], capture_output=True).returncode != 0:
                    self.skipTest("no file system can be mounted")
            try:
                self.assert_that_they_are_summed(f"{place}/disk")
            finally:
                subprocess.run(["umount", f"{place}/disk"], check=True)

    def assert_that_they_are_summed(self, disk):
        wide = ["model.width=192", "model.heads=4", "train.steps=1", "train.eval_every=0", *OPTIMIZER, "memory.chunk_mb=0.03125",
                "optimizer.clip_norm=0", "train.overwrite=true"]
        self.trained(*wide, f'memory.paths=["{disk}"]')  # 8 MiB of states
        halves = ["model.width=320", f'memory.paths=["{disk}", "{disk}/lost+found"]']  # each of 12 MiB
        for words in ([f'memory.paths=["{disk}"]', "mesh.data=4", "train.microbatch=1"], halves):
            told = self.braid("train", "run.toml", *wide, *words)
            self.assertEqual(told.returncode, 2, told.stdout + told.stderr)
            self.assertRegex(told.stderr, rf"memory.paths = {disk}: needs [\d.]+ MiB of free space; it has [\d.]+ MiB")
        words = ["train.save_every=1", "checkpoint.keep=1", "train.steps=3", f"train.out={disk}/run", f'memory.paths=["{disk}"]']
        told = self.braid("train", "run.toml", *wide, *words)
        self.assertEqual(told.returncode, 2, told.stdout + told.stderr)
        self.assertRegex(told.stderr, r"train.out = .*must have room for . checkpoints? of [\d.]+ MiB and [\d.]+ MiB of scratch files")


if __name__ == "__main__":
    unittest.main()
