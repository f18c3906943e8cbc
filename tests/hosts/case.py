"""What the tests of this folder share: one network of hosts, folders of their own, nothing left behind."""
import functools
import os
import pathlib
import re
import tempfile
import time
import unittest

from job import STEPS, Job, Survivor
from namespaces import Network, processes

FULL = "BRAID_FULL" in os.environ
NUM_HOSTS = 4


@functools.cache
def network():
    return Network(NUM_HOSTS)


@functools.cache
def references():
    return tempfile.TemporaryDirectory(prefix="references-")


@functools.cache
def one_process(words):
    """The state at the end of the same training by the threads of one process, to which nothing happens."""
    run = Survivor(pathlib.Path(references().name) / re.sub("[^a-z0-9]+", "-", " ".join(words)), list(words))
    run.finish()
    return run.state()


class HostsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="job-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.network = network()
        self.addCleanup(self.network.mend)
        self.jobs = 0

    def job(self, *words, num_nodes=2, **options):
        self.jobs += 1
        job = Job(self.network, self.path / f"job{self.jobs}", list(words), num_nodes, **options)
        self.addCleanup(job.end)
        return job

    def expect_codes(self, job, *codes):
        self.assertEqual(job.ended(), list(codes), job.told())

    def expect_the_same_end(self, job, but=()):
        """That of one process, whatever has happened before. `but`: words of this run that change no bit."""
        job.finish()
        wanted = one_process(tuple(word for word in job.words if word not in but))
        found = job.state()
        for what in wanted:
            self.assertEqual(found[what], wanted[what], what)
        self.assertEqual(job.leftovers(), [])

    def expect_nothing_left(self):
        deadline = time.monotonic() + 20
        while processes() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(processes(), {})
        self.assertEqual([socket for host in self.network.hosts for socket in host.sockets()], [])
        self.assertEqual(os.listdir("/dev/shm"), [])
        ours = {self.path.name, pathlib.Path(references().name).name}
        found = [name for name in os.listdir(tempfile.gettempdir()) if not name.startswith("torchelastic_")]
        self.assertEqual(set(found) - ours, set())
