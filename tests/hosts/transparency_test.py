"""Training on several hosts is the training of one process: the same weights, optimizer and losses, bit for bit, and on
the wire the bytes that the algorithms say."""
import json
import unittest

from case import FULL, HostsTest

# Words and the number of hosts; the first few are looked at in every run of the tests.
LAYOUTS = {
    "pipe 2 x data 2, zb-v": (["mesh.pipe=2", "mesh.data=2", "pipeline.schedule=zb-v", "model.layers=4",
                               "train.microbatch=1"], 4),
    "data 2 x tensor 2, zero 3, a list of hosts": (["mesh.data=2", "mesh.tensor=2", "sync.zero=3",
                                                    'run.placement="0,1,1,0"'], 2),
    "data 3, 3 servers on their own": (["mesh.data=3", "train.batch=6", "sync.replication=parameter-server",
                                        "sync.servers=3", "sync.servers_on=own", "train.reduction=fast"], 3),
    "data 3, 3 servers": (["mesh.data=3", "train.batch=6", "sync.replication=parameter-server", "sync.servers=3",
                           "train.reduction=fast"], 3),
    "pipe 2, 1f1b": (["mesh.pipe=2", "pipeline.schedule=1f1b"], 2),
    "tensor 2": (["mesh.tensor=2"], 2),
    "data 2": (["mesh.data=2"], 2),
    "data 4, 2 on a host": (["mesh.data=4", "train.microbatch=1"], 2),
    "data 4 on 4": (["mesh.data=4", "train.microbatch=1"], 4),
    "pipe 3, gpipe": (["mesh.pipe=3", "pipeline.schedule=gpipe", "model.layers=3"], 3),
    "pipe 4, 2 on a host": (["mesh.pipe=4", "pipeline.schedule=1f1b", "model.layers=4"], 2),
    "pipe 2, zb-v": (["mesh.pipe=2", "pipeline.schedule=zb-v", "model.layers=4"], 2),
    "zero 1": (["mesh.data=2", "sync.zero=1"], 2),
    "zero 2": (["mesh.data=4", "sync.zero=2", "train.microbatch=1"], 2),
    "zero 3": (["mesh.data=4", "sync.zero=3", "train.microbatch=1"], 4),
    "pipe 2 x tensor 2": (["mesh.pipe=2", "mesh.tensor=2"], 2),
    "pipe 2 x data 2 x tensor 2": (["mesh.pipe=2", "mesh.data=2", "mesh.tensor=2"], 4),
    "zero 1, pipe 2 x data 2": (["mesh.pipe=2", "mesh.data=2", "sync.zero=1", "train.microbatch=1"], 2),
    "data 4, 3 on a host": (["mesh.data=4", "train.microbatch=1", 'run.placement="0,1,1,1"'], 2),
}
STEPS = 24
LARGER = ["model.width=64", "model.context=64", "train.eval_every=0", "train.eval_sequences=2",
          "train.save_every=0", f"train.steps={STEPS}"]
FLOAT = 4  # bytes
HEADERS = 0.06  # of Ethernet, IP and TCP, and acknowledgements, by bytes
CONTROL = 200_000  # finding each other, heartbeats, what ranks tell each other each step


class Transparency(HostsTest):
    def test_bits_are_those_of_one_process(self):
        for name, (words, num_hosts) in list(LAYOUTS.items())[:None if FULL else 3]:
            with self.subTest(layout=name):
                where = [word for word in words if word.startswith(("run.placement", "sync.servers_on"))]
                self.expect_the_same_end(self.job(*words, num_nodes=num_hosts), but=where)

    def wire_bytes(self, job):
        """What its first host has sent, and what the metrics say of gradients. Its rank counts what it sends."""
        before = job.hosts[0].sent_bytes()
        job.start()
        self.expect_codes(job, *[0] * len(job.hosts))
        lines = (job.path / "run/metrics.jsonl").read_text().splitlines()
        told = [line["sync_bytes"] for line in map(json.loads, lines) if line["kind"] == "step"]
        counted = [line["bytes_across_nodes"] for line in map(json.loads, lines) if line["kind"] == "step"]
        self.assertEqual(len(told), STEPS)
        sent = job.hosts[0].sent_bytes() - before
        self.expect_about(sent, sum(counted))
        return sent, sum(told)

    def expect_about(self, found, wanted):
        self.assertGreater(found, wanted)
        self.assertLess(found, wanted * (1 + HEADERS) + CONTROL)

    def test_gradients_take_the_bytes_that_the_metrics_say(self):
        sent, told = self.wire_bytes(self.job("mesh.data=2", *LARGER))
        self.assertGreater(told, 10 * CONTROL)
        self.expect_about(sent, told)

    def test_a_pipeline_sends_its_activations(self):
        sent, told = self.wire_bytes(self.job("mesh.pipe=2", "pipeline.schedule=1f1b", "train.batch=16", *LARGER))
        activations = STEPS * 16 * 64 * 64 * FLOAT  # batch x context x width
        self.expect_about(sent, told + activations)  # told: a tied embedding's gradient


if __name__ == "__main__":
    unittest.main()
