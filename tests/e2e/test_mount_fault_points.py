# SPDX-License-Identifier: Apache-2.0
"""wherry mount: its processes are killed at named points. What was acknowledged and what was fsynced is checked on the host."""

import contextlib
import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from faults import FaultPlan, FaultyMount, writers
from keeping import NO_LEND
from ring_programs import namespace  # noqa: F401
from serving import NO_PASSTHROUGH, Server, need_leases
from waiting import WATCHDOG

SOAK = "WHERRY_SOAK" in os.environ
CHANCE = random.Random(os.environ.get("WHERRY_TEST_SEED", "1"))

# Of a daemon that serves.
KEEPING = ["delegated", "recalled", "write_kept", "batch_written", "batch_noted", "batch_removed", "given_back", "forgotten", "request_sent",
           "data_sent", "answer_begun"]
RINGS = ["ring_attached", "ring_copied", "ring_sealed", "ring_ended", "descriptor_kept"]
STATE = ["state_written", "state_committed", "state_rewritten", "state_switched"]
# Of the next one.
REPLAY = ["replay_copied", "replay_sending", "replay_written", "replay_noted", "replay_removed", "replay_forgotten", "replayed"]
SUPERVISOR = ["daemon_ended", "daemon_started", "descriptor_given"]
FEW = ["write_kept", "batch_written", "ring_copied", "replay_written"]


@pytest.fixture
def game(tmp_path):
    need_leases(tmp_path)
    (tmp_path / "root").mkdir()
    (tmp_path / "notes").mkdir()
    plan = FaultPlan(tmp_path / "plan")
    with Server(tmp_path / "root", NO_PASSTHROUGH, NO_LEND) as server:
        mount = FaultyMount(server, tmp_path / "mount", plan)
        assert " is mounted on " in mount.said, mount.said
        try:
            yield server, mount, plan, writers(server, tmp_path / "mount", tmp_path / "notes", tmp_path / "root")
        finally:
            mount.kill()


def expect_lost(programs):
    """Their mount has ended."""
    for program in programs:
        assert program.end() in ("write: ENOTCONN", "write: ECONNABORTED", "fsync: ENOTCONN", "fsync: ECONNABORTED")
        program.check(complete=False)


def fill_the_log(folder, stop):
    """Makes the mount rewrite what it records for the next daemon."""
    for i in range(100_000):
        if stop():
            break
        name = folder / f"{i:0240d}"
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        os.unlink(name)


def reach(point, mount, plan, programs):
    """Lets the mount get to the point. Programs of the host open the files meanwhile."""
    while not plan.has_killed():
        if point in REPLAY + SUPERVISOR:
            with contextlib.suppress(OSError):
                if (daemon := mount.daemon()) is not None:
                    os.kill(daemon, signal.SIGKILL)
                os.statvfs(mount.directory)  # a mount is given up after ten daemons in a row that gave no answer
        elif point in STATE:
            with contextlib.suppress(OSError):
                fill_the_log(mount.directory, plan.has_killed)
        else:
            subprocess.run(["head", "-c1", CHANCE.choice(programs).host_file], stdout=subprocess.DEVNULL, check=True)
        time.sleep(0.05 * CHANCE.random())


@pytest.mark.parametrize("point", KEEPING + RINGS + STATE + REPLAY)
def test_a_daemon_that_is_killed_there_loses_nothing(game, point):
    _, mount, plan, programs = game
    for times in (1, 2, 7) if SOAK else (CHANCE.randrange(1, 4),):
        plan.kill(point, times)
        reach(point, mount, plan, programs)
    assert [program.end() for program in programs] == [""] * len(programs)
    for program in programs:
        program.check(complete=True)
    assert mount.end().count("has ended: Killed") >= 1


@pytest.mark.parametrize("point", KEEPING + RINGS + STATE + REPLAY if SOAK else FEW)
def test_a_daemon_and_a_supervisor_that_are_killed_there_lose_nothing_that_was_fsynced(game, point):
    _, mount, plan, programs = game
    plan.kill(point, CHANCE.randrange(1, 4), [mount.process.pid])
    reach(point, mount, plan, programs)
    expect_lost(programs)


@pytest.mark.parametrize("spares", [True, False], ids=["server", "server and daemon"])
@pytest.mark.parametrize("point", KEEPING + RINGS + REPLAY if SOAK else FEW)
def test_a_server_that_is_killed_there_and_started_again_loses_nothing(game, point, spares):
    server, mount, plan, programs = game
    plan.kill(point, CHANCE.randrange(1, 4), [server.process.pid], spares)
    with ThreadPoolExecutor() as threads:
        reaching = threads.submit(reach, point, mount, plan, programs)
        server.process.communicate(timeout=WATCHDOG)
        server.start()
        reaching.result(WATCHDOG)
    assert [program.end() for program in programs] == [""] * len(programs)
    for program in programs:
        program.check(complete=True)


@pytest.mark.parametrize("point, times", [("daemon_ended", 1), ("daemon_started", 1), *(("descriptor_given", times) for times in (1, 2, 3, 4))])
def test_a_supervisor_that_is_killed_there_ends_the_mount_and_loses_nothing_that_was_fsynced(game, point, times):
    """A daemon that has got some of the descriptors must not serve: it would not know of writes that were acknowledged."""
    _, mount, plan, programs = game
    plan.kill(point, times)
    reach(point, mount, plan, programs)
    expect_lost(programs)
