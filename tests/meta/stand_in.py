"""A card that is none, for tests of what is timed: results by the specification, times from a list."""

import numpy as np
from grading import MODULES

from dojo import device, gpu
from dojo.timing import Check, Timings

ROUNDS = 20
H200 = {
    "name": "NVIDIA H200",
    "arch": "sm_90",
    "multiprocessors": 132,
    "threads_per_block": 1024,
    "threads_per_multiprocessor": 2048,
    "shared_per_block": 48 << 10,
    "shared_optin": 227 << 10,
    "shared_per_multiprocessor": 228 << 10,
    "registers_per_block": 65536,
    "registers_per_multiprocessor": 65536,
    "l2_bytes": 60 << 20,
    "memory_bytes": 8 << 20,
    "driver": "13.0",
    "cupy": "14.2.0",
}


class Card:
    """Takes the place of dojo.gpu's functions. `seconds` by name; whoever is not in it takes a millisecond.

    `wrong` are names of candidates whose timed results are not right; `problem` makes every launch fail.
    """

    def __init__(self, monkeypatch, seconds=None, wrong=(), problem=None):
        self.seconds, self.wrong, self.problem = seconds or {}, wrong, problem
        self.compared = []  # the names of each comparison, the candidate's first
        fields = {name: H200.get(name, "") for name in device.Card.__dataclass_fields__}
        monkeypatch.setattr(gpu, "card", lambda: device.Card(**fields))
        monkeypatch.setattr(gpu, "why_not", lambda: "")
        monkeypatch.setattr(gpu, "run", self.run)
        monkeypatch.setattr(gpu, "compare", self.compare)

    def run(self, compiled, kernel, grid, block, args, *, outputs, names, **_):
        if self.problem:
            return gpu.Outcome([], self.problem)
        arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
        out = names.index(task_of(names).output)
        return gpu.Outcome([result(names, args) if array is args[out] else array for array in arrays])

    def compare(self, candidate, baselines, *, name="yours", **_):
        self.compared.append([name, *baselines])
        times = {who: [self.seconds.get(who, 1e-3)] * ROUNDS for who in (name, *baselines)}
        checks = []
        if candidate.names:
            out = candidate.names.index(task_of(candidate.names).output)
            left = result(candidate.names, candidate.args) * (2 if name in self.wrong else 1)
            inputs = [index for index in candidate.arrays() if index not in candidate.outputs]
            checks = [Check(candidate.args, dict.fromkeys(inputs, 0), {out: left})]
        return Timings(name, times, checks=checks, clocks={"driver": "580.1"})


def task_of(names):
    """The task whose kernel has these parameters; two tasks that share them ask for the same."""
    return next(module.TASK for module in MODULES.values() if module.TASK.names == list(names))


def result(names, args):
    """What a kernel with these parameters should compute."""
    task, given = task_of(names), dict(zip(names, args, strict=True))
    if not given.get("beta"):
        del given[task.output]  # not an input
    if isinstance(given.get("X"), gpu.Stream):
        given["X"] = np.resize(given["X"].period, (given["rows"], given["cols"]))
    wide = {name: np.asarray(value, np.float64) for name, value in given.items()}
    return np.asarray(task.specification(**wide)).astype(np.float32)
