"""Running programs under a limit, and checks that end as a result whatever happens in them. It knows no check."""
import dataclasses
import json
import os
import pathlib
import select
import signal
import subprocess
import time


class Unusable(Exception):
    """Nothing can be checked here; the text says why and what would help."""


class Failed(Exception):
    """A check found something wrong."""


class Skipped(Exception):
    """A check has nothing to look at here."""


@dataclasses.dataclass
class Check:
    name: str
    limit: float  # seconds
    run: object   # of a Session: the decisive number, or that and a dict of details


@dataclasses.dataclass
class Result:
    name: str
    status: str  # ok, FAILED, skipped
    seconds: float
    number: str
    log: str
    details: dict = dataclasses.field(default_factory=dict)

    def line(self):
        return f"{self.name:<18} {self.status:<8} {self.seconds:6.1f} s  {self.number}"


def how_it_ended(code):
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"


def end_group(process):
    """The process and what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


class Session:
    """What checks share: programs, where they write, what is known of the device, and the log of the one that runs."""

    def __init__(self, programs, environment, out):
        self.programs, self.environment, self.out = programs, environment, pathlib.Path(out)
        self.peer = ""   # a Python with the same LibTorch
        self.facts = {}  # of the device and of what was measured on it
        self.deadline = float("inf")
        self.log = None

    def perform(self, check, limit):
        path = self.out / "logs" / f"{check.name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        self.deadline = begin + min(check.limit, limit)
        details = {}
        with open(path, "w", errors="replace") as self.log:
            try:
                found = check.run(self)
                status, (number, details) = "ok", found if isinstance(found, tuple) else (found, {})
            except Skipped as why:
                status, number = "skipped", str(why)
            except Failed as why:
                status, number = "FAILED", str(why)
            except Unusable:
                raise
            except Exception as error:  # a mistake in the check must not cost the others
                status, number = "FAILED", f"the check itself: {type(error).__name__}: {error}"
            self.log.write(f"{status}: {number}\n")
        return Result(check.name, status, time.monotonic() - begin, number, str(path.relative_to(self.out)), details)

    def left(self):
        return max(0.1, self.deadline - time.monotonic())

    def environment_with(self, extra):
        return self.environment | {key: str(value) for key, value in extra.items()}

    def note(self, command, extra):
        words = [f"{key}={value}" for key, value in extra.items()] + [str(word) for word in command]
        self.log.write("$ " + " ".join(words) + "\n")
        self.log.flush()

    def run(self, *command, codes=(0,), **extra):
        """Standard output and error of a program; Failed unless it ends with one of `codes`. `extra`: environment."""
        self.note(command, extra)
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, env=self.environment_with(extra), text=True,
                                   errors="replace", start_new_session=True)
        try:
            output, _ = process.communicate(timeout=self.left())
        except subprocess.TimeoutExpired:
            end_group(process)
            output, _ = process.communicate()
            self.log.write(output)
            raise Failed(f"{pathlib.Path(str(command[0])).name} did not end within the limit; {last_line(output)}")
        self.log.write(output + f"({how_it_ended(process.returncode)})\n")
        if process.returncode not in codes:
            name = pathlib.Path(str(command[0])).name
            raise Failed(f"{name} {how_it_ended(process.returncode)}: {last_line(output)}")
        return output


class Worker:
    """A program that does something for every line it is sent and answers with a line of JSON; it ends with `with`."""

    def __init__(self, session, name, *command, **extra):
        self.session, self.name, self.rest = session, name, b""
        session.note(command, extra)
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=session.log, env=session.environment_with(extra), start_new_session=True)
        while self.line() != "ready":
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.process.stdin.close()
            self.process.wait(timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            pass
        end_group(self.process)
        self.process.stdout.close()

    def line(self):
        pipe = self.process.stdout.fileno()
        while b"\n" not in self.rest:
            if not select.select([pipe], [], [], self.session.left())[0]:
                self.fail("did not answer within the limit")
            piece = os.read(pipe, 1 << 16)
            if not piece:
                self.fail(how_it_ended(self.process.wait()))
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        text = line.decode(errors="replace").strip()
        self.session.log.write(f"{self.name}: {text}\n")
        return text

    def ask(self, word):
        try:
            self.process.stdin.write(word.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            self.fail(how_it_ended(self.process.wait()))
        return json.loads(self.line())

    def fail(self, why):
        end_group(self.process)
        raise Failed(f"{self.name} {why} (log)")
