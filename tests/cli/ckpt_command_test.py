"""braid ckpt as a user calls it: looking into checkpoints, verifying, comparing and rewriting them."""
import json
import os
import shutil
import struct
import subprocess
import unittest

from braid_binary import BINARY
from tiny_run import TINY, TrainedRun


def header(path):
    """Of a safetensors file, and where its data begin."""
    bytes_ = path.read_bytes()
    length, = struct.unpack("<Q", bytes_[:8])
    return json.loads(bytes_[8:8 + length]), 8 + length


def flip(path, at):
    bytes_ = bytearray(path.read_bytes())
    bytes_[at] ^= 1
    path.write_bytes(bytes_)


class Ckpt(TrainedRun):
    # Two checkpoints, which two ranks wrote.
    configuration = TINY.replace("steps = 6", "steps = 4").replace("save_every = 3", "save_every = 2") + "[mesh]\ndata = 2\n"

    def ckpt(self, *words, code=0):
        done = self.braid("ckpt", *words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_inspect_prints_what_the_manifest_says(self):
        said = self.ckpt("inspect", "run").stdout
        for words in ("checkpoint  run/step-4, format 4", "step        4, next sample 16", "2 layers, 2 heads, width 16",
                      "written by 2 ranks", "tokenizer   bytes", "file        model-00002-of-00002.safetensors",
                      "tensor      wte.weight  F32 [257, 16]", "data "):
            self.assertIn(words, said)
        told = json.loads(self.ckpt("inspect", "run/step-2", "--json").stdout)
        self.assertEqual((told["step"], told["ranks"], told["version"]), (2, 2, 4))
        tensors = {tensor["name"]: tensor for tensor in told["tensors"]}
        self.assertEqual(tensors["wte.weight"]["shape"], [257, 16])
        parameters = 0
        for name, tensor in tensors.items():
            if "/" not in name:
                size = 1
                for extent in tensor["shape"]:
                    size *= extent
                parameters += size
        self.assertEqual(told["parameters"], parameters)
        self.assertEqual(told["bytes"], sum(file["bytes"] for file in told["files"]))

    def test_a_pipe_in_the_place_of_a_manifest_is_refused_at_once(self):
        self.prepare_copy()
        manifest = self.path / "copy" / "step-4" / "manifest.json"
        manifest.unlink()
        os.mkfifo(manifest)
        for words in (["ckpt", "verify", "copy/step-4"], ["ckpt", "inspect", "copy/step-4"], ["sample", "copy/step-4"],
                      ["evaluate", "copy/step-4", "text"],
                      ["train", "run.toml", "train.out=copy", "train.resume=copy/step-4"]):
            done = subprocess.run([BINARY, *words], capture_output=True, text=True, cwd=self.path, timeout=60)
            self.assertIn(done.returncode, (2, 3), words)
            self.assertIn("manifest.json", done.stderr, words)
            self.assertIn("is a pipe, not a regular file", done.stderr, words)

    def test_verify_names_file_tensor_and_nothing_else(self):
        said = self.ckpt("verify", "run/step-2").stdout
        self.assertEqual(len(said.splitlines()), 1)
        self.assertIn("run/step-2: good, ", said)
        self.prepare_copy()
        shard = self.path / "copy" / "step-4" / "optimizer-00002-of-00002.safetensors"
        tensors, begin = header(shard)
        name, entry = next((name, entry) for name, entry in tensors.items() if name != "__metadata__")
        flip(shard, begin + entry["data_offsets"][0])
        for path in ("copy/step-4", "copy"):
            done = self.ckpt("verify", path, code=3)
            self.assertIn(f"copy/step-4/optimizer-00002-of-00002.safetensors: at byte {begin}", done.stderr)
            self.assertIn(f"tensor {name} has xxh3", done.stderr)
            self.assertEqual(done.stdout, "")
        said = self.ckpt("inspect", "copy")
        self.assertIn("checkpoint  copy/step-2,", said.stdout)
        self.assertIn("passed over copy/step-4/optimizer-00002", said.stderr)

    def prepare_copy(self):
        shutil.rmtree(self.path / "copy", ignore_errors=True)
        shutil.copytree(self.path / "run", self.path / "copy")

    def test_diff_names_what_differs(self):
        same = self.ckpt("diff", "run/step-4", "run")
        self.assertRegex(same.stdout, r"^all \d+ tensors are equal bit for bit\n$")
        other = self.ckpt("diff", "run/step-2", "run/step-4", code=1).stdout
        self.assertIn("step: 2 and 4\nnext sample: 8 and 16\n", other)
        self.assertRegex(other, r"tensor wte\.weight: \d+ elements differ, by at most 0\.\d+\n")
        trained = self.braid("train", "run.toml", "train.out=third", "optimizer.lr=0.02", "model.layers=1")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        third = self.ckpt("diff", "run", "third", code=1).stdout
        self.assertIn("model.layers: 2 and 1\n", third)
        self.assertIn("optimizer.lr: 0.01 and 0.02\n", third)
        self.assertRegex(third, r"tensor blocks\.1\.\S+: only in the first\n")

    def test_reshard_makes_whole_files_and_parts_again(self):
        self.ckpt("reshard", "run", "whole")
        names = sorted(path.name for path in (self.path / "whole").iterdir())
        self.assertEqual(names, ["manifest.json", "model.safetensors", "optimizer.safetensors"])
        tensors, _ = header(self.path / "whole" / "model.safetensors")
        self.assertEqual(tensors["wte.weight"]["shape"], [257, 16])
        self.assertFalse([name for name in tensors if "[" in name or "/" in name])
        self.ckpt("reshard", "whole", "parts", "--ranks", "3")
        self.assertEqual(len(list((self.path / "parts").glob("*.safetensors"))), 6)
        for copy in ("whole", "parts"):
            self.ckpt("diff", "run", copy)
            self.assertEqual(self.braid("sample", copy, "--tokens", "9").stdout,
                             self.braid("sample", "run", "--tokens", "9").stdout)
        gone_on = self.braid("train", "run.toml", "train.resume=parts", "train.out=on", "train.steps=5")
        self.assertEqual(gone_on.returncode, 0, gone_on.stderr)
        self.ckpt("reshard", "run", "weights", "--weights-only")
        self.assertEqual(sorted(path.name for path in (self.path / "weights").iterdir()),
                         ["manifest.json", "model.safetensors"])
        self.assertEqual(self.braid("sample", "weights", "--tokens", "1").returncode, 0)

    def test_reshard_replaces_nothing(self):
        self.assertIn("must be a new name: run/step-2 is there", self.ckpt("reshard", "run", "run/step-2", code=2).stderr)
        (self.path / "new.tmp").mkdir()
        self.assertIn("new.tmp is there", self.ckpt("reshard", "run", "new", code=2).stderr)
        self.assertIn("there is no nowhere", self.ckpt("reshard", "run", "nowhere/new", code=2).stderr)
        self.assertTrue((self.path / "new.tmp").exists())
        self.assertIn("does not exist", self.ckpt("reshard", "no", "x", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
