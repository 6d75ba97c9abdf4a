# SPDX-License-Identifier: Apache-2.0
"""wherry card: starts, is one, ends in order, and refuses what it cannot do with words."""

import os
import signal
import subprocess
import time

PROGRAM = os.environ["WHERRY_PROGRAM"]
JOB = os.environ.get("WHERRY_JOB", "default")
NODE = 41


def segment(node=NODE):
    return f"/dev/shm/wherry-files-{os.geteuid()}-{JOB}-{node}"


def start(*arguments):
    card = subprocess.Popen([PROGRAM, "card", "--node", str(NODE), *arguments], stdout=subprocess.PIPE, text=True)
    return card, card.stdout.readline()


def run(*arguments):
    return subprocess.run([PROGRAM, "card", *arguments], capture_output=True, text=True)


def test_serves_until_it_is_told_to_end_and_leaves_nothing():
    card, said = start("--cache", "8M")
    assert said == f"serves a cache of 8.4 MB in {segment()}\n"
    assert os.stat(segment()).st_mode & 0o777 == 0o600
    card.send_signal(signal.SIGTERM)
    assert card.wait() == 0
    assert not os.path.exists(segment())


def test_a_second_one_is_refused():
    card, _ = start("--cache", "8M")
    second = run("--node", str(NODE))
    assert second.returncode == 1
    assert "another wherry card serves it" in second.stderr
    card.kill()
    card.wait()
    assert os.path.exists(segment()), "what kill -9 leaves, the next one takes over"
    card, said = start("--cache", "8M")
    assert said
    card.send_signal(signal.SIGINT)
    assert card.wait() == 0
    assert not os.path.exists(segment())


def test_says_what_is_wrong_with_its_file():
    with open(segment(), "w") as file:
        file.write("no cache")
    try:
        os.chmod(segment(), 0o600)
        damaged = run("--node", str(NODE))
        assert damaged.returncode == 1
        assert "the file is damaged, or of another version of Wherry" in damaged.stderr
        os.chmod(segment(), 0o644)
        open_to_others = run("--node", str(NODE))
        assert open_to_others.returncode == 1
        assert "the file is not this user's alone" in open_to_others.stderr
    finally:
        os.unlink(segment())


def test_refuses_numbers_that_are_none():
    assert "use at least 1M" in run("--cache", "1K").stderr
    assert "WHERRY_NODE=x" in run("--node", "x").stderr


def test_sleeps_while_nothing_happens():
    card, _ = start("--cache", "8M")

    def switches():
        total = 0
        for thread in os.listdir(f"/proc/{card.pid}/task"):
            with open(f"/proc/{card.pid}/task/{thread}/status") as status:
                total += int(next(line.split()[1] for line in status if line.startswith("voluntary_ctxt_switches")))
        return total

    try:
        for _ in range(20):  # on a busy machine its start takes a while
            before = switches()
            time.sleep(1.5)
            if switches() - before <= 1:
                break
        else:
            raise AssertionError("it is awake all the time")
    finally:
        card.terminate()
        assert card.wait() == 0
