"""A run with asynchronous parameter servers of their own goes on without workers that are killed: it ends well, names
each once, trains on every share of the samples, and its checkpoints load on every mesh. With BRAID_FULL=1 there are 100
kills. Everything else that is lost restarts the run."""
import json
import os
import random
import signal
import unittest

from process_ranks_test import PROCESSES, ranks_of
from tiny_run import TinyRun

FULL = bool(os.environ.get("BRAID_FULL"))
STEPS, WORKERS = 70, 4
SERVED = [f"mesh.data={WORKERS}", "sync.replication=parameter-server", "sync.servers_on=own", PROCESSES,
          "train.batch=8", f"train.steps={STEPS}", "train.save_every=20", "train.eval_every=40", "train.overwrite=true"]
ASP = [*SERVED, "sync.consistency=asp"]
KILLS = 100 if FULL else 10


class LostWorkers(TinyRun):
    def killed(self, kills, *words):
        """What a run says whose workers are killed: `kills` are (step, worker), in the order of the steps that rank 0
        has printed before."""
        process = self.started(*words)
        ranks, said = {}, []
        for step, worker in kills:
            for line in process.stdout:
                said.append(line)
                if line.startswith(f"step {step}/"):
                    break
            ranks = ranks or ranks_of(process)
            os.kill(ranks[worker], signal.SIGKILL)
        rest, told = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, told)
        return "".join(said) + rest, told

    def lost(self):
        return sorted(line["worker"] for line in self.metrics() if line["kind"] == "lost_worker")

    def updates(self, step=STEPS, out="run"):
        """How many pushes the servers had applied at a checkpoint."""
        manifest = json.loads((self.path / out / f"step-{step}" / "manifest.json").read_text())
        return manifest["counters"].get("optimizer_steps", manifest["step"])

    def test_every_share_of_the_samples_is_trained_on_once_whenever_workers_are_killed(self):
        draws = random.Random(31)
        left = KILLS
        while left > 0:
            victims = draws.sample(range(1, WORKERS), min(left, draws.randint(1, WORKERS - 1) if FULL else WORKERS - 1))
            steps = sorted(draws.sample(range(3, STEPS - 5), len(victims)))
            servers = draws.randint(1, 2)
            kills = list(zip(steps, victims))
            with self.subTest(kills=kills, servers=servers):
                said, _ = self.killed(kills, *ASP, f"sync.servers={servers}")
                self.assertEqual(self.lost(), sorted(victims))
                for worker in victims:
                    self.assertEqual(said.count(f"lost   worker {worker}, "), 1)
                self.assertNotIn("restart", said)
                # A push that reached one of two servers only is made again: the other server then has it twice.
                most = len(victims) if servers > 1 else 0
                self.assertLessEqual(0, self.updates() - STEPS * WORKERS)
                self.assertLessEqual(self.updates() - STEPS * WORKERS, most)
                losses = self.losses()
                self.assertEqual(len(losses), STEPS)
                self.assertLess(sum(losses[-10:]), sum(losses[:10]))
                evaluated = [line["step"] for line in self.metrics() if line["kind"] == "evaluation"]
                self.assertEqual(evaluated, [40, STEPS])
                self.assertIn(f"step-{STEPS}", self.checkpoints())
            left -= len(victims)

    def test_a_worker_that_is_killed_at_the_end_leaves_a_whole_run(self):
        draws = random.Random(32)
        for _ in range(20 if FULL else 1):
            worker = draws.randrange(1, WORKERS)
            with self.subTest(worker=worker):
                said, _ = self.killed([(STEPS, worker)], *ASP)
                self.assertIn(self.lost(), ([], [worker]))
                self.assertEqual(self.updates(), STEPS * WORKERS)
                self.assertIn("validation loss", said)

    def test_the_last_checkpoint_loads_on_every_mesh_and_a_resumed_run_has_all_workers_again(self):
        self.killed([(30, 2), (50, 3)], *ASP, "sync.servers=2")
        more = ["train.resume=run/step-70", "train.steps=74", "train.eval_every=0", "train.save_every=0",
                "train.batch=8", "train.out=again", "train.overwrite=true"]
        for mesh in (["mesh.data=1"], ["mesh.pipe=2"], ["mesh.tensor=2"], ["mesh.data=2", "sync.zero=3"]):
            with self.subTest(mesh=mesh):
                self.trained(*more, *mesh, 'train.allow_change=["sync.replication", "sync.consistency"]')
                self.assertEqual(len(self.losses("again")), 4)
        self.trained(*ASP, "sync.servers=2", *more)
        run, = [line for line in self.metrics("again") if line["kind"] == "run"]
        self.assertEqual((run["ranks"], run["servers"]), (WORKERS, 2))
        self.assertFalse([line for line in self.metrics("again") if line["kind"] == "lost_worker"])
        self.assertEqual(self.updates(74, "again"), 74 * WORKERS)

    def test_rank_0_a_server_and_a_worker_under_bsp_restart_the_run(self):
        others = ((ASP, WORKERS), ([*SERVED, "sync.consistency=ssp"], 2), ([*ASP, "sync.push_every=2"], 2))
        for words, rank in ((ASP, 0), ([*SERVED, "sync.consistency=bsp"], 2), *(others if FULL else ())):
            with self.subTest(words=words[-1], rank=rank):
                said, told = self.killed([(45, rank)], *words)
                self.assertRegex(told, f"rank {rank}: killed by signal 9")
                self.assertRegex(said, "restart 1 of 3, from run/step-[24]0")
                self.assertEqual(self.lost(), [])

    def test_fewer_workers_do_not_begin_to_measure_and_their_rate_counts_the_shares_that_they_read(self):
        words = [*ASP, "model.width=64", "model.context=64", "train.batch=80", "train.steps=16", "train.save_every=4",
                 "train.eval_every=0"]
        self.killed([(2, 3)], *words)
        lines = self.metrics()
        begun, = [line for line in lines if line["kind"] == "run"]
        tokens = 80 * 64
        flops = begun["model_flops_per_token"] * tokens
        self.assertLess(flops / WORKERS, 1e9)  # too few to measure, unless each worker has those of a lost one too
        self.assertGreater(flops / (WORKERS - 1), 1e9)
        self.assertEqual([line["kind"] for line in lines if line["kind"] in ("peak", "prediction")], [])
        noticed, = [line["step"] for line in lines if line["kind"] == "lost_worker"]
        read = [line["tokens_per_second"] * line["seconds"] / tokens for line in lines if line["kind"] == "step"]
        self.assertEqual({round(each, 6) for each in read[:noticed]}, {1})
        for step in range(noticed, 14):  # three workers read four shares: each of them two in one step of three
            self.assertEqual(sorted(round(each, 6) for each in read[step:step + 3]), [0.75, 0.75, 1.5])

    def test_a_run_without_restarts_that_loses_rank_0_ends_by_name(self):
        process = self.started(*ASP, "run.max_restarts=0")
        self.line_of(process, "step 20/")
        ranks = ranks_of(process)
        for rank in (3, 2, 1, 0):
            os.kill(ranks[rank], signal.SIGKILL)
        _, told = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, told)
        self.assertIn("rank 0: killed by signal 9", told)


if __name__ == "__main__":
    unittest.main()
