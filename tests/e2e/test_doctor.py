# SPDX-License-Identifier: Apache-2.0
"""wherry doctor: that it says OK where Wherry works, and says what to change where it does not."""

import errno
import json
import os
import resource
import shutil
import subprocess

import pytest
import seccomp
from other_user import NOBODY, need_other_user
from program import PROGRAM, environment, wherry

CHECKS = {
    "reach",
    "namespaces",
    "kernel",
    "cores",
    "memory",
    "descriptors",
    "file sizes",
    "locked memory",
    "memory files",
    "sockets",
    "waiting",
    "copying between processes",
    "lending descriptors",
    "registering memory",
    "io_uring",
    "membarrier",
    "huge pages",
    "mounting",
    "passthrough of mounts",
    "limits of mounts",
    "leases of files",
    "settings",
    "stream",
}


def checks(*prefix, env=None, **options):
    result = subprocess.run(
        [*prefix, PROGRAM, "doctor", "--json"], env=environment(**(env or {})), capture_output=True, text=True, timeout=60, **options
    )
    report = json.loads(result.stdout)
    assert result.returncode == (0 if report["ok"] else 1), result.stderr
    return report, {check["name"]: check for check in report["checks"]}


def with_descriptors(limit):
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))}


def test_where_the_tests_run_wherry_works():
    report, found = checks()
    assert report["ok"] and report["failures"] == 0
    assert set(found) == CHECKS
    assert "there and back" in found["stream"]["found"]


def test_every_check_that_is_not_ok_says_what_to_change():
    _, found = checks(env={"WHERRY_RING": "1"}, **with_descriptors(20))
    for name, check in found.items():
        assert check["verdict"] in ("OK", "warn", "FAIL")
        assert check["found"], name
        assert check["verdict"] == "OK" or check["advice"], name


def test_the_text_shows_every_check_and_a_conclusion():
    result = wherry("doctor")
    assert result.returncode == 0
    for name in CHECKS:
        assert any(line[6:].startswith(name) for line in result.stdout.splitlines()), name
    assert result.stdout.rstrip().splitlines()[-1].startswith("Wherry works here")


@pytest.mark.skipif("UBSAN_OPTIONS" in os.environ, reason="that sanitizer needs descriptors where something is thrown")
def test_too_few_descriptors_for_one_connection_fail():
    report, found = checks(**with_descriptors(19))
    assert not report["ok"]
    assert found["descriptors"]["verdict"] == "FAIL"
    assert "ulimit -n" in found["descriptors"]["advice"]


def test_few_descriptors_are_a_warning_with_the_room_they_leave():
    report, found = checks(**with_descriptors(96))
    assert report["ok"]
    assert found["descriptors"]["verdict"] == "warn"
    assert "about 20 connections" in found["descriptors"]["found"]


def with_files_of(limit):
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}


def test_a_limit_of_file_sizes_below_the_smallest_ring_fails():
    report, found = checks(**with_files_of(4096))
    assert not report["ok"]
    assert found["file sizes"]["verdict"] == "FAIL" and found["stream"]["verdict"] == "FAIL"
    assert "ulimit -f" in found["file sizes"]["advice"] and "ulimit -f" in found["stream"]["found"]


def test_what_fits_below_a_limit_of_file_sizes_works_with_a_warning():
    report, found = checks(env={"WHERRY_RING": "64K"}, **with_files_of(1 << 20))
    assert report["ok"]
    assert found["file sizes"]["verdict"] == "warn" and found["stream"]["verdict"] == "OK"


@pytest.mark.parametrize("variable, value", [("WHERRY_RING", "1"), ("WHERRY_NODE", "host"), ("WHERRY_STATISTICS", "maybe")])
def test_a_setting_that_is_not_valid_fails(variable, value):
    report, found = checks(env={variable: value})
    assert not report["ok"]
    assert found["settings"]["verdict"] == "FAIL"
    assert f"{variable}={value}" in found["settings"]["found"]


def test_a_misspelt_variable_is_a_warning():
    report, found = checks(env={"WHERRY_RNIG": "1M"})
    assert report["ok"]
    assert found["settings"]["verdict"] == "warn" and "WHERRY_RNIG" in found["settings"]["found"]


def test_a_fabric_that_does_not_exist_fails_the_stream():
    report, found = checks(env={"WHERRY_FABRIC": "no-such-fabric"})
    assert not report["ok"]
    assert found["stream"]["verdict"] == "FAIL" and "no-such-fabric" in found["stream"]["found"]


