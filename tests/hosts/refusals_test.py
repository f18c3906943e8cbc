"""What is wrong with a job on several hosts is said before anything is computed or changed, by all nodes that can know it:
one clear message, exit code 2, and a job that was there before goes on."""
import secrets
import unittest

from case import HostsTest
from job import STEPS

MESH = "mesh.data=2"


class Refusals(HostsTest):
    def test_a_token_that_others_may_read(self):
        job = self.job(MESH)
        job.token.chmod(0o644)
        job.start()
        self.expect_codes(job, 2, 2)
        for node in job.nodes:
            self.assertRegex(node.told, r"--token-file = .*token: .*(chmod 600|0600|others)")

    def test_no_token_on_a_real_address(self):
        job = self.job(MESH)
        job.start(token_file=None)
        self.expect_codes(job, 2, 2)
        for node in job.nodes:
            self.assertEqual(node.told, "--root = 10.77.0.10:29500: is reached by other hosts, so the job needs a token "
                                        "(--token-file)\n")

    def test_configurations_that_differ_and_a_node_that_is_there_twice(self):
        job = self.job(MESH)
        job.nodes = [job.node(0), job.node(1, ["optimizer.lr=2e-2"])]
        self.expect_codes(job, 2, 2)
        for node in job.nodes:
            self.assertEqual(node.told, "node 1 on h1: has optimizer.lr = 0.02; node 0 optimizer.lr = 0.01\n")
        job.nodes = [job.node(0), job.node(1, node=0)]  # which has not the address
        self.assertEqual(job.ended(job.nodes[1:]), [2], job.told())
        self.assertIn("--root = 10.77.0.10:29500", job.nodes[1].told)

    def test_a_folder_that_is_not_shared(self):
        job = self.job(MESH)
        job.finish()
        before = job.state()
        hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs run && exec "$@"', "sh"]
        job.nodes = [job.node(0, [f"train.steps={STEPS + 1}"]), job.node(1, [f"train.steps={STEPS + 1}"], before=hidden)]
        self.expect_codes(job, 2, 2)
        for node in job.nodes:
            self.assertIn('train.out = "run": must be a folder that all hosts share: h1 does not see the one of h0',
                          node.told)
        self.assertEqual(job.state(), before)

    def with_other(self, job, mount):
        """The job where the second host has something else mounted at a folder of it."""
        other = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]
        job.nodes = [job.node(0), job.node(1, before=other)]
        self.expect_codes(job, 2, 2)
        return [node.told for node in job.nodes]

    def test_a_shared_folder_that_one_host_cannot_write(self):
        job = self.job(MESH)
        (job.path / "run").mkdir()
        for told in self.with_other(job, "mount --bind run run && mount -o remount,bind,ro run"):
            self.assertIn('train.out = "run": must be a folder that all hosts can write: h1 cannot: cannot be written: '
                          "Read-only file system", told)
        self.assertEqual(job.checkpoints(), [])

    def test_data_that_are_missing_or_others_on_one_host(self):
        job = self.job(MESH)
        here, there = self.with_other(job, "mount -t tmpfs tmpfs text")
        self.assertRegex(there, "^data.paths = ")
        self.assertEqual(here, f"node 1 on h1: {there}")
        for told in self.with_other(job, "mount -t tmpfs tmpfs text && printf %01000d 7 > text/0.txt"):
            self.assertEqual(told, "data.paths: must name the same files on all hosts; those of rank 1 on h1 are others\n")

    def test_a_second_job_on_the_port_of_another_and_a_token_of_another_job(self):
        job, other = self.job(MESH, "train.steps=100000"), self.job(MESH)
        other.token.write_text(secrets.token_hex(32) + "\n")
        job.start()
        job.come_to_step(2)
        other.start()
        self.assertEqual(job.ended([other.nodes[0]]), [2])
        self.assertIn("--root = 10.77.0.10:29500: another program listens there, perhaps another job",
                      other.nodes[0].told)
        refused = "waits for node 0: node 1 is refused: the token (--token-file) is another than node 0's"
        job.wait_until(lambda: refused in other.nodes[1].said)
        self.assertIsNone(other.nodes[1].process.poll())  # anybody could have said so
        late = job.node(1)
        self.assertEqual(job.ended([late]), [2], late.told)
        self.assertRegex(late.told, "late|begun|has all")
        step = job.last_step()
        job.come_to_step(step + 2)
        self.assertEqual([node.process.poll() for node in job.nodes], [None, None])


if __name__ == "__main__":
    unittest.main()
