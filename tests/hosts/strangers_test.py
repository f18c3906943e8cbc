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

    def test_a_crowd_disturbs_nobody(self):
        job = self.job("mesh.data=2", *WORDS)
        job.start()
        job.come_to_step(2)
        step = job.last_step()
        words = [sys.executable, STRANGERS, job.hosts[0].address, PORT, COUNT]
        crowd = self.network.hosts[2].start(*words, stdout=subprocess.DEVNULL)
        accepted = 0
        while crowd.poll() is None:
            accepted = max(accepted, sum(port == PORT and state == CONNECTED and taken
                                         for _, port, state, taken in self.sockets(job.nodes[0])))
        self.assertEqual(crowd.returncode, 0)
        self.assertGreater(accepted, MOST_PENDING // 2)
        self.assertLessEqual(accepted, MOST_PENDING + 1)  # and node 1
        job.come_to_step(max(step, job.last_step()) + 2)
        self.assertEqual([node.process.poll() for node in job.nodes], [None, None], job.told())
        self.assertEqual(job.told(), "h0: \nh1: ")

    def test_every_socket_that_listens_does_so_on_the_address_of_its_host(self):
        job = self.job("mesh.data=2", *WORDS)
        job.start()
        job.come_to_step(2)
        for host, node in zip(job.hosts, job.nodes):
            own = "".join(f"{int(part):02X}" for part in reversed(host.address.split(".")))
            doors = {address for address, _, state, _ in self.sockets(node) if state == LISTENS}
            self.assertEqual(doors, {own}, host.name)


if __name__ == "__main__":
    unittest.main()
