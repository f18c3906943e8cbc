"""The loop of a peer that does one step for each line on standard input."""
import json
import sys


def serve(step):
    """Says that the peer is ready, and prints the seconds that step(number) returns for each line."""
    print("ready", flush=True)
    for number, _ in enumerate(sys.stdin):
        print(json.dumps({"seconds": step(number)}), flush=True)
