"""A rank that uses libpmi2 as MPI libraries do. Rank 0 of those that nobody spawned asks for three more: two of this
program and one of it with another word."""
import ctypes
import os
import sys

pmi = ctypes.CDLL("libpmi2.so.0")
spawned, size, rank, appnum = (ctypes.c_int() for _ in range(4))
assert pmi.PMI2_Init(*map(ctypes.byref, (spawned, size, rank, appnum))) == 0
name = ctypes.create_string_buffer(256)
assert pmi.PMI2_Job_GetId(name, 256) == 0
print(f"rank {rank.value} of {size.value} in {name.value.decode()} spawned {spawned.value} appnum {appnum.value}"
      f" words {sys.argv[1:]}", flush=True)
pmi.PMI2_KVS_Put(f"k{rank.value}".encode(), b"v")
assert pmi.PMI2_KVS_Fence() == 0
if not spawned.value and rank.value == 0:
    def words(*texts):
        return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))

    def numbers(*values):
        return (ctypes.c_int * len(values))(*values)

    first, second = words(os.path.abspath(__file__), "one two"), words(os.path.abspath(__file__), "three")
    vectors = (ctypes.POINTER(ctypes.c_char_p) * 2)(ctypes.cast(first, ctypes.POINTER(ctypes.c_char_p)),
                                                    ctypes.cast(second, ctypes.POINTER(ctypes.c_char_p)))
    errors = numbers(9, 9, 9)
    rc = pmi.PMI2_Job_Spawn(2, words(sys.executable, sys.executable), numbers(2, 2), vectors, numbers(2, 1), numbers(0, 0),
                            None, 0, None, name, 256, errors)
    print(f"answer {rc} {name.value.decode()} {list(errors)}", flush=True)
assert pmi.PMI2_Finalize() == 0
