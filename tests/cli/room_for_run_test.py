"""A run that cannot fit in memory or on the disk is refused before its first step, and leaves no folder."""
import pathlib
import re
import subprocess
import tempfile
import unittest

from braid_binary import BINARY
from tiny_run import TinyRun


class RoomForRun(TinyRun):
    def refused(self, *words):
        done = self.braid("train", "run.toml", *words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_a_model_without_room_in_memory_names_the_keys_and_the_bytes(self):
        told = self.refused("model.width=262144", "model.layers=8")
        self.assertRegex(told, r"model.width = 262144: must fit in memory: the 1 rank of this host would hold "
                               r"[\d.]+ TiB \(parameters [^)]*moments [^)]*\), [\d.]+ TiB more than the [\d.]+ \w+ "
                               r"that are available; half of model.width saves")
        self.assertIn("half of model.layers saves", told)
        self.assertFalse((self.path / "run").exists())

    def test_ranks_of_a_host_count_together(self):
        self.assertIn("the 2 ranks of this host", self.refused("model.width=262144", "model.layers=8", "mesh.data=2"))

    def test_no_key_of_a_model_that_weights_give_is_proposed(self):
        wide, long = "model.width=128", 1000000
        self.trained(wide)
        told = self.refused(wide, "train.init=run", "train.out=other", f"train.batch={long}", f"train.microbatch={long}")
        self.assertRegex(told, rf"train.microbatch = {long}: must fit in memory: .*; half of train.microbatch saves [^;]*$")

    def test_a_limit_of_a_rank_names_changes_with_which_the_run_trains(self):
        limited = ["model.layers=4", "model.heads=4", "model.width=192", "model.context=128", "train.batch=16",
                   "train.microbatch=16", "train.steps=2", "train.eval_every=0", "memory.chunk_mb=0.25",
                   f'memory.paths=["{pathlib.Path(BINARY).parent}"]', "memory.limit_gb=0.06"]
        told = self.refused(*limited)
        self.assertRegex(told, r"memory.limit_gb = 0.06: must hold what a rank needs: the fullest would hold [\d.]+ MiB "
                               r"\([^)]*activations [^)]*\); with ")
        changes = re.findall(r"; with (\S.*?) it holds [\d.]+ MiB, a step takes [\d.]+ times as long", told)
        self.assertGreater(len(changes), 1, told)
        for change in changes:
            self.trained(*limited, *change.split(), "train.overwrite=true")
        self.assertRegex((self.path / "run" / "config.toml").read_text(), '(optimizer|activations) = "disk"')

    def test_a_small_disk_is_refused_before_the_first_step(self):
        with tempfile.TemporaryDirectory() as disk:
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", disk]).returncode != 0:
                self.skipTest("no file system can be mounted")
            try:
                wide = ["model.width=128", f"train.out={disk}/run"]
                told = self.refused(*wide)
                self.assertRegex(told, r"must have room for 1 checkpoint of [\d.]+ MiB: 5\d\d.0 KiB are free")
                told = self.refused(f"train.out={disk}/run", "checkpoint.keep=20", "train.save_every=1", "train.steps=30")
                self.assertIn("must have room for 21 checkpoints of ", told)
                self.trained(f"train.out={disk}/run", "train.steps=2", "train.save_every=0", "checkpoint.keep=9")
                self.assert_that_what_is_removed_counts_as_free(pathlib.Path(disk) / "run")
            finally:
                subprocess.run(["umount", disk], check=True)

    # What a save that was killed has left fills the disk; a run that resumes removes it, and so does one that overwrites.
    def assert_that_what_is_removed_counts_as_free(self, run):
        for words in (["train.resume=latest", "train.steps=2"], ["train.resume=latest", "train.steps=3"],
                       ["train.overwrite=true", "train.steps=2"]):
            left = run / "step-9.tmp.1-00000000"
            left.mkdir()
            with self.assertRaises(OSError), open(left / "optimizer.safetensors", "wb", buffering=0) as full:
                while full.write(bytes(4096)) == 4096:
                    pass
                raise OSError
            self.trained(f"train.out={run}", "train.save_every=0", "checkpoint.keep=1", *words)
            self.assertFalse(left.exists())


if __name__ == "__main__":
    unittest.main()
