# SPDX-License-Identifier: Apache-2.0
"""What a process does that runs many tests (tests/shared_process.cc): it names a test that hangs, or leaves a thread."""

import os
import signal
import subprocess

import pytest

PROBE = os.environ.get("WHERRY_PROBE")
pytestmark = pytest.mark.skipif(PROBE is None, reason="needs WHERRY_PROBE, the program probe_test")


def run(test, **environment):
    return subprocess.run([PROBE, "--gtest_also_run_disabled_tests", f"--gtest_filter=Probe.DISABLED_{test}", "--gtest_brief=1"],
                          env=os.environ | environment, capture_output=True, text=True, timeout=120)


def test_a_test_that_hangs_is_named_and_ended():
    result = run("Hangs", WHERRY_TEST_SECONDS="1")
    assert result.returncode == -signal.SIGABRT
    assert "no end of Probe.DISABLED_Hangs within its watchdog's 1 s" in result.stderr


def test_a_test_that_leaves_a_thread_fails():
    result = run("LeavesAThread", WHERRY_TEST_LEAVES_NO_THREAD="1")
    assert result.returncode == 1 and "leaves a thread behind" in result.stdout


def test_a_thread_that_is_joined_is_none_that_is_left():
    for _ in range(20):
        result = run("JoinsItsThread", WHERRY_TEST_LEAVES_NO_THREAD="1", WHERRY_TEST_SECONDS="60")
        assert result.returncode == 0, result.stdout
