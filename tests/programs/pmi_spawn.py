#!/usr/bin/python3
"""A rank that speaks PMI itself, and can ask for more of its kind.

    pmi_spawn.py parent VERSION JSON    rank 0 asks for {"programs": [{"argv", "tasks", "info"}], "given": {…}} with VERSION
                                        1 or 2 of PMI, and prints the answer and what the new ranks tell it
    pmi_spawn.py child VERSION [word…]  tells the spawner who it is; with the word "fail" it then exits with 7, with
                                        "stay" it sleeps until it is ended
"""
import json
import os
import socket
import sys
import time

KEY = "PARENT_ROOT_PORT_NAME"


class Pmi:
    """Blocking questions and answers over PMI_FD."""

    def __init__(self, version):
        self.version = version
        self.wire = socket.socket(fileno=int(os.environ["PMI_FD"])).makefile("rwb")
        self.send_line(f"cmd=init pmi_version={version} pmi_subversion={2 - version}")
        assert self.line()["rc"] == "0"
        if version == 2:
            self.start = self.ask("fullinit", pmirank=os.environ["PMI_RANK"])

    def send_line(self, text):
        self.wire.write(text.encode() + b"\n")
        self.wire.flush()

    def line(self):
        return dict(word.split("=", 1) for word in self.wire.readline().decode().split())

    def send(self, fields):
        text = "".join(f"{name}={value.replace(';', ';;')};" for name, value in fields)
        self.wire.write(f"{len(text):6d}{text}".encode())
        self.wire.flush()

    def answer(self):
        text = self.wire.read(int(self.wire.read(6))).decode()
        words = text.strip().replace(";;", "\0").rstrip(";").split(";")
        return dict(word.replace("\0", ";").split("=", 1) for word in words)

    def ask(self, command, **fields):
        self.send([("cmd", command), *fields.items()])
        return self.answer()

    def get(self, key):
        if self.version == 1:
            self.send_line(f"cmd=get kvsname={os.environ['PMI_JOBID']} key={key}")
            return self.line().get("value")
        return self.ask("kvs-get", jobid="", key=key).get("value")

    def appnum(self):
        if self.version == 2:
            return self.start["appnum"]
        self.send_line("cmd=get_appnum")
        return self.line()["appnum"]

    def barrier(self):
        if self.version == 2:
            return self.ask("kvs-fence")
        self.send_line("cmd=barrier_in")
        return self.line()

    def spawn(self, programs, given):
        if self.version == 2:
            fields = [("cmd", "spawn"), ("ncmds", str(len(programs))), ("preputcount", str(len(given)))]
            for i, (key, value) in enumerate(given.items()):
                fields += [(f"ppkey{i}", key), (f"ppval{i}", value)]
            for program in programs:
                fields += [("subcmd", program["argv"][0]), ("maxprocs", str(program["tasks"])),
                           ("argc", str(len(program["argv"]) - 1))]
                fields += [(f"argv{i}", word) for i, word in enumerate(program["argv"][1:])]
                for i, (key, value) in enumerate(program.get("info", {}).items()):
                    fields += [(f"infokey{i}", key), (f"infoval{i}", value)]
            self.send(fields)
            return self.answer()
        for number, program in enumerate(programs, 1):
            lines = ["mcmd=spawn", f"nprocs={program['tasks']}", f"execname={program['argv'][0]}",
                     f"totspawns={len(programs)}", f"spawnssofar={number}"]
            lines += [f"arg{i}={word}" for i, word in enumerate(program["argv"][1:], 1)]
            lines += [f"argcnt={len(program['argv']) - 1}", f"preput_num={len(given)}"]
            for i, (key, value) in enumerate(given.items()):
                lines += [f"preput_key_{i}={key}", f"preput_val_{i}={value}"]
            lines.append(f"info_num={len(program.get('info', {}))}")
            for i, (key, value) in enumerate(program.get("info", {}).items()):
                lines += [f"info_key_{i}={key}", f"info_val_{i}={value}"]
            self.send_line("\n".join([*lines, "endcmd"]))
        return self.line()

    def finalize(self):
        if self.version == 2:
            return self.ask("finalize")
        self.send_line("cmd=finalize")
        return self.line()


def parent(version, wanted):
    pmi = Pmi(version)
    pmi.barrier()
    if os.environ["PMI_RANK"] == "0":
        door = socket.create_server(("127.0.0.1", 0))
        answer = pmi.spawn(wanted["programs"], {KEY: f"127.0.0.1:{door.getsockname()[1]}", **wanted.get("given", {})})
        print(json.dumps({"answer": answer}), flush=True)
        if answer["rc"] == "0":
            for _ in range(sum(program["tasks"] for program in wanted["programs"])):
                with door.accept()[0] as one:
                    print(one.makefile().readline().strip(), flush=True)
    if wanted.get("stay"):
        time.sleep(1000)
    pmi.barrier()
    pmi.finalize()


def child(version, words):
    pmi = Pmi(version)
    pmi.barrier()
    host, port = pmi.get(KEY).split(":")
    said = {"rank": int(os.environ["PMI_RANK"]), "size": int(os.environ["PMI_SIZE"]), "appnum": int(pmi.appnum()),
            "spawned": os.environ.get("PMI_SPAWNED"), "job": os.environ["SLURM_JOB_ID"], "step": os.environ["SLURM_STEP_ID"],
            "node": os.environ["SLURMD_NODENAME"], "words": words, "cwd": os.getcwd(), "more": pmi.get("more"),
            "spawner": pmi.start.get("spawner-jobid") if version == 2 else None, "pid": os.getpid()}
    with socket.create_connection((host, int(port))) as wire:
        wire.sendall(json.dumps(said).encode() + b"\n")
    if "stay" in words:
        time.sleep(1000)
    pmi.finalize()
    if "fail" in words:
        sys.exit(7)


if sys.argv[1] == "parent":
    parent(int(sys.argv[2]), json.loads(sys.argv[3]))
else:
    child(int(sys.argv[2]), sys.argv[3:])
