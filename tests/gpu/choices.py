"""Regret on the device: the schedules that a kernel may have, in CUDA C, measured in turns beside what each is predicted to
take. What is taken unmeasured stands first."""

import re
import statistics

import timed_kernels
from bench import arrays_of, measured
from host import CompilesOnly

import kiln

MOST = 6  # of a kernel
ROUNDS = 3


def schedules_of(connection, args, target):
    """The first ones, one of those that differ in the threads of a block of elements alone."""
    found = {}
    for schedule in kiln.predict(args, target=target, connection=connection).schedules:
        found.setdefault(re.sub(r"\(block=\d+\)", "", schedule.name), schedule)
    return list(found.values())[:MOST]


def by(schedule, args):
    return kiln.parse_schedule("schedule cuda {\n" + "\n".join(schedule.steps) + "\n}", args, target="cuda")


def choice(connection, timed):
    schedules = schedules_of(connection, timed.args, "cuda")
    kernels = [connection.build(by(schedule, timed.args), timed.args, target="cuda") for schedule in schedules]
    arrays = arrays_of(timed)
    turns = [[measured(kernel, arrays, 1, 1) for kernel in kernels] for _ in range(ROUNDS)]
    seconds = [min(times) for times in zip(*turns, strict=True)]
    return {"regret": seconds[0] / min(seconds),
            "schedules": [{"name": schedule.name, "predicted": schedule.seconds, "seconds": time}
                          for schedule, time in zip(schedules, seconds, strict=True)]}


def choices(connection, fake, word=""):
    """Of the kernels with `word` in their names, by name; those that have one schedule alone have nothing to choose."""
    rows = {}
    for group, kernels_of_group in timed_kernels.groups(small=fake).items():
        for name, timed in kernels_of_group.items():
            if word in name:
                rows[f"{group}, {name}"] = choice(connection, timed)
    regrets = sorted(row["regret"] for row in rows.values() if len(row["schedules"]) > 1)
    return {"kernels": rows, "regret": {"kernels": len(regrets), "median": statistics.median(regrets), "most": regrets[-1]}
            if regrets else {}}


def compile_all(connection, arch):
    """What choices() will build, on a connection that compiles only."""
    for kernels_of_group in timed_kernels.groups().values():
        for timed in kernels_of_group.values():
            for schedule in schedules_of(connection.connection, timed.args, f"cuda -arch={arch}"):
                try:
                    connection.build(by(schedule, timed.args), timed.args, target="cuda")
                except CompilesOnly:
                    pass
