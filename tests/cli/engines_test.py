"""run.engine: every engine trains the same bits, on one host, and mpirun's ranks end as others do. MPIs that were not
installed when braid was built are named as skipped."""
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from braid_binary import BINARY
from tiny_run import ENDLESS, TinyRun, let_signals_through

MPIRUN = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"], "mpich": ["mpirun.mpich"]}
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
FULL = os.environ.get("BRAID_FULL") == "1"
WIDE = ["model.width=64"]  # shorter tensors are exchanged at one level
LAYOUTS = [
    (4, ["mesh.data=2", "mesh.pipe=2", "sync.zero=1"]),
    (4, ["mesh.data=4", "sync.zero=2", "train.microbatch=1", "mesh.ranks_per_node=2", *WIDE]),
    (2, ["mesh.data=2", "sync.replication=local-sgd", "sync.period=2"]),
    (4, ["mesh.data=2", "mesh.pipe=2", "sync.replication=parameter-server", "sync.servers=3", "train.reduction=fast"]),
]
MORE_LAYOUTS = [
    (4, ["mesh.tensor=2", "mesh.data=2", "sync.zero=2"]),
    (4, ["mesh.data=4", "sync.replication=local-sgd", "sync.period=2", "train.microbatch=1", "mesh.ranks_per_node=2", *WIDE]),
    (8, ["mesh.data=4", "mesh.pipe=2", "pipeline.schedule=dualpipe", "train.batch=16", "train.microbatch=1", "mesh.ranks_per_node=4",
         *WIDE]),
    (2, ["mesh.data=2"]), (2, ["mesh.pipe=2"]), (2, ["mesh.tensor=2"]), (4, ["mesh.data=4", "sync.zero=3", "train.microbatch=1"]),
    (2, ["mesh.data=2", "sync.compression=top-k", "train.reduction=fast"]),
    (2, ["mesh.data=2", "sync.replication=diloco", "sync.period=2"]), (2, ["mesh.pipe=2", "pipeline.schedule=zb-h1"]),
    (2, ["mesh.pipe=2", "pipeline.schedule=dualpipe", "train.batch=8"]), (4, ["mesh.pipe=2", "pipeline.schedule=gpipe", "mesh.tensor=2"]),
]


def installed_mpis():
    """Those that have an mpirun and a plug-in."""
    found = []
    for name, words in MPIRUN.items():
        if shutil.which(words[0]) and (pathlib.Path(BINARY).parent / f"libbraid_mpi_{name}.so").exists():
            found.append(name)
        else:
            print(f"skipped: {name}: not installed when braid was built (scripts/setup --mpi)")
    return found


