# SPDX-License-Identifier: Apache-2.0
""".ci/report: the table at the end of a run of CI."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOG = """\
        Start   1: ring_test.Ring.Wraps
 1/4 Test   #1: ring_test.Ring.Wraps ..................   Passed    2.50 sec
 2/4 Test   #2: ring_test.Ring.IsBounded ..............***Failed    1.00 sec
 3/4 Test   #3: e2e.ship ..............................***Timeout  60.02 sec
 4/4 Test   #4: zmq.suite .............................***Skipped   0.25 sec
"""


@pytest.fixture
def report(tmp_path):
    """Prints the table of some stages, budgets and logs."""

    def run(times, budgets, machine="warm", logs=()):
        (tmp_path / ".ci").mkdir()
        shutil.copy(ROOT / ".ci/report", tmp_path / ".ci")
        (tmp_path / ".ci/budgets").write_text(budgets)
        (tmp_path / "build/logs").mkdir(parents=True)
        for build, text in logs:
            (tmp_path / f"build/logs/test-{build}.log").write_text(text)
        (tmp_path / "times").write_text(times)
        return subprocess.check_output([tmp_path / ".ci/report", tmp_path / "times", machine], text=True).splitlines()

    return run


def line(lines, begin):
    (found,) = (each for each in lines if each.startswith(begin))
    return found


def test_a_stage_half_as_long_again_as_its_budget_is_warned_of(report):
    lines = report("build\t150\nlint\t151\nnovel\t1\n", "# warm new stage\n100 900 build\n100 900 lint\n")
    assert "WARNING" not in line(lines, "build ")
    assert "WARNING: over its budget by 51%" in line(lines, "lint ")
    assert "no budget" in line(lines, "novel ")
    assert "302 s" in line(lines, "all stages ")


def test_a_new_machine_has_budgets_of_its_own(report):
    assert "WARNING" not in line(report("build\t800\n", "100 900 build\n", "new"), "build ")


def test_a_stage_that_runs_twice_counts_as_one(report):
    assert " 30 s" in line(report("setup\t10\nsetup\t20\n", "30 30 setup\n"), "setup ")


def test_the_tests_of_a_program_are_summed_for_each_build(report):
    lines = report("x\t1\n", "", logs=[("release", LOG), ("asan", LOG.replace("2.50", "7.50"))])
    programs = [each.split() for each in lines[lines.index("the slowest test programs                 took   build") + 1 :]]
    assert ["e2e.ship", "60", "s", "release"] in programs
    assert ["ring_test", "4", "s", "release"] in programs
    assert ["ring_test", "8", "s", "asan"] in programs
    assert [float(each[1]) for each in programs] == sorted((float(each[1]) for each in programs), reverse=True)
