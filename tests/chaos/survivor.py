"""A training that is struck again and again and goes on each time. Knows the user's commands and the library that
strikes (file_faults.cpp); what is compared at the end is chaos_test.py's."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

BINARY = os.environ["BRAID_BINARY"]
FAULTS = os.environ["BRAID_FILE_FAULTS"]  # the library to preload
STEPS = 12
RUN = f"""
[model]
layers = 2
heads = 2
width = 16
context = 16
dropout = 0.1
[data]
paths = ["text"]
[optimizer]
lr = 1e-2
[train]
steps = {STEPS}
batch = 4
microbatch = 2
save_every = 2
out = "run"
threads = 1
reduction = "reproducible"
"""


def write_inputs(path):
    (path / "text").mkdir(parents=True)
    for number in range(8):
        (path / "text" / f"{number}.txt").write_text(f"{number} the quick brown fox jumps over the lazy dog\n" * 40)
    (path / "run.toml").write_text(RUN)


def ranks_of(process):
    """The processes of its ranks."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            _, name, rest = re.split(r"[()]", stat.read_text())
        except (OSError, ValueError):
            continue
        if rest.split()[1] == str(process.pid) and name.startswith("rank "):
            found.append(int(stat.parent.name))
    return found


class Survivor:
    def __init__(self, path, words, after=None):
        """A run from the beginning, or one that has come as far as `after`, another."""
        self.path, self.words = path, words
        if after:
            shutil.copytree(after.path, path)
        else:
            write_inputs(path)

    def checkpoints(self):
        return sorted((path.parent for path in (self.path / "run").glob("step-*/manifest.json")
                       if re.fullmatch("step-[0-9]+(.old)?", path.parent.name)), key=lambda path: path.name)

    def start(self, goes_on=None, **settings):
        """The command that begins, or goes on where there is something to go on from, unless `goes_on` says otherwise."""
        goes_on = goes_on or ("train.resume=run" if self.checkpoints() else "train.overwrite=true")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FILE_FAULTS")}
        if settings:
            state = self.path / "faults.state"
            state.unlink(missing_ok=True)
            environment |= {"LD_PRELOAD": FAULTS, "FILE_FAULTS_STATE": str(state), "FILE_FAULTS_PLACE": "/step-"}
            environment |= {f"FILE_FAULTS_{name.upper()}": str(value) for name, value in settings.items()}
        return subprocess.Popen([BINARY, "train", "run.toml", goes_on, *self.words], cwd=self.path, env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")

    def ended(self, process):
        """Its exit code and what it said, when it and all its ranks are gone."""
        _, said = process.communicate(timeout=120)
        return process.returncode, said

    def finish(self):
        """To its end, which it may have reached."""
        if self.saved_step() == STEPS:
            return
        code, said = self.ended(self.start())
        assert code == 0, said

    def calls(self):
        """What a whole run asks of the file system for its checkpoints: the failpoints, one line each."""
        log = self.path / "calls"
        code, said = self.ended(self.start(log=log))
        assert code == 0, said
        return log.read_text().splitlines()

    def strike_call(self, number, fault):
        """Runs until that call; it may have been the last. Returns exit code and what was said."""
        return self.ended(self.start(at=number, fault=fault))

    def strike_in_step(self, step, draw, whom):
        """SIGKILL to the command, or to one of its ranks, which the run survives, a moment after that step's line.
        Whether it came in time."""
        process = self.start()
        while process.poll() is None and self.last_step() < step:
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.03))
        victims = ranks_of(process) if whom == "rank" else [process.pid]
        if victims and process.poll() is None:
            os.kill(draw.choice(victims), signal.SIGKILL)
        code, said = self.ended(process)
        assert code in (0, -signal.SIGKILL), said
        return code != 0 or "killed by signal" in said

    def saved_step(self):
        """Of the newest checkpoint; 0 where there is none."""
        return max([int(path.name.split("-")[1].split(".")[0]) for path in self.checkpoints()], default=0)

    def last_step(self):
        """The last that the metrics have, a line half-written left aside."""
        try:
            steps = re.findall('"step": ?([0-9]+)', (self.path / "run/metrics.jsonl").read_text())
        except OSError:
            return 0
        return int(steps[-1]) if steps else 0

    def go_back(self, step):
        """As if the run had been ended when the checkpoint of that step was its last."""
        for path in self.checkpoints():
            if int(path.name.split("-")[1]) > step:
                shutil.rmtree(path)

    def state(self):
        """All that the end of a run says of it: tensors, the data cursor, the loss of every step."""
        last = self.path / "run" / f"step-{STEPS}"
        manifest = json.loads((last / "manifest.json").read_text())
        lines = [json.loads(line) for line in (self.path / "run/metrics.jsonl").read_text().splitlines()]
        losses = [(line["step"], line["loss"]) for line in lines if line["kind"] == "step"]
        tensors = {path.name: path.read_bytes() for path in sorted(last.glob("*.safetensors"))}
        return {"losses": losses, "next_sample": manifest["next_sample"], "tensors": tensors}

    def leftovers(self):
        """What no run leaves: half-written or set-aside checkpoints."""
        return [path.name for path in (self.path / "run").iterdir() if re.search(r"\.(tmp|old|undone)", path.name)]
