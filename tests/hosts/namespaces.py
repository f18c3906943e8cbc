"""Hosts on one machine: network namespaces on one bridge, each with a name of its own. They share the processor, the
memory and the file system, so that a folder of one is a folder of all. Knows nothing of braid.

All of it is made inside namespaces of the test (enter()), which the kernel takes away with everything in them when the
test ends, however it ends; two tests at a time do not meet."""
import json
import os
import pathlib
import subprocess
import sys

from bad_line import BadLine

INSIDE = "BRAID_INSIDE_NAMESPACES"
OWN = ["--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
NAMES = pathlib.Path("/run/hosts")  # of all hosts, with their addresses
TRIAL = ("mount -t tmpfs tmpfs /run && mkdir /run/netns && ip netns add a && ip netns exec a true && "
         "ip link add name switch type bridge")


def run(*words):
    subprocess.run([str(word) for word in words], check=True)


def enter():
    """Runs this program again inside namespaces of its own; does not return outside. Exit code 77, and the reason in
    print, where there can be none."""
    if INSIDE not in os.environ:
        for own in (["unshare", *OWN], ["unshare", "--user", "--map-root-user", *OWN]):
            trial = subprocess.run([*own, "sh", "-c", TRIAL], capture_output=True, text=True)
            if trial.returncode == 0:
                os.environ[INSIDE] = "yes"
                os.execvp("unshare", [*own, sys.executable, *sys.argv])
        print(f"skipped: no network namespaces can be made here: {trial.stderr.strip()}")
        sys.exit(77)
    for place in ("/run", "/dev/shm"):
        run("mount", "-t", "tmpfs", "tmpfs", place)
    os.environ["TMPDIR"] = "/run/tmp"
    for folder in ("/run/tmp", "/run/netns"):
        os.mkdir(folder)
    NAMES.write_text("127.0.0.1 localhost\n")
    run("mount", "--bind", NAMES, "/etc/hosts")
    run("ip", "link", "set", "lo", "up")


def processes():
    """What runs besides the test, as {number: words}."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text().replace("\0", " ")
            ended = ") Z " in (folder / "stat").read_text()  # one that nobody has buried
        except OSError:
            continue
        if int(folder.name) != os.getpid() and not ended:
            found[int(folder.name)] = words
    return found


LISTENS, CONNECTED = "0A", "01"


def sockets_of(tables):
    """The TCP sockets of /proc/net/tcp that listen or are connected: where, in which state, and whether a process has it,
    which nobody does who is connected and not accepted yet."""
    found = []
    for line in tables.splitlines():
        words = line.split()
        if len(words) > 9 and words[3] in (LISTENS, CONNECTED):
            address, port = words[1].split(":")
            found.append((address, int(port, 16), words[3], words[9] != "0"))
    return found


class Host:
    def __init__(self, number):
        self.name, self.address, self.cable = f"h{number}", f"10.77.0.1{number}", f"v{number}"
        self.line = None
        run("ip", "netns", "add", self.name)
        run("ip", "-n", self.name, "link", "set", "lo", "up")
        run("ip", "link", "add", "name", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "link", "set", self.cable, "master", "switch", "up")
        run("ip", "-n", self.name, "addr", "add", f"{self.address}/24", "dev", "eth0")
        run("ip", "-n", self.name, "link", "set", "eth0", "up")

    def words(self, *words):
        """The command that runs `words` on this host, under the number that it is itself started with."""
        return ["ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", f'hostname {self.name}; exec "$@"',
                "sh", *map(str, words)]

    def start(self, *words, **options):
        return subprocess.Popen(self.words(*words), **options)

    def cut(self):
        run("ip", "link", "set", self.cable, "down")

    def isolate(self, state="on"):
        """Isolated hosts reach all others, and not each other."""
        run("ip", "link", "set", self.cable, "type", "bridge_slave", "isolated", state)

    def worsen(self, **how):
        """Its cable ends in a line that is bad (bad_line.py)."""
        near, far, joint = f"{self.cable}near", f"{self.cable}far", f"{self.cable}joint"
        self.line = BadLine((near, far), **how)
        run("ip", "link", "add", "name", joint, "type", "bridge")
        for device, bridge in ((self.cable, joint), (near, joint), (far, "switch")):
            run("ip", "link", "set", device, "master", bridge, "up")
        run("ip", "link", "set", joint, "up")

    def mend(self):
        if self.line:
            run("ip", "link", "del", f"{self.cable}joint")
            self.line.end()
            self.line = None
        run("ip", "link", "set", self.cable, "master", "switch", "up")
        self.isolate("off")

    def sockets(self):
        tables = ["ip", "netns", "exec", self.name, "cat", "/proc/net/tcp", "/proc/net/tcp6"]
        return sockets_of(subprocess.run(tables, capture_output=True, text=True).stdout)

    def sent_bytes(self):
        """That have left on its cable so far, with the headers of Ethernet, IP and TCP."""
        told = subprocess.run(["ip", "-s", "-j", "link", "show", self.cable], check=True, capture_output=True).stdout
        return json.loads(told)[0]["stats64"]["rx"]["bytes"]


class Network:
    def __init__(self, num_hosts):
        run("ip", "link", "add", "name", "switch", "type", "bridge")
        run("ip", "link", "set", "switch", "up")
        self.hosts = [Host(number) for number in range(num_hosts)]
        with NAMES.open("a") as names:
            names.writelines(f"{host.address} {host.name}\n" for host in self.hosts)

    def mend(self):
        for host in self.hosts:
            host.mend()
