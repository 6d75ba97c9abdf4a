# SPDX-License-Identifier: Apache-2.0
"""The demo when things go wrong: one clear line, an exit status that tells the truth, and nothing left behind."""

import fcntl
import os
import re
import signal
import subprocess
import time

import pytest
from collecting import is_running, wait_until
from demonstrating import WATCHDOG, assert_cleaned_up, command, environment, imitation, run, start


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tree").mkdir()
    for index in range(6):
        (tmp_path / f"tree/{index}").write_bytes(os.urandom(10_000))
    return tmp_path / "tree"


def assert_one_line(done, text):
    assert done.returncode == 1
    assert re.fullmatch(r"demo: .*\n", done.stderr) and text in done.stderr, done.stderr


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP], [signal.SIGHUP, signal.SIGTERM, signal.SIGINT]],
                         ids=lambda signals: "-".join(number.name for number in signals))
def test_a_demo_that_is_interrupted_says_so_and_leaves_neither_copies_nor_processes(tmp_path, tree, signals):
    started = tmp_path / "started"
    endless = imitation(tmp_path, f"echo $$ >>'{started}'; exec sleep 1000")
    with start(tree, tmp_path / "work", program=endless) as demo:
        pids = wait_until(lambda: started.exists() and len(lines := started.read_text().split()) == 4 and lines, "collector and shippers")
        for number in signals:
            demo.send_signal(number)
        _, errors = demo.communicate(timeout=WATCHDOG)
    assert demo.returncode in [128 + number for number in signals]
    assert errors == "demo: interrupted; everything is cleaned up\n"
    assert_cleaned_up(tmp_path / "work", errors)
    assert not any(is_running(pid) for pid in pids)


def test_a_demo_that_is_interrupted_while_it_copies_leaves_nothing(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    with open(tree / "large", "wb") as file:
        file.truncate(512 << 20)
    # Without an end: however late the interrupt comes, the demo is still there.
    with start(tree, tmp_path / "work", program=imitation(tmp_path, "exec sleep 1000")) as demo:
        wait_until(lambda: list((tmp_path / "work").glob("*/sent/tree/large")), "the copy to begin")
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=WATCHDOG)
    assert (demo.returncode, errors) == (130, "demo: interrupted; everything is cleaned up\n")
    assert_cleaned_up(tmp_path / "work", errors)


def test_a_shipper_that_is_killed_is_named_and_the_others_do_not_wait_for_it(tmp_path, tree):
    killed = imitation(tmp_path, 'case "$*" in *"--name worker 1 "*) kill -9 $$ ;; esac; exec "$WHERRY" "$@"')
    done = run(tree, tmp_path / "work", program=killed)
    assert done.returncode == 1
    assert re.search(r"\Ademo: over .* worker 1 was killed by signal 9 \(Killed\)\n\Z", done.stderr.splitlines(True)[-1])


def test_a_program_that_fails_has_its_messages_shown(tmp_path, tree):
    failing = imitation(tmp_path, "echo 'no such luck' >&2; exit 3")
    done = run(tree, tmp_path / "work", program=failing)
    assert done.returncode == 1
    assert "no such luck" in done.stderr
    # All of them fail; the one that is waited for first is named.
    assert re.search(r"(the collector|worker \d+) failed with status 3$", done.stderr.splitlines()[-1])


def test_what_the_others_say_when_they_are_stopped_does_not_hide_why(tmp_path, tree):
    ready = tmp_path / "ready"
    talkative = imitation(tmp_path, f"""case "$*" in
        *"--name worker 1 "*) until [ -e '{ready}' ]; do sleep 0.05; done; echo 'no such luck' >&2; exit 3 ;;
        collect*) trap 'seq 1000 1100 >&2; exit 1' TERM; touch '{ready}' ;;
        esac; while :; do sleep 0.05; done""")
    done = run(tree, tmp_path / "work", program=talkative)
    assert done.returncode == 1
    said, why = done.stderr.splitlines()[-2:]
    assert said == "demo: no such luck" and why.endswith("worker 1 failed with status 3"), done.stderr


