"""The folder of a run: one owner at a time, nothing of another run beside it, and how a run goes on in it."""
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

from braid_binary import SOURCE
from tiny_run import ENDLESS, TinyRun


class RunFolder(TinyRun):
    def content(self, out="run"):
        return {path.relative_to(self.path): path.read_bytes()
                for path in (self.path / out).rglob("*") if path.is_file() and path.name != "run.lock"}

    def steps(self, out="run"):
        return [line["step"] for line in self.metrics(out) if line["kind"] == "step"]

    def evaluations(self, out="run"):
        return [line["step"] for line in self.metrics(out) if line["kind"] == "evaluation"]

    def refused(self, *words):
        done = self.braid("train", "run.toml", *words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_a_folder_has_one_run_at_a_time_and_none_holds_it_when_killed(self):
        first = self.started(*ENDLESS[:1], "train.save_every=1", "train.eval_every=0")
        self.line_of(first, "step 1  weights")
        for words in ([], ["train.overwrite=true"], ["train.resume=latest"], ["train.out=./run/"]):
            told = self.refused(*words)
            self.assertEqual(len(told.splitlines()), 1, told)
            self.assertIn("run", told.split(" = ")[1])
            self.assertIn(f"another run (process {first.pid} on ", told)
        first.kill()
        first.wait()
        with open(self.path / "run" / "metrics.jsonl", "a") as metrics:
            metrics.write('{"kind":"step","step":1000,"lo')
        newest = max(int(name.removeprefix("step-")) for name in self.checkpoints())
        told = self.trained("train.resume=latest", f"train.steps={newest + 2}").stdout
        self.assertRegex(told, r"note   the run before this one was killed, or its host or disk failed; up to step \d+ rank 0 had held "
                               r"[\d.]+ KiB at most \(parameters [^)]*, activations [^)]*\)\n")
        self.assertEqual(self.steps(), list(range(1, newest + 3)))
        again = self.trained("train.resume=latest", f"train.steps={newest + 3}").stdout
        self.assertNotIn("the run before this one was killed", again)

    def test_a_used_folder_is_refused_and_left_as_it_is(self):
        self.trained()
        before = self.content()
        for words in ([], ["train.overwrite=false"], ["train.overwrite=true", "data.paths=[nowhere]"]):
            told = self.refused(*words)
            self.assertEqual(self.content(), before)
        self.assertIn("nowhere", told)
        self.trained("train.out=other")
        self.assertIn("holds an earlier run", self.refused("train.out=other", "train.resume=run/step-3"))
        self.assertIn("must be true or false", self.refused("train.overwrite=1"))

    def test_what_the_run_itself_reads_is_not_removed(self):
        self.trained("train.sample_prompt=a")
        before = self.content()
        os.symlink("run/step-3", self.path / "weights")
        for words, key in ((["train.init=run/step-3"], "train.init"), (["train.init=weights"], "train.init"),
                           (["train.init=run"], "train.init"), (["data.paths=[run/sample.txt]"], "data.paths")):
            told = self.refused("train.overwrite=true", *words)
            self.assertRegex(told, f"train.overwrite = true: would remove what {key} = .* names")
            self.assertEqual(self.content(), before)
        self.trained("train.overwrite=true", "train.out=other", "train.init=run/step-3")

    def test_a_checkpoint_is_of_its_run_through_a_link_and_one_that_is_not_there_is_named(self):
        self.trained()
        os.symlink("run/step-3", self.path / "best")
        self.trained("train.resume=best", "train.overwrite=true", "train.steps=9")
        self.assertIn("step-3", self.checkpoints())
        told = self.refused("train.resume=run/step-4", "train.overwrite=true")
        self.assertIn("run/step-4 does not exist", told)
        self.assertIn("run/step-9", told)

    def test_an_owner_that_is_just_ending_is_waited_for(self):
        (self.path / "run").mkdir()
        with open(self.path / "run/run.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = self.started("train.steps=1")
            self.wait_for(process, lambda: self.has_open(process, "run.lock"))
            time.sleep(0.1)
            fcntl.flock(lock, fcntl.LOCK_UN)
            _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, said)

    @staticmethod
    def has_open(process, name):
        try:
            return any(os.readlink(link.path).endswith(name) for link in os.scandir(f"/proc/{process.pid}/fd"))
        except OSError:
            return False

    def test_overwriting_removes_what_braid_wrote_and_nothing_else(self):
        self.trained("train.sample_prompt=the", "train.sample_tokens=1")
        run = self.path / "run"
        self.assertEqual(self.braid("report", "run").returncode, 0)
        (run / "step-4.tmp").mkdir()
        (run / "step-4.tmp" / "model.safetensors").write_text("half")
        (run / "metrics.jsonl.tmp").write_text("half")
        (run / "timeline.svg.tmp").write_text("half")
        shutil.copytree(run / "step-3", run / "step-5.undone")
        mine = ["notes.txt", "step-mine/model.safetensors", "step-07/manifest.json", "tensorboard/notes.txt"]
        for name in mine:
            (run / name).parent.mkdir(exist_ok=True)
            (run / name).write_text("mine")
        (run / "step-3" / "scores.json").write_text("mine")
        self.assertIn("run/step-3/scores.json", self.refused("train.overwrite=true"))
        (run / "step-3" / "scores.json").unlink()
        done = self.trained("train.overwrite=true", "train.steps=4", "train.save_every=2", "train.eval_every=2")
        self.assertIn("removed what an earlier run had left in run", done.stdout)
        kept = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
        events = {name for name in kept if name.startswith("tensorboard/events.")}
        self.assertEqual(len(events), 1)
        checkpoints = {f"step-{step}/{name}" for step in (2, 4)
                       for name in ("manifest.json", "model.safetensors", "optimizer.safetensors")}
        self.assertEqual(kept - events - checkpoints,
                         {"config.toml", "metrics.jsonl", "run.lock", "timeline.svg", "trace.json", *mine})
        self.assertEqual(self.steps(), [1, 2, 3, 4])
        self.assertIn("overwrite = false", (run / "config.toml").read_text())

    def test_latest_and_a_runs_folder_are_its_newest_whole_checkpoint(self):
        self.trained("train.save_every=2")
        run = self.path / "run"
        weights = run / "step-6" / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1] + b"?")
        (run / "step-4" / "manifest.json").write_text("{")
        (run / "step-5").mkdir()
        (run / "step-8.tmp").mkdir()
        (run / "trace.json.tmp").write_text("half")
        sampled = self.braid("sample", "run", "--tokens", "3")
        self.assertEqual(sampled.returncode, 0, sampled.stderr)
        self.assertEqual(sampled.stdout, self.braid("sample", "run/step-2", "--tokens", "3").stdout)
        self.assertEqual([line.split(":")[1].split("/")[-2] for line in sampled.stderr.splitlines()],
                         ["step-6", "step-4"])
        elsewhere = self.trained("train.resume=run", "train.out=other")
        self.assertEqual(self.steps("other"), [3, 4, 5, 6])
        here = self.trained("train.resume=latest", "train.save_every=0")
        for done in (elsewhere, here):
            passed_over = [line for line in done.stdout.splitlines() if line.startswith("note   passed over ")]
            self.assertEqual(len(passed_over), 2, done.stdout)
            self.assertIn("run/step-6/model.safetensors", passed_over[0])
            self.assertIn("changed", passed_over[0])
            self.assertIn("run/step-4/manifest.json", passed_over[1])
        self.assertEqual(self.checkpoints(), ["step-2", "step-4.undone", "step-6", "step-6.undone"])
        self.assertEqual([path.name for path in run.glob("*.tmp")], [])

    def test_where_nothing_is_whole_there_is_one_message(self):
        self.assertIn('train.resume = "latest": ', self.refused("train.resume=latest"))
        self.assertFalse((self.path / "run").exists())
        self.assertIn("text holds none", self.refused("train.resume=text"))
        self.trained("train.save_every=0")
        (self.path / "run" / "step-6" / "model.safetensors").write_bytes(b"")
        for told in (self.refused("train.resume=latest"), self.refused("train.resume=run", "train.out=next"),
                     self.braid("sample", "run").stderr):
            self.assertEqual(len(told.splitlines()), 1, told)
            self.assertIn("must find a whole checkpoint; run holds none: run/step-6/model.safetensors", told)

    def test_going_back_takes_back_what_came_after(self):
        self.trained()
        gone_back = self.trained("train.resume=run/step-3/", "train.steps=5", "train.save_every=0")
        self.assertIn("set run/step-6 aside as run/step-6.undone: the run goes back to step 3", gone_back.stdout)
        self.assertEqual(self.steps(), [1, 2, 3, 4, 5])
        self.assertEqual(self.checkpoints(), ["step-3", "step-5", "step-6.undone"])
        self.assertEqual(self.evaluations(), [3, 5])
        self.assertIn("from run/step-5", self.trained("train.resume=latest", "train.steps=6").stdout)
        self.assertEqual(self.braid("sample", "run/step-6.undone", "--tokens", "1").returncode, 0)

    def test_old_checkpoints_go_and_the_best_is_remembered_by_the_metrics(self):
        words = ["train.save_every=1", "train.eval_every=1", "checkpoint.keep=2", "checkpoint.keep_best=1"]
        self.trained(*words, "train.steps=4")
        metrics = self.path / "run" / "metrics.jsonl"
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        for line in lines:  # as if the older of the two that are left had been the best of all
            if line["kind"] == "evaluation" and line["step"] == 3:
                line["validation_loss"] = 0.001
        metrics.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        (self.path / "run" / "step-1.removed").mkdir()
        self.trained(*words, "train.resume=latest", "train.steps=8")
        self.assertEqual(self.checkpoints(), ["step-3", "step-7", "step-8"])

    def test_an_evaluation_after_a_save_is_made_once_wherever_the_run_is_killed(self):
        each = ["train.steps=2", "train.eval_every=1", "train.save_every=1"]
        killed = self.started(*each, "train.eval_sequences=400000000")
        self.line_of(killed, "step 1  weights")  # the evaluation comes next
        killed.kill()
        killed.wait()
        with open(self.path / "run" / "metrics.jsonl", "a") as metrics:
            metrics.write('{"kind":"evaluation","step":1,"validation_lo')
        self.trained(*each, "train.resume=latest")
        self.assertEqual(self.evaluations(), [1, 2])
        self.trained(*each, "train.resume=run/step-1")  # as if it had been killed behind the evaluation
        self.assertEqual(self.evaluations(), [1, 2])
        self.trained(*each, "train.resume=run/step-1", "train.out=other")
        self.assertEqual(self.evaluations("other"), [2])

    def test_going_on_from_one_that_was_undone_sets_the_other_of_its_step_aside(self):
        self.trained()
        first = (self.path / "run/step-6/model.safetensors").read_bytes()
        self.trained("train.resume=run/step-3", "optimizer.lr=1e-3", "train.allow_change=[optimizer.lr]")
        second = (self.path / "run/step-6/model.safetensors").read_bytes()
        self.assertNotEqual(first, second)
        back = self.trained("train.resume=run/step-6.undone", "train.steps=7")
        self.assertIn("set run/step-6 aside as run/step-6.undone-2", back.stdout)
        self.assertEqual((self.path / "run/step-6.undone-2/model.safetensors").read_bytes(), second)
        self.assertEqual(self.checkpoints(), ["step-3", "step-6.undone", "step-6.undone-2", "step-7"])

    def test_a_folder_that_is_removed_under_its_run_ends_it_and_is_not_made_again(self):
        run = self.path / "run"
        for remove, words, said in ((shutil.rmtree, [], "run/metrics.jsonl: was removed while it was written"),
                                    (lambda run: run.rename(self.path / "moved"), ["train.save_every=40"],
                                     "run: is gone: there is no folder to save run/step-")):
            process = self.started(*ENDLESS, *words)
            self.line_of(process, "step 1")
            remove(run)
            told = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 3, told)
            self.assertTrue(told.startswith(f"braid: {said}"), told)
            self.assertEqual(len(told.splitlines()), 1, told)
            self.assertFalse(run.exists())

    def test_time_to_save_comes_at_the_same_step_on_every_rank(self):
        every = [f"step-{step}" for step in range(1, 7)]
        at_once = "train.save_minutes=1e-9"
        for out, words, saved in (("never", ["train.save_minutes=0"], ["step-6"]),
                                  ("not_yet", [], ["step-6"]),
                                  ("at_once", [at_once, "mesh.pipe=2", "mesh.data=2"], every)):
            self.trained("train.save_every=0", f"train.out={out}", "train.eval_every=0", *words)
            self.assertEqual(self.checkpoints(out), saved, out)

    def test_the_demo_overwrites_its_own_folder_and_no_other(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(f"{folder}/scripts")
            os.makedirs(f"{folder}/build/release/bin")
            shutil.copy(SOURCE / "scripts" / "demo", f"{folder}/scripts/demo")
            for name, text in (("scripts/setup", "true"), ("scripts/build", "true"),
                               ("build/release/bin/braid", 'printf "%s\\n" "$@"')):
                with open(f"{folder}/{name}", "w") as script:
                    script.write(f"#!/bin/sh\n{text}\n")
                os.chmod(f"{folder}/{name}", 0o755)

            def words(*given):
                return subprocess.run([f"{folder}/scripts/demo", *given], capture_output=True, text=True,
                                      check=True).stdout.splitlines()

            self.assertIn("train.overwrite=true", words("train.steps=3"))
            self.assertNotIn("train.overwrite=true", words("train.out=mine"))
            self.assertEqual(words("train.overwrite=false")[-1], "train.overwrite=false")


if __name__ == "__main__":
    unittest.main()
