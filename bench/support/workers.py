"""Processes that do one thing each time they are asked, for benches that take turns between two programs."""
import json
import os
import socket
import statistics
import subprocess
import sys


class Workers:
    """Processes that wait at a pipe between steps, so that whoever runs has the cores to itself."""

    def __init__(self, commands):
        environment = os.environ | {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}
        self.processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                           env=environment) for command in commands]
        for process in self.processes:
            while process.stdout.readline().strip() != "ready":
                if process.poll() is not None:
                    self.end()
                    raise RuntimeError("ended early")

    def ask(self, word):
        for process in self.processes:
            process.stdin.write(word + "\n")
            process.stdin.flush()
        answers = [process.stdout.readline() for process in self.processes]
        if "" in answers:
            self.end()
            sys.exit(f"{self.processes[0].args} ended early")
        return [json.loads(answer) for answer in answers]

    def step(self):
        return max(answer["seconds"] for answer in self.ask("step"))

    def end(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()


def ratio_text(pairs):
    """How many times faster the first of each pair of times is: the median of the pairs, and their lowest and highest."""
    ratios = sorted(b / a for a, b in pairs)
    return f"{statistics.median(ratios):.2f} x ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])
