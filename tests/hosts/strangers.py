"""Strangers who come to a port as fast as they can: silent ones, some with half a greeting, with random bytes, with a length
that no message has, and slow ones, a byte at a time. At most 150 of them are there at a time. As a program on a host:

    strangers.py ADDRESS PORT COUNT
"""
import collections
import random
import socket
import sys
import time

KINDS = [b"", b"h" * 16, None, b"\xff" * 4096, b"x"]  # None: random bytes
MOST = 150


def say(stranger, words):
    try:
        stranger.send(words)
    except OSError:
        pass  # not connected yet, or closed by whom he came to


def come(address, port, count):
    draw = random.Random(7)
    there = collections.deque()
    for number in range(count):
        stranger = socket.socket()
        stranger.setblocking(False)
        stranger.connect_ex((address, port))
        there.append((stranger, KINDS[number % len(KINDS)]))
        if len(there) < MOST:
            continue
        time.sleep(0.001)
        there.rotate(-1)
        for other, words in there:
            say(other, words if words is not None else draw.randbytes(64))
        there.popleft()[0].close()


come(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
