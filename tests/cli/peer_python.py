"""The Python that has the packages which a test compares with: this one, or that of BRAID_PEER_PYTHON."""
import importlib
import os
import sys


def need(*packages):
    """Goes on if this Python has the packages. Otherwise runs the test again with BRAID_PEER_PYTHON, or says so and skips
    it (77)."""
    try:
        for package in packages:
            importlib.import_module(package)
        return
    except ImportError as missing:
        reason = missing
    peer = os.environ.get("BRAID_PEER_PYTHON")
    if peer and not os.environ.get("BRAID_PEER_TRIED"):
        os.environ["BRAID_PEER_TRIED"] = "1"
        os.execv(peer, [peer, *sys.argv])
    print(f"skipped: {reason}; pip install {' '.join(packages)}, or set BRAID_PEER_PYTHON to a Python that has them")
    sys.exit(77)
