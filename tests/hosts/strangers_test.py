"""A job among strangers: they take no more than their places and nobody's time, and find no other door than the one that the
job was given."""
import pathlib
import subprocess
import sys
import unittest

from case import FULL, HostsTest
from job import PORT
from namespaces import CONNECTED, LISTENS, sockets_of

STRANGERS = pathlib.Path(__file__).parent / "strangers.py"
COUNT = 10_000 if FULL else 600
MOST_PENDING = 64
WORDS = ["run.heartbeat_seconds=0.5", "train.steps=100000", "train.save_every=0"]


class Strangers(HostsTest):
    def sockets(self, node):
        net = pathlib.Path(f"/proc/{node.process.pid}/net")
        return sockets_of((net / "tcp").read_text() + (net / "tcp6").read_text())

    def accepted(self, node):
        """Where those are whom it has taken in at its door."""
        lines = pathlib.Path(f"/proc/{node.process.pid}/net/tcp").read_text().splitlines()[1:]
        words = [line.split() for line in lines]
        return {remote for _, local, remote, state, *_, inode in (word[:10] for word in words)
                if local.endswith(f":{PORT:04X}") and state == CONNECTED and inode != "0"}

    def test_a_crowd_disturbs_nobody(self):
        job = self.job("mesh.data=2", *WORDS)
        job.start()
        job.come_to_step(2)
        step = job.last_step()
        words = [sys.executable, STRANGERS, job.hosts[0].address, PORT, COUNT]
        crowd = self.network.hosts[2].start(*words, stdout=subprocess.DEVNULL)
        accepted, before = 0, set()
        while crowd.poll() is None:
            now = self.accepted(job.nodes[0])
            accepted = max(accepted, len(now & before))  # a table is not read at one time; who is in two was there between
            before = now
        self.assertEqual(crowd.returncode, 0)
        self.assertGreater(accepted, MOST_PENDING // 2)
        self.assertLessEqual(accepted, MOST_PENDING + 1)  # and node 1
        job.come_to_step(max(step, job.last_step()) + 2)
        self.assertEqual([node.process.poll() for node in job.nodes], [None, None], job.told())
        self.assertEqual(job.told(), "h0: \nh1: ")

    def test_every_socket_that_listens_does_so_on_the_address_of_its_host(self):
        for engine in ("gloo", "tcp"):
            with self.subTest(engine=engine):
                job = self.job("mesh.data=2", *WORDS, "run.engine=" + engine)
                job.start()
                job.come_to_step(2)
                for host, node in zip(job.hosts, job.nodes):
                    own = "".join(f"{int(part):02X}" for part in reversed(host.address.split(".")))
                    doors = {address for address, _, state, _ in self.sockets(node) if state == LISTENS}
                    # Ranks of "tcp" do not listen once they are connected, so only node 0 does.
                    self.assertEqual(doors, set() if engine == "tcp" and host is not job.hosts[0] else {own}, host.name)
                job.end()


if __name__ == "__main__":
    unittest.main()
