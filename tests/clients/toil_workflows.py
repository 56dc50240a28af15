"""Small workflows for toil, by name: toil_workflows.py NAME STORE [options of toil]"""

import os
import pathlib
import sys
import time

from toil.common import Toil
from toil.job import Job

SMALL = {"cores": 1, "memory": "256Mi", "disk": "1Mi"}
LARGE = {"cores": 2, "memory": "512Mi", "disk": "1Mi"}


def part(job, number):
    return {"square": number * number, "node": os.environ["SLURMD_NODENAME"],
            "cpus": os.environ["SLURM_CPUS_ON_NODE"], "memory": os.environ["SLURM_MEM_PER_NODE"]}


def add(job, parts):
    return {"sum": sum(one["square"] for one in parts), "parts": parts}


def divide(job, count):
    parts = [job.addChildJobFn(part, number, **LARGE).rv() for number in range(count)]
    return job.addFollowOnJobFn(add, parts, **SMALL).rv()


def fail(job):
    raise RuntimeError("this one is meant to fail")


def sleep(job, folder):
    (pathlib.Path(folder) / f"began-{os.environ['SLURM_JOB_ID']}").touch()
    time.sleep(1000)


def main():
    name = sys.argv.pop(1)
    options = Job.Runner.getDefaultArgumentParser().parse_args()
    first = {
        "sum": lambda: Job.wrapJobFn(divide, 3, **SMALL),
        "fail": lambda: Job.wrapJobFn(fail, **SMALL),
        "sleep": lambda: Job.wrapJobFn(sleep, os.getcwd(), **SMALL),
    }[name]()
    with Toil(options) as toil:
        print("RESULT", toil.start(first))


if __name__ == "__main__":
    main()