@pytest.mark.parametrize("fabric", ["shm", "inproc", "inproc-put"])
def test_the_stream_is_tried_over_the_configured_fabric(fabric):
    report, found = checks(env={"WHERRY_FABRIC": fabric})
    assert report["ok"]
    assert f"over {fabric}:" in found["stream"]["found"]


def test_one_core_is_a_warning():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("cannot choose cores here")
    one = min(os.sched_getaffinity(0))
    report, found = checks(preexec_fn=lambda: os.sched_setaffinity(0, {one}))
    assert report["ok"]
    assert found["cores"]["verdict"] == "warn"


def refuse_userfaultfd(unless_user_mode_only):
    """As containers do."""
    load, equal, bits, give = seccomp.LOAD, seccomp.EQUAL, seccomp.BITS, seccomp.GIVE
    seccomp.install([
        (load, 0, 0, seccomp.NUMBER),
        (equal, 0, 2, seccomp.call_number(323, 282)),  # userfaultfd
        (load, 0, 0, seccomp.FIRST_ARGUMENT),  # flags
        (bits, 4, 3, 1 if unless_user_mode_only else 0),
        (equal, 0, 3, seccomp.call_number(16, 29)),  # ioctl
        (load, 0, 0, seccomp.FIRST_ARGUMENT + 8),  # USERFAULTFD_IOC_NEW, on /dev/userfaultfd
        (equal, 0, 1, 0xAA00),
        (give, 0, 0, seccomp.FAIL | errno.EPERM),
        (give, 0, 0, seccomp.ALLOW),
    ])


@pytest.mark.parametrize("user_mode_only, said", [(False, "can be lost"), (True, "can fail with EFAULT")])
def test_what_is_lost_where_userfaultfd_is_refused_is_said(user_mode_only, said):
    _, here = checks()
    if "can be lost" in here["registering memory"]["found"]:
        pytest.skip("userfaultfd is refused here already")
    report, found = checks(preexec_fn=lambda: refuse_userfaultfd(user_mode_only))
    assert report["ok"]
    assert found["registering memory"]["verdict"] == "warn"
    assert "/dev/userfaultfd" in found["registering memory"]["advice"]
    assert said in found["registering memory"]["found"]


def with_mounts(script):
    """A prefix: the program sees what the script mounts, nobody else does."""
    prefix = ["unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh"]
    if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    return prefix


def test_without_the_device_of_fuse_nothing_can_be_mounted():
    report, found = checks(*with_mounts("mount -t tmpfs tmpfs /dev"), env={"WHERRY_FABRIC": "inproc"})
    assert found["mounting"]["verdict"] == "warn"
    assert "No such file" in found["mounting"]["found"] and "--device /dev/fuse" in found["mounting"]["advice"]


def test_a_user_is_told_what_only_a_mount_of_root_has():
    need_other_user(PROGRAM)
    report, found = checks(*NOBODY)
    assert report["ok"]
    has_passthrough = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 9)
    assert ("all data goes through the daemon" if has_passthrough else "not in Linux") in found["passthrough of mounts"]["found"]
    assert "128 KiB of read-ahead" in found["limits of mounts"]["found"]
    assert "mount as root" in found["limits of mounts"]["advice"]


def test_a_user_needs_fusermount3():
    need_other_user(PROGRAM)
    device = "mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/fuse c 10 229 && mknod -m 666 /dev/null c 1 3"
    prefix = [*with_mounts(device + " && true < /dev/fuse"), *NOBODY]
    helper = shutil.which("fusermount3")
    if helper is not None:
        _, found = checks(*prefix, env={"WHERRY_FABRIC": "inproc"})
        assert found["mounting"]["verdict"] == "OK" and helper in found["mounting"]["found"]
    _, found = checks(*prefix, shutil.which("env"), "PATH=/nonexistent", env={"WHERRY_FABRIC": "inproc"})
    assert found["mounting"]["verdict"] == "warn" and "install fuse3" in found["mounting"]["advice"]


@pytest.mark.parametrize("file, value, verdict, said", [
    ("lease-break-time", 0, "OK", ""),
    ("lease-break-time", 26, "OK", ""),
    ("lease-break-time", 25, "warn", "--recall-timeout below 5.0"),
    ("lease-break-time", 9, "warn", "--recall-timeout below 1.8"),
    ("leases-enable", 0, "warn", "fs.leases-enable=1"),
])
def test_what_leases_must_outlast_for_mounts_to_keep_writes(tmp_path, file, value, verdict, said):
    (tmp_path / file).write_text(f"{value}\n")
    _, found = checks(*with_mounts(f"mount --bind {tmp_path}/{file} /proc/sys/fs/{file}"))
    assert found["leases of files"]["verdict"] == verdict
    assert said in found["leases of files"]["advice"]
