"""The loop of a peer that does one step for each line on standard input."""
import json
import sys


def serve(step):
    """Prints "ready", then for each line the seconds that step(number) returns, as JSON."""
    print("ready", flush=True)
    for number, _ in enumerate(sys.stdin):
        print(json.dumps({"seconds": step(number)}), flush=True)
