"""A line between two network devices that loses, delays and slows what it carries, which not every kernel can do itself
(sch_netem). Ethernet frames come out of one device of its own and go into another; what is in them it does not know."""
import fcntl
import heapq
import os
import random
import select
import struct
import threading
import time

TUNSETIFF = 0x400454CA
TAP, NO_HEADER = 2, 0x1000


def tap(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), TAP | NO_HEADER))
    return device


class BadLine:
    """Between the devices `names`, which it makes and which go with it. `loss` is the share of frames that it drops,
    `delay` the seconds that it holds each, `bits_per_second` what passes each way; 0: all."""

    def __init__(self, names, loss=0.0, delay=0.0, bits_per_second=0):
        self.loss, self.delay, self.bits_per_second = loss, delay, bits_per_second
        self.ends = [tap(name) for name in names]
        self.stop = os.pipe()
        self.lost = self.passed = 0
        self.thread = threading.Thread(target=self.carry)
        self.thread.start()

    def carry(self):
        draw = random.Random(1)
        held = []  # by when they are due: (seconds, number, where to, frame)
        free_at = {end: 0.0 for end in self.ends}  # when what was put on the way before has passed
        while True:
            wait = max(0.0, held[0][0] - time.monotonic()) if held else None
            ready, _, _ = select.select([*self.ends, self.stop[0]], [], [], wait)
            if self.stop[0] in ready:
                return
            now = time.monotonic()
            for end in ready:
                to = self.ends[1 - self.ends.index(end)]
                frame = os.read(end, 65536)
                if draw.random() < self.loss:
                    self.lost += 1
                    continue
                seconds = len(frame) * 8 / self.bits_per_second if self.bits_per_second else 0.0
                free_at[to] = max(now, free_at[to]) + seconds
                heapq.heappush(held, (free_at[to] + self.delay, self.passed, to, frame))
                self.passed += 1
            while held and held[0][0] <= time.monotonic():
                _, _, to, frame = heapq.heappop(held)
                try:
                    os.write(to, frame)
                except OSError:
                    self.lost += 1  # its queue is full

    def end(self):
        os.write(self.stop[1], b"x")
        self.thread.join()
        for descriptor in (*self.ends, *self.stop):
            os.close(descriptor)
