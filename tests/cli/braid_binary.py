"""Runs the braid binary under test. Knows nothing of what it should print."""
import os
import pathlib
import subprocess

BINARY = os.environ["BRAID_BINARY"]
SOURCE = pathlib.Path(os.environ["BRAID_SOURCE_DIR"])
LONGEST = 3600 if os.environ.get("BRAID_FULL") else 300  # seconds of a command; GPT-2 774M is among the full ones


def braid(*words, **options):
    """The finished process of `braid WORDS`, with text output."""
    return subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=LONGEST, errors="replace", **options)
