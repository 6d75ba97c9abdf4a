# SPDX-License-Identifier: Apache-2.0
"""`wherry bench net --listen` on one host and `--connect` on another: two network namespaces that a cable joins."""

import json
import re
import signal
import subprocess
from contextlib import contextmanager

import pytest
from two_hosts import FAR, NEAR, PIPE, result
from waiting import WATCHDOG

PORT = 46990


@contextmanager
def listening(hosts, **environment):
    """The program that listens on the near host, and the lines that it prints."""
    program = hosts.start(hosts.near, "bench", "net", "--listen", env=environment)
    assert b"waiting at TCP port" in program.stderr.readline()
    yield program
    program.kill()
    program.wait(WATCHDOG)


def connect(hosts, *arguments):
    return hosts.start(hosts.far, "bench", "net", "--connect", NEAR, *arguments, stdout=PIPE)


def measured(hosts, tmp_path, *arguments):
    """The driver's exit status and errors, and the medians by system and metric."""
    code, errors = result(connect(hosts, "--json", tmp_path / "figures.json", *arguments))
    rows = json.loads((tmp_path / "figures.json").read_text())["rows"] if code == 0 else []
    return code, errors, {(row["system"], row["metric"]): row["median"] for row in rows}


def test_every_system_is_measured_between_the_hosts(hosts, tmp_path):
    with listening(hosts):
        code, errors, figures = measured(hosts, tmp_path, "--smoke")
    assert code == 0, errors
    for system in ("net-wherry", "net-tcp"):
        for metric in ("GB/s", "cpu_s_per_GB", "ns_p50", "asleep_ns_p50"):
            assert figures[system, metric] > 0


def test_payloads_are_checked_on_both_hosts(hosts, tmp_path):
    with listening(hosts):
        code, errors, figures = measured(hosts, tmp_path, "--smoke", "--modes", "touched", "--systems", "net-wherry,net-tcp")
    assert code == 0 and "not what was sent" not in errors, errors
    assert figures["net-wherry", "GB/s"] > 0


def test_the_bytes_cross_the_cable(hosts, tmp_path):
    def received():
        return json.loads(hosts.run(hosts.near, "ip", "-s", "-j", "link", "show", "near0"))[0]["stats64"]["rx"]["bytes"]
    with listening(hosts):
        before = received()
        code, errors, _ = measured(hosts, tmp_path, "--smoke", "--systems", "net-wherry", "--sizes", "64K")
        assert code == 0, errors
        assert received() - before > 8 * 65536


def test_without_a_listener_the_error_says_what_to_start(hosts):
    code, errors = result(connect(hosts, "--smoke"))
    assert code == 1
    assert f"cannot connect to {NEAR}:{PORT}: Connection refused" in errors and "wherry bench net --listen" in errors


def test_what_fails_on_the_other_host_is_told_here_and_the_rest_is_measured(hosts, tmp_path):
    with listening(hosts, WHERRY_KEY=None):
        code, errors, figures = measured(hosts, tmp_path, "--smoke", "--systems", "net-wherry,net-tcp", "--sizes", "64K")
    assert code == 0, errors
    assert re.search(r"net-wherry: the other host: .*WHERRY_KEY", errors), errors
    assert figures["net-tcp", "GB/s"] > 0


def test_a_listener_that_is_killed_ends_the_run_with_an_error(hosts):
    with listening(hosts) as listener:
        driver = connect(hosts, "--systems", "net-tcp", "--sizes", "64K", "--seconds", "60", "--bytes", "1000G")
        while b"net-tcp" not in (line := listener.stderr.readline()):
            assert line
        listener.kill()
        code, errors = result(driver)
    assert code == 1 and "the program on the other host has ended" in errors, errors


def test_a_listener_outlives_its_drivers(hosts, tmp_path):
    with listening(hosts) as listener:
        driver = connect(hosts, "--systems", "net-tcp", "--sizes", "64K", "--seconds", "60", "--bytes", "1000G")
        while b"net-tcp" not in (line := listener.stderr.readline()):
            assert line
        driver.send_signal(signal.SIGKILL)
        driver.wait(WATCHDOG)
        code, errors, figures = measured(hosts, tmp_path, "--smoke", "--systems", "net-tcp")
    assert code == 0 and figures["net-tcp", "GB/s"] > 0, errors


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n\r\n", b"WRBN\xff\xff\xff\xff", b"WRBN\x04\x00\x00\x00[[[[",
                                  b"WRBN\x02\x00\x00\x00{}"])
def test_a_stranger_is_turned_away(hosts, tmp_path, said):
    with listening(hosts):
        # nsenter gives the stranger that host's network; the bytes come by its standard input.
        stranger = [*hosts.inside(hosts.far), "bash", "-c", f"exec 3<>/dev/tcp/{NEAR}/{PORT}; cat >&3"]
        subprocess.run(stranger, input=said, timeout=WATCHDOG, capture_output=True)
        code, errors, figures = measured(hosts, tmp_path, "--smoke", "--systems", "net-tcp", "--sizes", "64K")
    assert code == 0 and figures["net-tcp", "GB/s"] > 0, errors


@contextmanager
def another_program(hosts, code):
    """A program in the listener's place, which accepts the driver as `c` and does `code`."""
    server = [*hosts.inside(hosts.near), "python3", "-c",
              f"import socket, struct; s = socket.create_server(('', {PORT})); print('up', flush=True); c = s.accept()[0]; {code}"]
    with subprocess.Popen(server, stdout=PIPE, text=True) as program:
        try:
            assert program.stdout.readline() == "up\n"
            yield
        finally:
            program.kill()


def test_a_program_that_is_no_listener_is_named(hosts):
    with another_program(hosts, "c.sendall(b'SSH-2.0-server'); c.recv(1 << 20); c.recv(1)"):
        code, errors = result(connect(hosts, "--smoke"))
    assert code == 1 and f"the program at {NEAR} is no `wherry bench net`" in errors, errors


def test_a_program_that_resets_the_connection_has_ended(hosts):
    # What the kernel sends for a killed program depends on whether that had read everything: here it had not.
    reset = "c.recv(1); c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); c.close()"
    with another_program(hosts, reset):
        code, errors = result(connect(hosts, "--smoke"))
    assert code == 1 and "the program on the other host has ended" in errors, errors


def test_the_port_in_use_and_both_options_at_once_are_refused(hosts):
    with listening(hosts):
        code, errors = result(hosts.start(hosts.near, "bench", "net", "--listen"))
        assert code == 1 and f"cannot listen at TCP port {PORT}: Address already in use" in errors
    code, errors = result(hosts.start(hosts.near, "bench", "net", "--listen", "--connect", FAR))
    assert code == 2 and "--connect" in errors
