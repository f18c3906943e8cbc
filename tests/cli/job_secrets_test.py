"""The secret of a job as it lies on a host: no other user gets it or joins without it, and no process of the job keeps it in
its environment or its memory."""
import hashlib
import hmac
import os
import pathlib
import secrets
import socket
import unittest

from loopback_jobs_test import MESH, free_port
from tiny_run import ENDLESS, TinyRun

NOBODY = 65534

def mac(key, text):
    return hmac.new(key, text, hashlib.sha256).digest()


def stranger(port, file):
    """What node 0 says to the answers that can be made without a token: bound to the connection, and not. And whether the
    file can be read."""
    gate = mac(mac(b"braid job control 1", bytes(32)), b"gate\x01")
    said = b""
    for bound in False, True:
        with socket.socket() as line:
            line.connect(("127.0.0.1", port))
            nonce = line.recv(32)
            ends = b"".join(bytes(10) + b"\xff\xff" + socket.inet_aton(host) + number.to_bytes(2, "big")
                            for host, number in (line.getsockname(), line.getpeername()))
            line.send(mac(gate, b"node of braid attempt 0\0" + ends + nonce if bound else nonce + b"braid"))
            said += line.recv(1)
    return said + (b" readable" if os.access(file, os.R_OK) else b" kept")


def as_another_user(function, *arguments):
    """What it returns in a process of that user, as bytes."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(theirs, function(*arguments))
        finally:
            os._exit(0)
    os.close(theirs)
    os.waitpid(child, 0)
    with open(ours, "rb") as told:
        return told.read()


def family(process):
    """Its number and those of the processes that it started."""
    numbers = [process.pid]
    for number in numbers:
        for thread in pathlib.Path(f"/proc/{number}/task").iterdir():
            numbers += map(int, (thread / "children").read_text().split())
    return numbers


def memory(number):
    """What the process may have written itself: the bytes of each mapping."""
    with open(f"/proc/{number}/maps") as maps, open(f"/proc/{number}/mem", "rb", buffering=0) as file:
        for line in maps:
            place, rights, *rest = line.split()
            if "w" not in rights or (len(rest) > 3 and rest[3].startswith("/dev/")):
                continue
            begin, end = (int(number, 16) for number in place.split("-"))
            file.seek(begin)
            try:
                yield place, file.read(end - begin)
            except OSError:
                pass  # it has been unmapped


class JobSecrets(TinyRun):
    def nodes(self, *words, **options):
        job = ["--nodes", "2", "--root", f"127.0.0.1:{free_port()}", *words, "--node"]
        return [self.started(MESH, *ENDLESS, *job, str(node), **options) for node in range(2)]

    def expect_no_trace(self, nodes, token):
        self.line_of(nodes[0], "step 2/")
        numbers = [number for node in nodes for number in family(node)]
        self.assertEqual(len(numbers), 4)  # two nodes, two ranks
        for number in numbers:
            self.assertNotIn(b"TOKEN=" + token[:8], pathlib.Path(f"/proc/{number}/environ").read_bytes())
            for place, content in memory(number):
                for what, needle in ("digits", token), ("bytes", bytes.fromhex(token.decode())):
                    self.assertEqual(content.find(needle), -1, f"{what} of the token at {place} of {number}")

    def test_no_process_keeps_a_token_of_the_environment(self):
        token = secrets.token_hex(32)
        self.expect_no_trace(self.nodes(env=os.environ | {"BRAID_TOKEN": token}), token.encode())

    def test_no_process_keeps_the_token_of_a_file(self):
        token = secrets.token_hex(32)
        (self.path / "token").touch(0o600)
        (self.path / "token").write_text(token + "\n")
        self.expect_no_trace(self.nodes("--token-file", "token"), token.encode())

    def test_a_job_of_one_node_passes_no_token_on(self):
        token = secrets.token_hex(32)
        run = self.started(MESH, *ENDLESS, "run.ranks=processes", env=os.environ | {"BRAID_TOKEN": token})
        self.line_of(run, "step 2/")
        numbers = family(run)
        self.assertEqual(len(numbers), 3)
        for number in numbers:
            self.assertNotIn(token.encode(), pathlib.Path(f"/proc/{number}/environ").read_bytes())

    @unittest.skipIf(os.geteuid() != 0, "only root becomes another user")
    def test_all_processes_of_a_user_can_join_and_no_other_users(self):
        runtime = self.path / "runtime"
        runtime.mkdir(0o700)
        self.path.chmod(0o755)
        port = free_port()
        job = [MESH, "--nodes", "2", "--root", f"127.0.0.1:{port}", "--node"]
        env = {name: value for name, value in os.environ.items() if name not in ("BRAID_TOKEN", "XDG_RUNTIME_DIR")}
        root = self.started(*job, "0", env=env)
        self.line_of(root, "waits for all 2 nodes at ")
        self.wait_for(root, lambda: f":{port:04X} 00000000:0000 0A" in pathlib.Path("/proc/net/tcp").read_text())
        file = pathlib.Path(f"/tmp/braid-{os.geteuid()}/token")
        self.assertEqual(as_another_user(stranger, port, file), b"\0\0 kept")
        member = self.started(*job, "1", env=env | {"XDG_RUNTIME_DIR": str(runtime)})  # as in a login beside a cron job
        told = [node.communicate(timeout=120) for node in (root, member)]
        self.assertEqual([root.returncode, member.returncode], [0, 0], told)
        self.assertEqual(file.stat().st_mode & 0o7777, 0o600)


if __name__ == "__main__":
    unittest.main()
