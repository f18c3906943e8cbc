#!/usr/bin/env python3
"""TensorBoard event files against the reference. Needs tensorboard; braid's build and tests do not.

  tensorboard_events.py write FILE      the golden file of tests/report (made with TensorBoard's own protobufs)
  tensorboard_events.py read FOLDER     every scalar that TensorBoard's EventAccumulator finds, and a check of each sum
"""
import pathlib
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter, masked_crc32c

SCALARS = [("loss/train", 2.5), ("learning_rate", 3e-4), ("odd \u00b5 tag", -0.0)]


def golden_events():
    yield Event(wall_time=1700000000.25, file_version="brain.Event:2")
    yield Event(wall_time=1700000000.25, step=301, session_log=SessionLog(status=SessionLog.START))
    for step in (0, 301, 2**40):
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in SCALARS]
        yield Event(wall_time=1700000001.5, step=step, summary=Summary(value=values))


def write(path):
    with open(path, "wb") as file:
        writer = RecordWriter(file)
        for event in golden_events():
            writer.write(event.SerializeToString())
        writer.flush()


def records(data):
    while data:
        length, body = data[:8], data[12:12 + int.from_bytes(data[:8], "little")]
        rest = data[12 + len(body):]
        assert int.from_bytes(data[8:12], "little") == masked_crc32c(length), "check sum of a length"
        assert int.from_bytes(rest[:4], "little") == masked_crc32c(body), "check sum of an event"
        yield body
        data = rest[4:]


def read(folder):
    for file in sorted(pathlib.Path(folder).glob("*tfevents*")):
        print(file.name, sum(1 for _ in records(file.read_bytes())), "events, all sums right")
    found = EventAccumulator(folder, size_guidance={"scalars": 0}).Reload()
    for tag in found.Tags()["scalars"]:
        events = found.Scalars(tag)
        print(f"{tag:28} {len(events):6} values, steps {events[0].step} to {events[-1].step}, last {events[-1].value:.6g}")


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
