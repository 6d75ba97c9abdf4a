# SPDX-License-Identifier: Apache-2.0
"""What programs do with messages, beyond what mpi4py's suite tries: messages.c, over Wherry."""

import os
import subprocess
from pathlib import Path

import pytest
from mpis import ALL, environment, need

PROGRAM = os.environ["WHERRY_PROGRAM"]
SOURCE = Path(__file__).parent / "messages.c"

if not (Path(os.environ["WHERRY_MPI_LIBRARIES"]) / "libwherry-fi.so").exists():
    pytest.skip("the provider was not built: libfabric's headers are missing (scripts/setup mpi)", allow_module_level=True)


@pytest.fixture(scope="module", params=[mpi for mpi in ALL if mpi.name in ("mpich", "openmpi")], ids=lambda mpi: mpi.name)
def mpi(request):
    need(request.param)
    return request.param


@pytest.fixture(scope="module")
def messages(mpi, tmp_path_factory):
    return mpi.compile(tmp_path_factory.mktemp(mpi.name) / "messages", SOURCE, options=["-D_GNU_SOURCE"])


SOAK = "WHERRY_SOAK" in os.environ


def play(messages, *arguments, processes=3, timeout=200, **variables):
    result = subprocess.run([PROGRAM, "mpirun", "-n", str(processes), messages, *arguments], env=environment(**variables),
                            capture_output=True, text=True, timeout=timeout)
    assert (result.returncode, result.stdout.split("\n")[-2:]) == (0, ["passed", ""]), result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("scenario", ["long_and_short", "unexpected"])
def test_messages_arrive_where_ranks_may_not_read_each_others_memory(messages, scenario):
    play(messages, scenario, "unreadable")


def test_100000_messages_that_nothing_is_posted_for_take_bounded_memory(messages):
    print(play(messages, "unexpected"))


def test_threads_send_and_receive_at_once(messages):
    play(messages, "threads")


def test_gaps_of_a_datatype_are_neither_sent_nor_written(messages):
    play(messages, "gaps")


def test_a_message_too_long_for_its_buffer_is_an_error_and_the_next_arrives(messages):
    play(messages, "truncation")


def test_a_synchronous_send_ends_if_its_receive_has_too_small_a_buffer(mpi, messages):
    if not mpi.is_mpich:
        pytest.skip("Open MPI acknowledges only what was received without an error (docs/mpi.md)")
    play(messages, "synchronous_truncation")


def test_wildcards_take_every_message_each_senders_in_order(messages):
    play(messages, "wildcards")


def test_a_cancelled_receive_takes_nothing(messages):
    play(messages, "cancelled")


@pytest.mark.parametrize("processes", [2, 3])
def test_many_short_messages_arrive_in_order_though_ranks_fall_asleep(messages, processes):
    play(messages, "many", processes=processes, timeout=15000 if SOAK else 200, WHERRY_MESSAGES=str(10**8 // processes if SOAK else 20000))


@pytest.mark.skipif(not SOAK, reason="4 GiB of memory: make soak")
def test_a_message_may_have_more_bytes_than_an_int_counts(messages):
    play(messages, "huge", processes=2)