def test_a_file_that_arrives_changed_is_no_success(tmp_path, tree):
    forging = imitation(tmp_path, f'"$WHERRY" "$@" || exit; [ "$1" != collect ] || echo changed | tee "{tmp_path}"/work/*/arrived/tree/3')
    done = run(tree, tmp_path / "work", program=forging)
    assert done.returncode == 1
    assert "tree/3 differ" in done.stderr
    assert done.stderr.splitlines()[-1] == "demo: diff found that what arrived is not what was sent"


def test_a_file_that_does_not_arrive_is_no_success(tmp_path, tree):
    losing = imitation(tmp_path, f'"$WHERRY" "$@" || exit; [ "$1" != collect ] || rm "{tmp_path}"/work/*/arrived/tree/3')
    done = run(tree, tmp_path / "work", program=losing)
    assert done.returncode == 1
    assert "/sent/tree: 3\n" in done.stderr
    assert done.stderr.splitlines()[-1] == "demo: diff found that what arrived is not what was sent"


def test_a_missing_program_is_one_clear_line(tmp_path, tree):
    assert_one_line(run(tree, tmp_path / "work", program=tmp_path / "missing"), "missing is no program; 'scripts/build release")


def test_an_output_that_is_full_is_one_clear_line(tmp_path, tree):
    with open("/dev/full", "w") as full:
        assert_one_line(run(tree, tmp_path / "work", stdout=full), "cannot write to standard output: No space left on device")


def test_an_output_that_is_read_no_further_is_one_clear_line(tmp_path, tree):
    reader, writer = os.pipe()
    os.close(reader)
    assert_one_line(run(tree, tmp_path / "work", stdout=writer), "cannot write to standard output: Broken pipe")
    os.close(writer)


def test_an_output_that_is_closed_is_one_clear_line(tmp_path, tree):
    assert_one_line(run(tree, tmp_path / "work", prefix=["sh", "-c", 'exec "$@" >&-', "sh"]), "standard output is closed")


def test_a_work_folder_that_does_not_exist_is_one_clear_line(tmp_path, tree):
    done = subprocess.run(command(tree, tmp_path / "missing"), capture_output=True, text=True, timeout=WATCHDOG, env=environment())
    assert_one_line(done, "missing: No such file or directory; name another folder with --work")


def test_a_file_for_the_figures_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path, tree):
    done = run(tree, tmp_path / "work", "--json", tmp_path / "missing/figures")
    assert_one_line(done, "missing/figures: No such file or directory")
    assert done.stdout == ""


def test_a_disk_that_others_fill_meanwhile_is_told_in_words(tmp_path, tree):
    (tree / "large").write_bytes(os.urandom(2_000_000))
    work = tmp_path / "work"
    work.mkdir()
    filling = imitation(tmp_path, f'[ "$1" != collect ] || cat /dev/zero >"{work}/full" 2>/dev/null; exec "$WHERRY" "$@"')
    private = ["unshare", "--mount", "--map-root-user", "sh", "-c", 'mount -t tmpfs -o size=16m none "$0" && exec "$@"', work]
    if subprocess.run([*private, "true"], capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    done = subprocess.run([*private, *command(tree, work, program=filling)], capture_output=True, text=True, timeout=WATCHDOG,
                          env=environment())
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("demo: ")


def test_the_copies_of_a_killed_demo_are_removed_by_the_next_and_those_of_a_living_one_are_not(tmp_path, tree):
    work = tmp_path / "work"
    for name in ("killed", "living"):
        (work / f"wherry-demo-{name}/sent").mkdir(parents=True)
        os.utime(work / f"wherry-demo-{name}", (time.time() - 3600,) * 2)
    living = os.open(work / "wherry-demo-living", os.O_RDONLY)
    fcntl.flock(living, fcntl.LOCK_EX)
    done = subprocess.run(command(tree, work), capture_output=True, text=True, timeout=WATCHDOG, env=environment())
    os.close(living)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(work) == ["wherry-demo-living"]
