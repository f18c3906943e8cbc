"""Two commands of one job on one host, as a user or torchrun starts them: what all nodes hear of a refusal and a signal, and
what a later attempt goes on from. Hosts that are apart: tests/hosts."""
import os
import shlex
import signal
import socket
import unittest

from braid_binary import BINARY
from job_options_test import LAUNCHERS, TORCHRUN
from tiny_run import ENDLESS, TinyRun

MESH = "mesh.data=2"
SERVED = ["sync.replication=parameter-server", "sync.servers=2"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class LoopbackJobs(TinyRun):
    def by_hand(self, *words):
        """Both nodes of a job."""
        root = f"127.0.0.1:{free_port()}"
        return [self.started(MESH, *words, "--nodes", "2", "--node", str(node), "--root", root) for node in range(2)]

    def without_launchers(self):
        return {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}

    def by_torchrun(self, run_id, attempt, *words):
        """As the agent of that run starts them, which this program is."""
        kept = self.without_launchers()
        said = TORCHRUN | {"TORCHELASTIC_RUN_ID": run_id, "TORCHELASTIC_RESTART_COUNT": str(attempt),
                           "MASTER_PORT": str(free_port() - 1)}
        return [self.started(MESH, *words, env=kept | said | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
                for rank in range(2)]

    def by_mpirun(self, *words):
        """As mpirun of Open MPI starts them, which this program is."""
        said = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        return [self.started(MESH, *words, env=self.without_launchers() | said | {
            "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_RANK": str(rank)}) for rank in range(2)]

    def ended(self, nodes, code):
        """What each has said on standard output and standard error."""
        told = [node.communicate(timeout=120) for node in nodes]
        self.assertEqual([node.returncode for node in nodes], [code, code], told)
        return told

    def test_a_later_attempt_goes_on_from_what_its_own_run_has_left_and_no_other(self):
        self.ended(self.by_torchrun("first", 0), 0)
        told = self.ended(self.by_torchrun("first", 1, "train.steps=9"), 0)
        self.assertIn("resumed at step 6 from ", told[0][0])
        placement = f"{socket.gethostname()} has rank 0, 1; inside a host data\n"
        self.assertEqual([placement in said for said, _ in told], [True, False], "a launcher shows both")
        self.assertTrue(told[1][0].endswith(f"\nthe run has ended; node 0 on {socket.gethostname()} says how\n"), told[1])
        for said, why in self.ended(self.by_torchrun("second", 1, "train.steps=12"), 2):
            self.assertIn('train.out = "run": holds an earlier run', why)
        self.assertEqual(self.checkpoints(), ["step-3", "step-6", "step-9"])

    def test_plain_variables_start_a_job(self):
        said = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        nodes = [self.started(MESH, env=self.without_launchers() | said | {"RANK": str(rank)}) for rank in range(2)]
        for out, _ in self.ended(nodes, 0):
            self.assertIn(f"has rank 0; {socket.gethostname()} has rank 1; across hosts data\n", out)

    def test_the_last_nodes_run_the_servers(self):
        self.trained(MESH, *SERVED, "train.out=beside")
        host = socket.gethostname()
        for out, _ in self.ended(self.by_hand(*SERVED, "sync.servers_on=own"), 0):
            self.assertIn(f"{host} has rank 0, 1; {host} has server 0, 1; inside a host data\n", out)
        self.assertEqual(self.losses(), self.losses("beside"))

    def test_signals_to_a_node_that_runs_only_servers_save_and_stop_the_run(self):
        nodes = self.by_hand(*ENDLESS, *SERVED, "sync.servers_on=own")
        self.line_of(nodes[0], "step 1/")
        nodes[1].send_signal(signal.SIGUSR1)
        self.wait_for(nodes[0], self.checkpoints)
        nodes[1].send_signal(signal.SIGTERM)
        (said, _), (closing, why) = self.ended(nodes, 143)
        self.assertEqual(len(self.checkpoints()), 2)
        self.assertIn("\ninterrupted by SIGTERM: stopped cleanly after step ", said)
        self.assertIn("\ninterrupted by SIGTERM; node 0 ", closing)
        self.assertEqual(why, "braid: SIGUSR1: the run is saved after this step and continues\n"
                              "braid: SIGTERM: the step is finished and saved; another signal, a moment from now, ends at once\n")

    def test_a_signal_prints_the_command_that_resumes_before_anything_is_saved(self):
        """mpirun may kill the ranks while they save, and reads no output meanwhile."""
        nodes = self.by_mpirun(*ENDLESS)
        self.line_of(nodes[0], "step 1/")
        for node in nodes:
            node.send_signal(signal.SIGTERM)
        (_, told), (_, told_by_other) = self.ended(nodes, 143)
        head, note, command = told.splitlines()
        self.assertEqual(told_by_other.splitlines(), [head])
        self.assertIn("ends the ranks first, this resumes from the newest whole checkpoint:", note)
        self.assertEqual(shlex.split(command)[:3], [BINARY, "train", "run.toml"])
        self.assertEqual(shlex.split(command)[-1], "train.resume=run")
        command = [word for word in shlex.split(command)[1:] if word != "train.steps=100000"]
        step = int(self.checkpoints()[0].removeprefix("step-"))
        done = self.braid(*command, f"train.steps={step + 1}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"resumed at step {step} from run/step-{step}", done.stdout)

    def test_servers_with_which_no_equal_blocks_are_left_are_refused(self):
        job = ["--nodes", "2", "--node", "0", "--root", f"127.0.0.1:{free_port()}"]
        done = self.braid("train", "run.toml", MESH, *SERVED, "sync.servers=3", "sync.servers_on=own", *job)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("must leave a multiple of 2 ranks, as many for each host, and leaves 5, of which 3 are servers",
                      done.stderr)

    def test_a_shell_of_srun_trains_on_its_own_ranks(self):
        shell = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_LOCALID": "0", "SLURM_NODEID": "0",
                 "SLURM_STEP_NODELIST": "n1", "SLURM_STEP_TASKS_PER_NODE": "1", "SLURM_JOB_ID": "17"}
        process = self.started(MESH, env=self.without_launchers() | shell)
        out, why = process.communicate(timeout=120)
        self.assertEqual((process.returncode, why), (0, ""))
        self.assertIn("data 2 x tensor 1 = 2 ranks", out)

    def test_what_node_0_refuses_is_told_on_the_others(self):
        (self.path / "run").write_text("a file")
        told = self.ended(self.by_hand(), 2)
        rule = 'train.out = "run": must be a folder that can be made: '
        self.assertIn(rule, told[0][1])
        self.assertIn(f"node 0 on {socket.gethostname()}: {rule}", told[1][1])

    def test_a_token_is_called_as_it_was_given(self):
        job = ["--nodes", "2", "--root", f"127.0.0.1:{free_port()}"]
        nodes = [self.started(MESH, "--node", str(node), *job, env=os.environ | {"BRAID_TOKEN": str(node) * 64})
                 for node in range(2)]
        self.line_of(nodes[1], "waits for node 0: node 1 is refused: the token (BRAID_TOKEN) is another than node 0's")
        self.assertIsNone(nodes[1].poll())  # anybody could have said so

    def test_what_another_node_cannot_read_is_told_on_node_0(self):
        elsewhere = self.path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "run.toml").write_text((self.path / "run.toml").read_text())
        (elsewhere / "text").symlink_to("text")  # to itself
        words = [MESH, f"train.out={self.path}/run", "--nodes", "2", "--root", f"127.0.0.1:{free_port()}", "--node"]
        told = self.ended([self.started(*words, "0"), self.started(*words, "1", cwd=elsewhere)], 3)
        self.assertIn(f"node 1 on {socket.gethostname()}: text: cannot be looked at: ", told[0][1])
        self.assertTrue(told[1][1].startswith("braid: text: cannot be looked at: "), told[1][1])

    def test_a_signal_while_another_node_is_awaited_ends_at_once(self):
        for node in range(2):
            process = self.started(MESH, "--nodes", "2", "--node", str(node), "--root", f"127.0.0.1:{free_port()}")
            self.line_of(process, "waits for all 2 nodes at ")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.communicate(timeout=60)[1],
                             "braid: SIGINT before the first step: there was nothing to save\n")
            self.assertEqual(process.returncode, 130)

    def test_a_signal_to_a_node_before_its_ranks_run_is_one_to_all(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            nodes = self.by_hand(*ENDLESS, "train.overwrite=true")
            self.line_of(nodes[1], "note ")
            nodes[1].send_signal(number)
            self.ended(nodes, code)

    def test_sigusr1_to_a_node_saves_once_and_an_end_says_how_every_host_goes_on(self):
        nodes = self.by_hand(*ENDLESS)
        self.line_of(nodes[0], "step 1/")
        nodes[1].send_signal(signal.SIGUSR1)
        self.wait_for(nodes[0], self.checkpoints)
        saved = max(line.get("step", 0) for line in self.metrics())
        self.line_of(nodes[0], f"step {saved + 20}/")
        self.assertEqual(len(self.checkpoints()), 1)
        nodes[1].send_signal(signal.SIGTERM)
        (said, _), (closing, _) = self.ended(nodes, 143)
        self.assertIn(f"\ninterrupted by SIGTERM; node 0 on {socket.gethostname()} prints the command that resumes it", closing)
        self.assertIn("every host takes it up with its own --node", said)
        words = shlex.split(said.splitlines()[-1])
        start = words.index("--nodes")
        self.assertEqual(words[start:start + 5], ["--nodes", "2", "--node", "0", "--root"])


if __name__ == "__main__":
    unittest.main()
