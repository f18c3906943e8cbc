"""sync.servers_on = "own": the processes after those of the mesh are parameter servers. They train what servers beside the
ranks train, and a lost server or worker restarts the run from its checkpoint."""
import math
import os
import signal
import unittest

from process_ranks_test import PROCESSES, ranks_of
from tiny_run import TinyRun

SERVED = ["mesh.data=2", "sync.replication=parameter-server", "sync.servers=2"]
OWN = [*SERVED, "sync.servers_on=own", PROCESSES]
SLOW = "train.batch=32"  # a step takes longer than this program needs to read its line
# Fewer steps than are predicted: measuring rates for that looks like a hang if the cores are busy.
UNPREDICTED = [SLOW, "train.steps=999", "train.save_every=0", "train.eval_every=0"]


class OwnServers(TinyRun):
    def weights(self, out):
        return [path.read_bytes() for path in sorted((self.path / out / "step-6").glob("*.safetensors"))]

    def test_bulk_synchronous_training_has_the_bits_of_servers_beside_the_ranks(self):
        for mesh in ([], ["mesh.pipe=2"]):
            with self.subTest(mesh=mesh):
                self.trained(*SERVED, *mesh, "train.out=beside", "train.overwrite=true")
                said = self.trained(*OWN, *mesh, "train.overwrite=true").stdout
                self.assertEqual(self.losses(), self.losses("beside"))
                self.assertEqual(self.weights("run"), self.weights("beside"))
                self.assertRegex(said, "(?m)^mesh .* ranks of .* \\+ 2 servers, ")
        run, = [line for line in self.metrics() if line["kind"] == "run"]
        self.assertEqual((run["ranks"], run["servers"]), (4, 2))
        servers = [line for line in self.metrics() if line["kind"] == "memory"][-1]["peak_bytes"]["servers"]
        self.assertEqual(servers[:4], [0, 0, 0, 0])
        self.assertEqual(len(servers), 6)
        self.assertGreater(min(servers[4:]), 0)

    def test_replicas_that_run_apart_train(self):
        for consistency in ("ssp", "asp"):
            with self.subTest(consistency=consistency):
                self.trained(*OWN, f"sync.consistency={consistency}", "train.steps=20", "train.overwrite=true")
                self.assertEqual(len(self.losses()), 20)
                self.assertTrue(all(map(math.isfinite, self.losses())))
                self.assertLess(self.losses()[-1], self.losses()[0])

    def test_a_run_restarts_from_its_checkpoint_after_a_server_or_a_worker_was_killed(self):
        words = (*OWN, SLOW, "train.steps=12", "train.save_every=4")
        self.trained(*words, "train.out=whole")
        for rank, name in ((3, "server 1"), (1, "")):
            with self.subTest(rank=rank):
                process = self.started(*words, "train.overwrite=true")
                self.line_of(process, "step 4  weights and optimizer in ")
                os.kill(ranks_of(process)[rank], signal.SIGKILL)
                said, told = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 0, told)
                self.assertRegex(told.splitlines()[0], f"rank {rank}: killed by signal 9 .*{name}")
                self.assertRegex(said, "restart 1 of 3, from run/step-[48]")
                self.assertEqual(self.losses(), self.losses("whole"))

    def test_a_server_that_is_killed_or_hangs_ends_a_run_without_restarts_by_name(self):
        for number, why in ((signal.SIGKILL, "killed by signal 9"), (signal.SIGSTOP, "makes no progress")):
            with self.subTest(signal=number):
                process = self.started(*UNPREDICTED, *OWN, "run.max_restarts=0", "run.progress_seconds=1",
                                       "train.overwrite=true")
                self.line_of(process, "step 1/")
                os.kill(ranks_of(process)[2], number)
                _, told = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 3, told)
                self.assertRegex(told, f"rank 2: {why}.*server 0")

    def test_servers_of_their_own_without_a_parameter_server_are_refused(self):
        done = self.braid("train", "run.toml", "mesh.data=2", "sync.servers_on=own")
        self.assertEqual(done.returncode, 2)
        self.assertIn('sync.servers_on = "own": must be "ranks" with sync.replication = "all-reduce"', done.stderr)


if __name__ == "__main__":
    unittest.main()
