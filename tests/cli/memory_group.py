"""A control group of memory in which a command of braid runs, where the test may make one."""
import pathlib
import subprocess
import time
import unittest

from braid_binary import BINARY

ROOTS = {"0": pathlib.Path("/sys/fs/cgroup"), "memory": pathlib.Path("/sys/fs/cgroup/memory")}


def own_group():
    """The folder of this process's group, of version 1 if the memory controller is there."""
    found = None
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(","):
            return ROOTS["memory"] / group.lstrip("/")
        if number == "0":
            found = ROOTS["0"] / group.lstrip("/")
    return found


class MemoryGroup:
    """A group below the test's own one, which holds `limit_bytes`. Skips the test where none can be made."""

    def __init__(self, test, limit_bytes):
        group = own_group()
        if group is None:
            raise unittest.SkipTest("this system has no control groups")
        self.path = group / f"braid-test-{time.monotonic_ns()}"
        try:
            self.path.mkdir()
            test.addCleanup(self.remove)
            limit = next((name for name in ("memory.limit_in_bytes", "memory.max") if (self.path / name).exists()), None)
            if limit is None:
                raise unittest.SkipTest("control groups here do not limit memory")
            (self.path / limit).write_text(str(int(limit_bytes)))
        except OSError as error:
            raise unittest.SkipTest(f"no control group of memory can be made here: {error}")

    def braid(self, *words, **options):
        """The finished process of `braid WORDS` in the group."""
        script = f'echo $$ > {self.path}/cgroup.procs && exec "$@"'
        return subprocess.run(["sh", "-c", script, "sh", BINARY, *words], capture_output=True, text=True, timeout=300,
                              errors="replace", **options)

    def most_bytes(self):
        """The most that it has held at once."""
        name = next(name for name in ("memory.max_usage_in_bytes", "memory.peak") if (self.path / name).exists())
        return int((self.path / name).read_text())

    def remove(self):
        for _ in range(100):  # processes that have ended leave it a moment later
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.05)