class Engines(TinyRun):
    def run_command(self, command, *words):
        if not any(word.startswith("train.reduction=") for word in words):
            words = ["train.reduction=reproducible", *words]
        done = subprocess.run([*command, BINARY, "train", "run.toml", *words], cwd=self.path, env=os.environ | AS_ROOT,
                              capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def weights(self, name):
        return {path.name: path.read_bytes() for path in sorted((self.path / name / "step-6").glob("*.safetensors"))}

    def test_all_engines_train_the_same_bits(self):
        mpis = installed_mpis()
        for ranks, layout in LAYOUTS + (MORE_LAYOUTS if FULL else []):
            with self.subTest(layout=layout):
                again = [*layout, "train.overwrite=true"]
                self.run_command([], *again, "train.out=threads")
                for engine in ("shm", "tcp", "gloo"):
                    self.run_command([], *again, "run.ranks=processes", f"run.engine={engine}", f"train.out={engine}")
                for name in mpis:
                    self.run_command([*MPIRUN[name], "-np", str(ranks)], *again, "run.engine=mpi", f"train.out={name}")
                expected = self.weights("threads")
                self.assertGreater(len(expected), 1)
                for name in ("shm", "tcp", "gloo", *mpis):
                    self.assertTrue(self.weights(name) == expected, f"{name} differs")

    def ranks_of_this_test(self):
        """Processes of rank 1. Other tests may run ranks at the same time, which may end while this looks."""
        named = subprocess.run(["pgrep", "-x", "rank 1"], capture_output=True, text=True).stdout.split()
        ours = []
        for number in named:
            try:
                if pathlib.Path(os.readlink(f"/proc/{number}/cwd")) == self.path.resolve():
                    ours.append(int(number))
            except OSError:
                pass
        return ours

    def endless(self, name, out):
        """A run into `out`, after its first checkpoint."""
        words = [*MPIRUN[name], "-np", "2", BINARY, "train", "run.toml", "mesh.data=2", "run.engine=mpi", *ENDLESS,
                 "train.save_every=10", "run.progress_seconds=1", "train.out=" + out]
        with open(self.path / "output", "w") as output:
            run = subprocess.Popen(words, cwd=self.path, env=os.environ | AS_ROOT, stdout=output, stderr=output,
                                   preexec_fn=let_signals_through)
        self.addCleanup(run.kill)
        while not (self.path / out / "step-10").exists() and run.poll() is None:
            time.sleep(0.05)
        return run

    def output(self):
        return (self.path / "output").read_text(errors="replace")

    def ended(self, name, number, out):
        """Standard output and error of a run into `out` that is endless but for a signal to rank 1."""
        run = self.endless(name, out)
        ours = self.ranks_of_this_test()
        self.assertEqual(len(ours), 1)
        os.kill(ours[0], number)
        code, said = run.wait(timeout=60), self.output()
        # Until it has the code of a process whose connection is closed, MPICH's mpirun takes the wait status 1 for
        # it, which it calls a hangup. A process that ends with 1 has the status 256.
        hangup = name == "mpich" and "EXIT STRING: Hangup (signal 1)" in said
        self.assertEqual(code, 1 if hangup else 3, said)
        self.assertFalse(pathlib.Path(f"/proc/{ours[0]}").exists())
        return said

    def test_a_rank_of_mpirun_that_dies_or_stops_is_named_with_the_command_that_resumes(self):
        for name in installed_mpis():
            for number, why in [(signal.SIGKILL, "killed by signal 9"), (signal.SIGSTOP, "makes no progress")]:
                with self.subTest(mpi=name, signal=number):
                    out = f"{name}-{number.name}"
                    said = self.ended(name, number, out)
                    self.assertIn(f"rank 1: {why}", said)
                    self.assertRegex(said, f"(?m)^.*braid train run.toml .*train.resume={out}/step-[0-9]+$")

    def test_a_signal_to_mpirun_prints_the_command_that_resumes(self):
        """Open MPI's mpirun kills the ranks a second later and ends with 1; MPI_Finalize waits for it meanwhile. MPICH's
        lets them save. They end with 143, of which it does not always have the codes when it ends; then its own is 0."""
        codes = {"openmpi": [1], "mpich": [143, 0]}
        for name in installed_mpis():
            with self.subTest(mpi=name):
                run = self.endless(name, name)
                run.send_signal(signal.SIGTERM)
                self.assertIn(run.wait(timeout=60), codes[name])
                self.assertRegex(self.output(), f"(?m)^.*braid train run.toml .*train.resume={name}$")
                if name == "mpich":
                    self.assertIn("interrupted by SIGTERM: stopped cleanly", self.output())
                self.assertEqual(self.output().count("inside a host data"), 1, "only node 0 prints the placement")

    def test_a_plug_in_that_is_cut_short_is_refused(self):
        program = shutil.copy(BINARY, self.path)
        (self.path / "libbraid_mpi_openmpi.so").write_bytes(pathlib.Path(BINARY).read_bytes()[:4096])
        variables = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0",
                     "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
        done = subprocess.run([program, "train", "run.toml", "mesh.data=2", "run.engine=mpi"], cwd=self.path, text=True,
                              env=os.environ | variables, capture_output=True, timeout=100)
        self.assertEqual(done.returncode, 2, done.stderr)
        path = self.path.resolve() / "libbraid_mpi_openmpi.so"
        self.assertRegex(done.stderr, f'^run.engine = "mpi": cannot be used: {path} is cut short: it has 4096 of [0-9]+ bytes')

    def test_engines_that_do_not_fit_are_refused(self):
        for words, message in [
            (["run.engine=shm"], 'run.engine = "shm": needs run.ranks = "processes"'),
            (["run.engine=threads", "run.ranks=processes"], 'must be "shm", "tcp", "gloo" or "mpi" with run.ranks "processes"'),
            (["run.engine=shm", "--nodes", "2", "--node", "0", "--root", "127.0.0.1:4000"], 'must be "tcp", "gloo" or "mpi" on several hosts'),
            (["run.engine=mpi", "run.ranks=processes"], "must be used under mpirun"),
        ]:
            with self.subTest(words=words):
                done = self.braid("train", "run.toml", *words)
                self.assertEqual(done.returncode, 2)
                self.assertIn(message, done.stderr)
                self.assertFalse((self.path / "run").exists())


if __name__ == "__main__":
    unittest.main()
