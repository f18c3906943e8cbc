"""A training that several hosts make together, as a user starts it: the same command on each. Knows the user's commands
and the hosts (namespaces.py); the folder, and what is compared at the end, are those of tests/chaos/survivor.py."""
import os
import pathlib
import secrets
import shutil
import signal
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parent.parent / "chaos"))
from survivor import BINARY, STEPS, Survivor, ranks_of  # noqa: E402

PORT = 29500
MINUTE = 60


def let_signals_through():
    """In a child: a test may run where they are ignored, in the background of a script."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Node:
    """The command on one host, and what it says, in files: what outlives it may hold a pipe."""

    def __init__(self, host, words, path):
        self.host = host
        self.files = [path / f"{host.name}.{what}" for what in ("out", "err")]
        streams = [open(file, "w") for file in self.files]
        self.process = host.start(*words, cwd=path, stdout=streams[0], stderr=streams[1],
                                  preexec_fn=let_signals_through)
        for stream in streams:
            stream.close()

    @property
    def said(self):
        return self.files[0].read_text(errors="replace")

    @property
    def told(self):
        """On standard error."""
        return self.files[1].read_text(errors="replace")

    def ranks(self):
        return ranks_of(self.process)

    def send(self, number):
        self.process.send_signal(number)


class Job(Survivor):
    """On the first hosts of a network, or on `hosts`."""

    def __init__(self, network, path, words, num_nodes=2, after=None):
        super().__init__(path, words, after)
        self.hosts = network.hosts[:num_nodes]
        self.token = path / "token"
        if not self.token.exists():
            self.token.write_text(secrets.token_hex(32) + "\n")
            self.token.chmod(0o600)
        self.nodes = []

    def words_of(self, number, **but):
        """The command of a node; `but` are options of it that are otherwise, None for those that are not given."""
        options = {"nodes": len(self.hosts), "node": number, "root": f"{self.hosts[0].address}:{PORT}",
                   "token_file": self.token} | but
        given = [word for name, value in options.items() if value is not None
                 for word in ("--" + name.replace("_", "-"), str(value))]
        goes_on = "train.resume=run" if self.checkpoints() else "train.overwrite=true"
        return [BINARY, "train", "run.toml", *given, goes_on, *self.words]

    def node(self, number, words=(), before=(), **but):
        """The command of one node, with more `words`, and run by the words `before`."""
        return Node(self.hosts[number], [*before, *self.words_of(number, **but), *words], self.path)

    def start(self, **but):
        self.nodes = [self.node(number, **but) for number in range(len(self.hosts))]
        return self.nodes

    def ended(self, nodes=None):
        """Their exit codes, when all have ended."""
        deadline = time.monotonic() + 2 * MINUTE
        for node in nodes or self.nodes:
            node.process.wait(timeout=max(0, deadline - time.monotonic()))
        return [node.process.returncode for node in nodes or self.nodes]

    def end(self):
        for node in self.nodes:
            node.process.kill()
            node.process.wait()

    def forget(self):
        """As if it had never begun."""
        shutil.rmtree(self.path / "run", ignore_errors=True)

    def finish(self):
        if self.saved_step() == STEPS:
            return
        self.start()
        codes = self.ended()
        assert set(codes) == {0}, (codes, [node.told for node in self.nodes])

    def wait_until(self, came):
        """Or until a node has ended."""
        deadline = time.monotonic() + 2 * MINUTE
        while not came() and all(node.process.poll() is None for node in self.nodes):
            assert time.monotonic() < deadline, "it did not come within two minutes"
            time.sleep(0.001)

    def come_to_step(self, step):
        self.wait_until(lambda: self.last_step() >= step)

    def rank(self, rank):
        """Its process, wherever it runs."""
        for node in self.nodes:
            for number in node.ranks():
                if pathlib.Path(f"/proc/{number}/comm").read_text() == f"rank {rank}\n":
                    return number
        raise LookupError(f"no rank {rank} runs")

    def told(self):
        return "\n".join(f"{node.host.name}: {node.told}" for node in self.nodes)
