"""Resident blocks, worked out by hand from the limits of each compute capability, and the driver's answer."""

import json
import subprocess
import sys

import pytest
from grading import MODULES

from dojo.compile import read_source
from dojo.katas import all_katas
from dojo.launch import compile_for
from dojo.occupancy import occupancy


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "limiter"),
    [
        (
            "sm_80",
            256,
            32,
            2048,
            8,
            "registers",
        ),  # 2,048 threads of 32 registers fill both: 8 blocks of 8 warps
        ("sm_80", 256, 33, 0, 6, "registers"),  # granted in eights: 40 a thread, 51 warps, 48 in four parts
        ("sm_80", 256, 128, 0, 2, "registers"),
        ("sm_80", 128, 16, 8192, 16, "warps"),  # 164 KB hold 18 blocks of 8 + 1 KB, but warps end at 64
        ("sm_80", 64, 16, 8192, 18, "shared memory"),
        ("sm_75", 64, 16, 8192, 8, "shared memory"),  # nothing reserved: 64 KB / 8 KB
        ("sm_80", 32, 16, 0, 32, "blocks"),
        ("sm_86", 32, 16, 0, 16, "blocks"),
        ("sm_90", 256, 207, 20480, 1, "registers"),
        ("sm_90", 1024, 64, 8192, 1, "registers"),
        ("sm_90", 1024, 65, 8192, 0, "registers"),  # 72 registers x 1,024 threads are more than 65,536
    ],
)
def test_blocks_and_what_limits_them(arch, threads, registers, shared, blocks, limiter):
    found = occupancy(arch, threads, registers, shared)
    assert (found.blocks, found.limiter) == (blocks, limiter)
    assert found.warps == blocks * -(-threads // 32)


def test_the_share_is_of_the_warps_that_a_multiprocessor_holds():
    assert occupancy("sm_90", 256, 128, 0).share == 0.25
    assert str(occupancy("sm_90", 256, 128, 0)) == "2 blocks an SM, occupancy 25% by registers"


def test_an_unknown_card_is_not_guessed():
    assert occupancy("sm_999", 256, 32, 0) is None


# --- on a card ----------------------------------------------------------------------------------------------

ASK = """
import json, sys
import cupy
from cupy_backends.cuda.api import driver

answers = []
for path, entry, threads, shared in json.load(sys.stdin):
    kernel = cupy.RawModule(path=path).get_function(entry)
    if shared:
        kernel.max_dynamic_shared_size_bytes = shared
    answers.append(driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, threads, shared))
print(json.dumps(answers))
"""
SOLUTIONS = [(kata, file) for kata in all_katas() for file in kata.solutions]
MORE = (0, 1, 20_000, 50_000, 100_000)  # dynamic shared bytes on top, so that this limit has its turn too


def test_the_driver_says_the_same_of_every_solution(on_card, tmp_path):
    """In blocks of its own size, and of one to three warps."""
    asked, ours, limiters = [], [], set()
    for kata, file in SOLUTIONS:
        task = MODULES[kata.stem].TASK
        code = compile_for(task, read_source(file), file.name, on_card.arch, task.sizes)
        used = code.resources[code.entry(task.kernel)]
        cubin = tmp_path / f"{file.stem}.cubin"
        cubin.write_bytes(code.cubin)
        launch = task.launch(task.sizes[0], code.constants)
        for threads in (launch.threads, 32, 64, 96):
            for dynamic in (launch.shared_bytes + more for more in MORE):
                if used.shared + dynamic <= on_card.shared_optin:
                    asked.append([str(cubin), code.entry(task.kernel), threads, dynamic])
                    found = occupancy(on_card.arch, threads, used.registers, used.shared + dynamic)
                    ours.append(found.blocks)
                    limiters.add(found.limiter)
    done = subprocess.run(
        [sys.executable, "-c", ASK], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = zip(asked, json.loads(done.stdout), ours, strict=True)
    assert [(launch, driver, we) for launch, driver, we in told if driver != we] == []
    assert {"registers", "shared memory"} <= limiters
