"""braid doctor: on one host, on two nodes of a job, under a launcher; its lines, its JSON, its cluster file. What it measures is
not judged."""
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import tomllib
import unittest

from braid_binary import BINARY, braid


def free_port():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return holder.getsockname()[1]


class Doctor(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def started(self, *words, program=BINARY, **options):
        process = subprocess.Popen([program, "doctor", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   **options)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def on_two_nodes(self, out, *words_of_root):
        """What node 0 and node 1 of a job print; each has one rank."""
        job = ["--nodes", "2", "--root", f"127.0.0.1:{free_port()}", "--ranks", "1"]
        nodes = [self.started("--node", "0", *job, "--out", out, *words_of_root),
                 self.started("--node", "1", *job, "--out", out)]
        ends = [node.communicate(timeout=120) for node in nodes]
        for node, (_, told) in zip(nodes, ends):
            self.assertEqual((node.returncode, told), (0, ""))
        return [said for said, _ in ends]

    def test_a_cluster_file_that_cannot_be_written_is_refused_before_anything_is_measured(self):
        for path, why in ((self.path / "none" / "x", "No such file or directory"), (self.path, "Is a directory")):
            done = braid("doctor", "--ranks", "1", "--cluster", str(path))
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", f"--cluster = {path}: cannot be written: {why}\n"))

    def test_one_host(self):
        cluster = self.path / "cluster.toml"
        done = braid("doctor", "--ranks", "2", "--out", str(self.path), "--cluster", str(cluster))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = re.findall(r"^(\w*) +(.*)$", done.stdout, re.M)
        titles = [title for title, _ in lines if title not in ("", "note")]
        self.assertEqual(titles, ["host", "pairs", "sum", "speed", "save"])
        self.assertTrue(lines[0][1].startswith(f"{socket.gethostname()}: "))
        self.assertRegex(done.stdout, r"\n +(.*; )?lo 127\.0\.0\.1")
        self.assertRegex(done.stdout, r"\npairs +1 in a host: median [\d.]+ us, [\d.]+ GB/s\n")
        self.assertRegex(done.stdout, r"\nsum +all-reduce over 2 ranks: 8 B [\d.]+ us, 64.0 KiB ")
        self.assertRegex(done.stdout, r"; disk writes [\d.]+ GB/s, reads [\d.]+ GB/s\n")
        self.assertEqual([name.name for name in self.path.iterdir()], ["cluster.toml"])

        found = tomllib.loads(cluster.read_text())
        self.assertEqual((found["name"], found["nodes"]), (socket.gethostname(), 1))
        kind, = found["devices"]
        self.assertEqual((kind["per_node"], kind["nodes"], kind["shared_cores"]), (2, 1, True))
        self.assertTrue(kind["name"].startswith("core"))
        numbers = [kind["memory_gib"], kind["memory_gbps"], *kind["peak_tflops"].values(), *found["node"].values(),
                   *found["disk"].values()]
        self.assertEqual(sorted(kind["peak_tflops"]), ["bfloat16", "float32"])
        self.assertEqual(sorted(found["node"]), ["latency_us", "link_gbps"])
        self.assertEqual(sorted(found["disk"]), ["read_gbps", "save_seconds", "write_gbps"])
        self.assertTrue(all(number > 0 for number in numbers), numbers)
        self.assertEqual(found["rates"], "measured")
        sums = found["all_reduce"]
        self.assertEqual({(row["ranks"], row["per_node"]) for row in sums}, {(2, 2)})
        self.assertGreater(len({row["mib"] for row in sums}), 1)
        self.assertNotIn("network", found)

    def test_two_nodes(self):
        cluster = self.path / "cluster.toml"
        root, other = self.on_two_nodes(str(self.path), "--cluster", str(cluster))
        self.assertEqual(other, "")
        self.assertEqual(len(re.findall("^host ", root, re.M)), 2)
        self.assertRegex(root, r"\npairs +1 across hosts: ")
        self.assertRegex(root, r"\nclock +rank 1 on \S+ is -?[\d.]+ ms ahead of rank 0's")
        found = tomllib.loads(cluster.read_text())
        self.assertEqual(found["nodes"], 2)
        self.assertEqual([(kind["nodes"], kind["per_node"]) for kind in found["devices"]], [(2, 1)])
        self.assertEqual(sorted(found["network"]), ["gbps", "latency_us"])
        self.assertNotIn("node", found)

    def test_versions_that_differ_are_said_and_measure_nothing(self):
        other = self.path / "braid"
        other.write_bytes(pathlib.Path(BINARY).read_bytes().replace(b"TCP and LibTorch ", b"TCB and LibTorch "))
        other.chmod(0o755)
        job = ["--nodes", "2", "--root", f"127.0.0.1:{free_port()}", "--ranks", "1", "--out", str(self.path)]
        nodes = [self.started("--node", "0", *job), self.started("--node", "1", *job, program=str(other))]
        for node in nodes:
            said, told = node.communicate(timeout=120)
            self.assertEqual((node.returncode, said), (2, ""), told)
            self.assertRegex(told, "^node 1 on .*: has braid .*, TCB and .*, node 0 braid .*, TCP and ")

    def test_as_json(self):
        found = json.loads(self.on_two_nodes("/proc", "--json")[0])
        self.assertEqual([(host["host"], host["ranks"]) for host in found["hosts"]], [(socket.gethostname(), 1)] * 2)
        self.assertEqual(found["host_of_rank"], [0, 1])
        self.assertEqual([link["ranks"] for link in found["links"]], [[0, 1]])
        self.assertEqual(found["sums"][0]["bytes"], 8)
        self.assertEqual([clock["rank"] for clock in found["clocks"]], [1])
        self.assertIsInstance(found["notes"], list)

    def test_ranks_that_a_launcher_started_on_one_host_are_one_host(self):
        variables = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        ranks = [self.started("--out", "/proc", env={"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank, **variables})
                 for rank in "01"]
        ends = [rank.communicate(timeout=120) for rank in ranks]
        self.assertEqual([(rank.returncode, told) for rank, (_, told) in zip(ranks, ends)], [(0, "")] * 2)
        self.assertEqual(len(re.findall("^host ", ends[0][0], re.M)), 1)
        self.assertRegex(ends[0][0], r"; 2 ranks\n")
        self.assertRegex(ends[0][0], r"\npairs +1 in a host: ")
        self.assertEqual(ends[1][0], "")

    @unittest.skipIf(os.sysconf("SC_NPROCESSORS_ONLN") < 2, "the host has one core")
    def test_cores_to_which_mpirun_binds_a_rank_are_not_those_of_the_host(self):
        variables = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        ranks = [self.started("--out", "/proc", env={"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank, **variables},
                              preexec_fn=self.bound_to_a_core) for rank in "01"]
        said = [rank.communicate(timeout=120)[0] for rank in ranks][0]
        cores = os.sysconf("SC_NPROCESSORS_ONLN")
        self.assertIn(f"host      {socket.gethostname()}: 1 of {cores} cores", said)
        self.assertIn(f"{socket.gethostname()}: the launcher has bound a rank to 1 of {cores} cores: mpirun --bind-to none\n", said)
        self.assertNotIn("wait for each other", said)

    @staticmethod
    def bound_to_a_core():
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])

    def test_what_looks_wrong_is_a_note(self):
        done = braid("doctor", "--ranks", "2", "--out", "/proc", preexec_fn=self.few_files)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\nnote +\S+: a process may open 64 files, and a rank of 2 may need 260: ulimit -n 260")
        self.assertRegex(done.stdout, r"\nnote +\S+: the disk was not measured: /proc/\S+: cannot create")
        self.assertNotIn("disk writes", done.stdout)

    @staticmethod
    def few_files():
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    def test_what_is_wrong(self):
        done = braid("doctor", "--out", str(self.path / "nowhere"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--out", done.stderr)
        done = braid("doctor", "--ranks", "0")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--ranks", done.stderr)


if __name__ == "__main__":
    unittest.main()
