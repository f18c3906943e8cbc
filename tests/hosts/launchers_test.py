"""The same training where a launcher starts the ranks: torchrun, which starts what has failed again by itself, and mpirun,
which ends. With BRAID_FULL=1 only. They are looked for on the path, torchrun in BRAID_TORCHRUN too; what is not there is
skipped, in print."""
import os
import pathlib
import shutil
import signal
import unittest

from case import FULL, HostsTest
from job import BINARY, PORT, STEPS, Node
from namespaces import processes

TORCHRUN = os.environ.get("BRAID_TORCHRUN") or shutil.which("torchrun")
MPIRUN = shutil.which("mpirun")
OPEN_MPI = MPIRUN and (pathlib.Path(BINARY).parent / "libbraid_mpi_openmpi.so").exists()
DATA = ["mesh.data=4", "train.batch=16", "model.context=64"]
# Instead of ssh: mpirun calls it with a host and a command for its shell.
AGENT = """#!/bin/sh
host=$1; shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
"""


def names():
    """Of braid's processes, by number."""
    return {number: pathlib.Path(f"/proc/{number}/comm").read_text().strip()
            for number, words in sorted(processes().items()) if words.startswith(BINARY)}


def started_ranks():
    """What a launcher has started; each forks its rank, whose process has the rank's name."""
    return [number for number, name in names().items() if not name.startswith("rank ")]


def kill_rank(rank):
    for number, name in names().items():
        if name == f"rank {rank}":
            os.kill(number, signal.SIGKILL)


@unittest.skipUnless(FULL, "launchers: with BRAID_FULL=1")
class Launchers(HostsTest):
    def braid(self, job, *options):
        goes_on = "train.resume=run" if job.checkpoints() else "train.overwrite=true"
        return [BINARY, "train", "run.toml", "--token-file", job.token, *options, goes_on, *job.words]

    def torchrun(self, job):
        """An agent on each host, with two ranks; they find each other at the first."""
        words = [TORCHRUN, "--nnodes=2", "--nproc-per-node=2", "--max-restarts=3", "--monitor-interval=0.1",
                 "--rdzv-backend=c10d", f"--rdzv-endpoint={job.hosts[0].address}:{PORT}", "--no-python"]
        job.nodes = [Node(host, [*words, *self.braid(job)], job.path) for host in job.hosts]

    def mpirun(self, job, *options):
        agent = job.path / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        words = [MPIRUN, "--allow-run-as-root", "--mca", "plm_rsh_agent", agent, "--mca", "oob_tcp_if_include",
                 "10.77.0.0/24", "--host", "h0:2,h1:2", *options]
        job.nodes = [Node(job.hosts[0], [*words, *self.braid(job, "--root", f"h0:{PORT}")], job.path)]

    def struck(self, job, launch, strike):
        """Calls strike() while the job is at work."""
        for _ in range(5):
            launch(job)
            job.come_to_step(3)
            strike()
            if job.last_step() < STEPS:
                return
            job.ended()
            job.forget()
        self.fail("the training is always over before it is struck")

    def kill_started(self, victim):
        return lambda: os.kill(started_ranks()[victim], signal.SIGKILL)

    @unittest.skipUnless(TORCHRUN, "no torchrun here")
    def test_torchrun_starts_the_ranks(self):
        job = self.job(*DATA)
        self.torchrun(job)
        self.expect_codes(job, 0, 0)
        self.expect_the_same_end(job)
        self.expect_nothing_left()

    @unittest.skipUnless(TORCHRUN, "no torchrun here")
    def test_torchrun_starts_a_job_again_that_goes_on(self):
        for victim in (0, -1):
            with self.subTest(victim=victim):
                job = self.job(*DATA)
                self.struck(job, self.torchrun, self.kill_started(victim))
                self.expect_codes(job, 0, 0)
                self.assertRegex(job.told(), r"node [0-3] on h[01] has closed its connection")
                self.expect_the_same_end(job)
                self.expect_nothing_left()

    @unittest.skipUnless(MPIRUN, "no mpirun here")
    def test_a_signal_to_mpirun_saves(self):
        self.expect_saved(lambda job: self.mpirun(job, "--mca", "odls_base_sigkill_timeout", 8))  # seconds

    @unittest.skipUnless(TORCHRUN, "no torchrun here")
    def test_a_signal_to_torchrun_saves(self):
        self.expect_saved(self.torchrun)

    def expect_saved(self, launch):
        job = self.job(*DATA, "train.steps=100000", "train.save_every=0")

        def tell_all():  # an agent of torchrun that hears nothing starts its ranks again, and waits for the other
            for node in job.nodes:
                node.send(signal.SIGTERM)

        self.struck(job, launch, tell_all)
        job.ended()
        self.assertGreater(job.saved_step(), 0, job.told())
        self.assertEqual(job.saved_step(), job.last_step())
        self.expect_nothing_left()

    @unittest.skipUnless(MPIRUN, "no mpirun here")
    def test_mpirun_starts_the_ranks(self):
        job = self.job(*DATA)
        self.mpirun(job)
        self.expect_codes(job, 0)
        self.expect_the_same_end(job)

    @unittest.skipUnless(MPIRUN, "no mpirun here")
    def test_mpirun_ends_a_job_which_goes_on_when_it_is_started_again(self):
        job = self.job(*DATA)
        self.struck(job, self.mpirun, self.kill_started(-1))
        self.assertNotEqual(job.ended(), [0])
        self.assertRegex(job.told(), r"node [0-3] on h[01] has closed its connection")
        self.expect_nothing_left()
        self.mpirun(job)
        self.expect_codes(job, 0)
        self.expect_the_same_end(job)

    @unittest.skipUnless(OPEN_MPI, "Open MPI was not installed when braid was built")
    def test_mpi_between_hosts(self):
        engine = "run.engine=mpi"
        job = self.job(*DATA, engine)
        self.mpirun(job)
        self.expect_codes(job, 0)
        self.expect_the_same_end(job, but=[engine])
        job = self.job(*DATA, engine)
        self.struck(job, self.mpirun, lambda: kill_rank(3))
        self.assertNotEqual(job.ended(), [0])
        self.assertRegex(job.told(), "rank 3( on h1)?: killed by signal 9")
        self.expect_nothing_left()

    def with_variables(self, job, variables, *options):
        """The command on each host, as if a launcher had started it that sets these, by node."""
        job.nodes = [Node(host, ["env", *(f"{name}={value}" for name, value in variables(number).items()),
                                 *self.braid(job, *options)], job.path) for number, host in enumerate(job.hosts)]

    def test_the_variables_of_srun_are_enough(self):
        step = {"SLURM_STEP_NODELIST": "h[0-1]", "SLURM_NTASKS": 2, "SLURM_LOCALID": 0, "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}
        job = self.job("mesh.data=2")
        self.with_variables(job, lambda number: step | {"SLURM_PROCID": number, "SLURM_NODEID": number})
        self.expect_codes(job, 0, 0)
        self.expect_the_same_end(job)

    def test_pods_of_kubernetes_start_their_ranks_again_themselves(self):
        job = self.job("mesh.data=2", "train.batch=16", "model.context=64")

        def launch(job):
            self.with_variables(job, lambda number: {"JOB_COMPLETION_INDEX": number}, "--nodes", 2, "--root", f"h0:{PORT}")

        self.struck(job, launch, lambda: os.kill(job.rank(1), signal.SIGKILL))
        self.expect_codes(job, 0, 0)
        self.assertIn("restart 1 of 3", job.nodes[0].said)
        self.expect_the_same_end(job)


if __name__ == "__main__":
    unittest.main()
