"""Pretended GPUs: a topology file as the JSON that the fake NVML library reads, changed while programs run.

    gpus = FakeNvml(tmp_path / "gpus.json", "h100-nvswitch-8")
    subprocess.run([...], env=clean_environment(**gpus.env))
    gpus.gpu(3)["missing"] = True
    gpus.write()
"""

import json
import os
import pathlib
import urllib.parse

from cluster import ROOT, bin_dir

TOPOLOGIES = ROOT / "tests/hardware/topologies"
LIBRARY = bin_dir().parent / "lib/libberth-fake-nvml.so"


def read_lines(text):
    """(what, {key: value}) of each line that is no comment."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            what, *words = line.split(" ")
            yield what, {k: urllib.parse.unquote(v) for k, _, v in (word.partition("=") for word in words)}


def state_of(text: str) -> dict:
    """The state that makes the library tell what the topology file says."""
    state = {"driver": "", "gpus": []}
    gpus = state["gpus"]
    for what, of in read_lines(text):
        if what == "driver":
            state["driver"] = of["version"]
        elif what == "gpu":
            gpu = {"busy_percent": 0, "power_mw": 60000, "celsius": 30, "ecc_corrected": 0, "ecc_uncorrected": 0,
                   "rows_remapped": 0, "memory_used_mb": 0, "nvlinks": [], "ways": [], "processes": []}
            gpu |= {key: of[key] for key in ("uuid", "bus", "model", "cpus") if key in of}
            gpu |= {key: int(of[key]) for key in ("minor", "memory_mb", "numa") if key in of}
            if "mig" in of:
                gpu["mig"] = []
            gpus.append(gpu)
        elif what == "mig":
            part = {key: of[key] for key in ("uuid", "profile")}
            part |= {key: int(of[key]) for key in ("gpu_instance", "compute_instance", "memory_mb")}
            gpus[int(of["gpu"])]["mig"].append(part)
        elif what == "nvlink":
            end = int(of["to"]) if "to" in of else "switch"
            gpus[int(of["from"])]["nvlinks"] += [end] * int(of["count"])
        elif what == "way":
            for one, other in (("from", "to"), ("to", "from")):
                ways = gpus[int(of[one])]["ways"]
                ways += [None] * (len(gpus) - len(ways))
                ways[int(of[other])] = of["by"]
    return state


class FakeNvml:
    def __init__(self, path: pathlib.Path, topology: str):
        self.path = path
        self.text = (TOPOLOGIES / f"{topology}.topology").read_text()
        self.state = state_of(self.text)
        self.write()
        self.env = {"BERTH_NVML_LIBRARY": str(LIBRARY), "BERTH_FAKE_NVML": str(path)}

    def gpu(self, index: int) -> dict:
        return self.state["gpus"][index]

    def write(self):
        """As a whole: a program never sees half of it."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.state))
        os.replace(new, self.path)

    def xid(self, gpu: int, code: int):
        xids = self.state.setdefault("xids", [])
        xids.append({"number": len(xids) + 1, "gpu": gpu, "code": code})
        self.write()
