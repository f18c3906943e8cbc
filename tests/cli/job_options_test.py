"""What a command says of its job, by words and by the variables of launchers: whatever does not fit together is told at once,
with exit code 2, before anybody is waited for."""
import os
import pathlib
import re
import tempfile
import unittest

from braid_binary import braid
from tiny_run import write_inputs

TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RESTART_COUNT": "0"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
BY_HAND = ["--nodes", "2", "--node", "0", "--root", "127.0.0.1:9"]
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_", "OMPI_", "SLURM_", "PMI_", "PET_", "JOB_COMPLETION_", "BRAID_TOKEN")


def braid_in(variables, *words, **options):
    """`braid WORDS` where these are the only variables of a launcher."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    return braid(*words, env=kept | variables, **options)


class JobOptions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def refused(self, lines, variables, *words):
        done = braid_in(variables, "doctor", *words)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.splitlines(), lines)

    def test_words_that_belong_together(self):
        rule = "must be given with the other two of --nodes, --node and --root"
        self.refused([f"--node: {rule}", f"--root: {rule}"], {}, "--nodes", "2")
        self.refused([f"--nodes: {rule}"], {}, "--node", "0", "--root", "127.0.0.1:9")
        self.refused(["--node = 2: must be less than --nodes (2); nearest valid is 1"], {}, "--nodes", "2", "--node", "2",
                     "--root", "127.0.0.1:9")
        self.refused(["--nodes = 0: Value 0 not in range 1 to 100000"], {}, "--nodes", "0")

    def test_training_is_told_the_same(self):
        (self.path / "run.toml").write_text('[data]\npaths = ["run.toml"]\n[model]\nwidth = 16\nheads = 2\n')
        done = braid_in({}, "train", str(self.path / "run.toml"), f'data.paths=["{self.path}/run.toml"]', "--nodes", "2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--root: must be given with the other two", done.stderr)

    def test_what_is_wrong_with_job_and_run_is_said_together(self):
        (self.path / "run.toml").write_text('[data]\npaths = ["run.toml"]\n[model]\nwidth = 16\nheads = 3\n')
        done = braid_in({"BRAID_TOKEN": "secret"}, "train", str(self.path / "run.toml"), 'run.placement="0,0"', "mesh.data=2",
                        "train.batch=4", "train.microbatch=1", *BY_HAND[:-1], "h0")
        self.assertEqual(done.returncode, 2)
        for start in ("--root = h0: must be HOST:PORT", "BRAID_TOKEN: must be 64", "model.heads = 3: ",
                      'run.placement = "0,0": must be "blocks" or a list of 2 hosts'):
            self.assertIn("\n" + start, "\n" + re.sub("(?m)^[^ ]*run.toml:[0-9]*: ", "", done.stderr))

    def test_words_against_a_launcher(self):
        self.refused(["--node = 1: must not be given: torchrun says it",
                      "--nodes = 3: must be what torchrun says; nearest valid is 2"], TORCHRUN, "--nodes", "3", "--node", "1")
        self.refused(["--nodes = 2: must be what Open MPI says; nearest valid is 4",
                      "--root: must be given: Open MPI names no address of its first host"], OPEN_MPI, "--nodes", "2")
        self.refused(["--nodes: must be given: Kubernetes does not say it"],
                     {"JOB_COMPLETION_INDEX": "0", "BRAID_TOKEN": "0" * 64})
        for index, nodes in (2, 2), (1, 1):
            rule = f"must be less than --nodes ({nodes}); nearest valid is {nodes - 1}"
            self.refused([f"JOB_COMPLETION_INDEX = {index}: {rule}"], {"JOB_COMPLETION_INDEX": str(index)}, "--nodes",
                         str(nodes), "--root", "127.0.0.1:9")

    def test_a_world_of_one_takes_the_words_of_a_command_for_many(self):
        (self.path / "token").write_text("0" * 64 + "\n")
        (self.path / "token").chmod(0o600)
        (self.path / "run.toml").write_text('[data]\npaths = ["run.toml"]\n[model]\nwidth = 16\nheads = 3\n')
        one = {name: "0" if "RANK" in name else "1" for name in OPEN_MPI}
        for words in ["--token-file", str(self.path / "token")], ["--root", "127.0.0.1:9"], ["--nodes", "1"]:
            done = braid_in(one, "train", str(self.path / "run.toml"), *words)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn("model.heads = 3", done.stderr, "the run alone is wrong")
        self.assertIn("--node: must be given", braid_in(one, "doctor", "--nodes", "2").stderr)

    def test_variables_that_contradict_each_other(self):
        said = "says that Open MPI started this, and TORCHELASTIC_RUN_ID that torchrun did: unset the variables of one"
        self.refused([f"OMPI_COMM_WORLD_RANK = 1: {said}"], TORCHRUN | OPEN_MPI)
        without = {name: value for name, value in TORCHRUN.items() if name != "WORLD_SIZE"}
        self.refused(["WORLD_SIZE: is not set, though TORCHELASTIC_RUN_ID says that torchrun started this"], without)
        self.refused(["RANK = 2: must be less than WORLD_SIZE (2)"], TORCHRUN | {"RANK": "2"})
        self.refused(["OMPI_COMM_WORLD_LOCAL_SIZE = x: must be a number, 0 or more"],
                     OPEN_MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "x"})

    def test_a_launcher_that_is_not_known_starts_no_run_of_each_rank(self):
        plain = {"RANK": "1", "WORLD_SIZE": "2"}
        address = ", or set MASTER_ADDR and MASTER_PORT too"
        for variables, names, size, more in ((plain, ("RANK", "WORLD_SIZE"), 2, address),
                                             ({"PMI_RANK": "0", "PMI_SIZE": "4"}, ("PMI_RANK", "PMI_SIZE"), 4, "")):
            self.refused([f"{names[1]} = {size}: says that {size} processes were started together, and no launcher that braid "
                          f"knows has: unset {names[0]} and {names[1]}, or give each its place by --nodes, --node and --root"
                          + more], variables)
            done = braid_in(variables, "doctor", *BY_HAND[:-1], "192.0.2.1:9")  # its place is given
            self.assertRegex(done.stderr, "^--root = 192.0.2.1:9: is reached by other hosts")

    def test_in_a_script_of_sbatch_a_note_says_that_the_command_runs_alone(self):
        done = braid_in({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, "doctor", "--ranks", "1", "--out", "/proc")
        self.assertEqual((done.returncode, done.stderr),
                         (0, "braid: SLURM_NTASKS = 8, and this runs alone: srun would start all of them\n"))

    def test_plain_variables_give_a_place_unless_words_do(self):
        plain = {name: TORCHRUN[name] for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
        rule = "must be given with the other two of --nodes, --node and --root"
        self.refused([f"--node: {rule}", f"--root: {rule}"], plain, "--nodes", "3")
        done = braid_in(plain | {"MASTER_ADDR": "192.0.2.1"}, "doctor")
        self.assertRegex(done.stderr, "^--root = 192.0.2.1:29500: is reached by other hosts, so the job needs a token")
        left_over = plain | {"RANK": "x", "MASTER_PORT": "none"}
        self.refused(["--node = 2: must be less than --nodes (2); nearest valid is 1"], left_over, "--nodes", "2", "--node", "2",
                     "--root", "127.0.0.1:4000")

    def test_an_index_of_kubernetes_alone_is_no_job(self):
        done = braid_in({"JOB_COMPLETION_INDEX": "3"}, "doctor", "--ranks", "1", "--out", "/proc")
        self.assertEqual((done.returncode, done.stderr),
                         (0, "braid: JOB_COMPLETION_INDEX = 3, and this runs alone: --nodes would join it with the other pods of "
                             "its job\n"))

    def test_tokens(self):
        rule = "must be 64 hexadecimal digits (what it is set to is not shown)"
        for secret in ("", "f" * 63, "g" * 64):
            self.refused([f"BRAID_TOKEN: {rule}"], {"BRAID_TOKEN": secret}, *BY_HAND)
        file = self.path / "token"
        self.assertEqual(braid("token", "--out", str(file)).returncode, 0)
        file.chmod(0o640)
        self.refused([f"--token-file = {file}: may be read or written by others: chmod 600 {file}"], {}, *BY_HAND,
                     "--token-file", str(file))
        file.chmod(0o600)
        file.write_text("secret")
        self.refused([f"--token-file = {file}: does not hold 64 hexadecimal digits, and nothing else"], {}, *BY_HAND,
                     "--token-file", str(file))
        self.refused([f"--token-file = {file}2: cannot be read: No such file or directory"], {}, *BY_HAND, "--token-file",
                     f"{file}2")

    def test_addresses(self):
        for address in ("127.0.0.1", ":9"):
            done = braid_in({}, "doctor", *BY_HAND[:-1], address)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, rf"^--root = {address}: must be [^\n]*\n$")
        done = braid_in({}, "doctor", *BY_HAND[:-1], "192.0.2.1:29500")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"^--root = 192.0.2.1:29500: is reached by other hosts, so the job needs a token [^\n]*\n$")

    def test_a_launcher_of_one_process_is_none(self):
        write_inputs(self.path)
        for out, alone in (("a", TORCHRUN | {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}),
                           ("b", OPEN_MPI | {name: "01"[name.endswith("SIZE")] for name in OPEN_MPI})):
            done = braid_in(alone, "train", "run.toml", "mesh.data=2", f"train.out={out}", cwd=self.path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"\nmesh .* = 2 ranks ")


if __name__ == "__main__":
    unittest.main()
