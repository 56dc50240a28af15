"""Asks the CUDA driver itself, without any framework: how many GPUs, which, and whether they can be used."""

import ctypes
import errno
import json
import os
import sys
import time


def opens(path):
    try:
        os.close(os.open(path, os.O_RDWR))
        return "opens"
    except OSError as error:
        return errno.errorcode[error.errno]


def ask_cuda(seconds):
    cuda = ctypes.CDLL("libcuda.so.1")
    out = {"cuInit": cuda.cuInit(0)}
    if out["cuInit"] != 0:
        return out
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    out["count"] = count.value
    device, context = ctypes.c_int(), ctypes.c_void_p()
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    raw = (ctypes.c_ubyte * 16)()
    cuda.cuDeviceGetUuid(ctypes.byref(raw), device)
    text = bytes(raw).hex()
    out["uuid"] = "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    out["context"] = cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)
    memory = ctypes.c_uint64()
    out["alloc"] = cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64 << 20))
    out["memset"] = cuda.cuMemsetD8_v2(memory, ctypes.c_ubyte(1), ctypes.c_size_t(64 << 20))
    out["synchronize"] = cuda.cuCtxSynchronize()
    time.sleep(seconds)
    return out


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0
    found = {"nvidia0": opens("/dev/nvidia0"), "nvidiactl": opens("/dev/nvidiactl"),
             "visible": os.environ.get("CUDA_VISIBLE_DEVICES"), "rank": os.environ.get("SLURM_PROCID")}
    print(json.dumps(found | ask_cuda(seconds)), flush=True)
