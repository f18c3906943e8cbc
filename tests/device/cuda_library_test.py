#!/usr/bin/env python3
"""Opens libbraid_cuda.so and looks at its tables: every room's is there, and no entry is empty. It calls nothing, so it
needs neither a GPU nor libtorch_cuda.so: what the library does not name is bound when it is first called."""
import ctypes
import os
import sys

library = os.environ["BRAID_CUDA_LIBRARY"]
entries = {"device": 12, "optim": 4, "nn": 4 * 11 + 2}


class Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int64), ("bytes", ctypes.c_int64)]


for needed in os.environ["BRAID_TORCH_LIBRARIES"].split(":"):  # what it names data of
    try:
        ctypes.CDLL(needed, mode=ctypes.RTLD_GLOBAL | os.RTLD_LAZY)
    except OSError as failed:
        print(f"skipped: {needed} cannot be loaded: {failed}")
        sys.exit(77)

opened = ctypes.CDLL(library, mode=os.RTLD_LAZY)
table_of = opened.braid_cuda_table
table_of.restype, table_of.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
assert table_of(b"no such room") is None
versions = set()
for room, count in entries.items():
    table = table_of(room.encode())
    assert table, f"{room} has no table"
    header = Header.from_address(table)
    versions.add(header.version)
    assert header.bytes == 16 + 8 * count, f"{room}: {header.bytes} bytes, not {count} entries"
    functions = (ctypes.c_void_p * count).from_address(table + 16)
    empty = [i for i in range(count) if not functions[i]]
    assert not empty, f"{room}: entries {empty} are empty"
    assert len({functions[i] for i in range(count)}) == count, f"{room}: an entry is there twice"
assert len(versions) == 1
print(f"{sum(entries.values())} functions of version {versions.pop()}")
