"""Checkpoints that are written while training goes on: the same bytes on threads and processes, and what signals leave."""
import signal
import unittest

from tiny_run import ENDLESS, TinyRun

ASYNC = "checkpoint.async=true"
LARGE = ["model.width=256", "model.layers=4", "model.context=32"]


class AsyncSaves(TinyRun):
    def tensors(self, out):
        return {f"{file.parent.name}/{file.name}": file.read_bytes()
                for file in sorted((self.path / out).glob("step-*/*.safetensors"))}

    def test_threads_and_processes_leave_what_a_run_that_waits_leaves(self):
        words = ["mesh.data=2", "train.save_every=2", "sync.zero=2"]
        self.trained(*words)
        waited = self.tensors("run")
        self.assertEqual(len(waited), 3 * 4)
        for ranks in ("threads", "processes"):
            done = self.trained(*words, ASYNC, f"run.ranks={ranks}", f"train.out={ranks}")
            self.assertEqual(self.tensors(ranks), waited)
            said = [line for line in done.stdout.splitlines() if "weights and optimizer in" in line]
            self.assertEqual([line.split()[1] for line in said], ["2", "4", "6"])

    def test_too_little_room_for_a_copy_is_said_before_an_earlier_run_is_removed(self):
        self.trained()
        before = self.checkpoints(), self.metrics()
        done = self.braid("train", "run.toml", ASYNC, "checkpoint.host_gib=1e-6", "train.overwrite=true")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("checkpoint.host_gib", done.stderr)
        self.assertEqual((self.checkpoints(), self.metrics()), before)

    def test_a_signal_waits_for_the_one_under_way_and_saves(self):
        process = self.started(*ENDLESS[:1], "train.eval_every=0", "train.save_every=1", ASYNC, *LARGE)
        self.line_of(process, "step 2  weights")
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read()
        self.assertEqual(process.wait(timeout=120), 143, process.stderr.read())
        last = [line for line in self.metrics() if line["kind"] == "step"][-1]["step"]
        self.assertIn(f"step {last}  weights and optimizer in run/step-{last}", said)
        self.assertEqual(len(self.checkpoints()), last)
        self.assertEqual(list((self.path / "run").glob("*.tmp*")), [])
        self.trained("train.resume=latest", f"train.steps={last + 1}", *LARGE)

    def test_killed_while_one_is_written_the_one_before_it_is_whole(self):
        process = self.started(*ENDLESS[:1], "train.eval_every=0", "train.save_every=1", ASYNC, *LARGE)
        self.line_of(process, "step 2  weights")
        self.wait_for(process, lambda: any((self.path / "run").glob("step-*.tmp*/*.safetensors")))
        process.kill()
        process.wait()
        self.assertGreaterEqual(len(self.checkpoints()), 2)
        last = max(int(name.removeprefix("step-")) for name in self.checkpoints())
        done = self.trained("train.resume=latest", f"train.steps={last + 1}", *LARGE)
        self.assertIn(f"resumed at step {last} from run/step-{last}", done.stdout)
        self.assertEqual(list((self.path / "run").glob("*.tmp*")), [])


if __name__ == "__main__":
    unittest.main()
