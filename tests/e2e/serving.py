# SPDX-License-Identifier: Apache-2.0
"""`wherry serve` and `wherry mount`, for as long as a `with` block, in a mount namespace of the test's own."""

import contextlib
import ctypes
import fcntl
import os
import re
import signal
import subprocess
import uuid
from pathlib import Path

import pytest
from program import PROGRAM, environment
from waiting import WATCHDOG, wait_until, wait_until_stopped

MOUNT_PROGRAM = os.path.join(os.path.dirname(os.path.realpath(PROGRAM)), "wherry-mount")
NEW_MOUNT_NAMESPACE = 0x20000
# Each change of a file that was looked at has a time of its own; on older kernels, those within one tick have the same.
HAS_FINE_TIMES = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 13)

NO_PASSTHROUGH = "--no-passthrough"
# How a mount reaches the server's files. Passthrough is used where this kernel has it.
SERVERS = pytest.mark.parametrize("serve", [[], [NO_PASSTHROUGH], ["--no-lend"]], ids=["passed through", "lent", "through the server"])


def enter_mount_namespace():
    """What this process and its children mount is seen by nobody else. Skips the test where FUSE is not permitted."""
    if not os.path.exists(MOUNT_PROGRAM):
        pytest.skip("wherry mount was not built: no libfuse3-dev")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        pytest.skip(f"no FUSE here: {error}")
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_MOUNT_NAMESPACE) != 0:
        pytest.skip("no mount namespace of one's own here: " + os.strerror(ctypes.get_errno()))
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def need_leases(folder):
    """Skips the test where nothing is delegated."""
    (folder / "file").touch()
    with open(folder / "file") as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            pytest.skip(f"no leases here: {error}")


def enter_namespace_with_delegations(folder):
    """As enter_mount_namespace. Skips the test where a server of this folder delegates nothing."""
    enter_mount_namespace()
    if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (5, 10):
        pytest.skip("nothing is delegated before Linux 5.10")
    need_leases(folder)


def children_of(process):
    with open(f"/proc/{process}/task/{process}/children") as children:
        return [int(pid) for pid in children.read().split()]


class Server:
    """`wherry serve` of a directory, which can be killed and started again at the same address. NO_PASSTHROUGH among the
    options is for its mounts."""

    def __init__(self, root, *options, preexec_fn=None, prefix=(), env=None):
        """`prefix` are words before the program's."""
        self.root = root
        self.prefix = prefix
        self.options = [option for option in options if option != NO_PASSTHROUGH]
        self.mount_options = [option for option in options if option == NO_PASSTHROUGH]
        self.preexec_fn = preexec_fn
        self.env = env or environment(WHERRY_JOB=f"test-{uuid.uuid4().hex[:12]}")
        self.address = "wherry://0:7000"
        self.start()

    def start(self):
        self.process = subprocess.Popen([*self.prefix, PROGRAM, "serve", "--root", self.root, "--listen", self.address, *self.options],
                                        env=self.env, stderr=subprocess.PIPE, text=True, preexec_fn=self.preexec_fn)
        assert "serving" in self.process.stderr.readline()

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=WATCHDOG)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Mount:
    """`wherry mount` of a server on a directory, which is made."""

    def __init__(self, server, directory, *options, preexec_fn=None, prefix=(), env=None):
        with contextlib.suppress(FileExistsError):  # of a daemon that was killed nothing can be asked
            os.mkdir(directory)
        self.directory = directory
        self.process = subprocess.Popen([*prefix, *self.command(server, directory, options)], env=env or server.env, stderr=subprocess.PIPE,
                                        text=True, preexec_fn=preexec_fn)
        self.said = self.process.stderr.readline()

    def command(self, server, directory, options):
        return [PROGRAM, "mount", server.address, directory, *server.mount_options, *options]

    def daemon(self):
        """The process that serves; None at a moment in which there is none."""
        return max(children_of(self.process.pid), default=None)

    @contextlib.contextmanager
    def stopped_daemon(self):
        daemon = self.daemon()
        os.kill(daemon, signal.SIGSTOP)
        try:
            wait_until_stopped(daemon)
            yield
        finally:
            os.kill(daemon, signal.SIGCONT)

    def kill_daemon(self):
        """Returns once another one is there."""
        before = wait_until(self.daemon, "a daemon")
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: self.daemon() not in (None, before), "another daemon")

    def kill(self):
        """The supervisor first: it would start another daemon."""
        daemon = self.daemon()
        self.process.kill()
        os.kill(daemon, signal.SIGKILL)
        self.process.communicate(timeout=WATCHDOG)

    def end(self):
        """Returns what it said on the way."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=WATCHDOG)
        return errors

    def __enter__(self):
        assert " is mounted on " in self.said, self.said + self.process.communicate(timeout=WATCHDOG)[1]
        return self.directory

    def __exit__(self, *error):
        errors = self.end()
        if error[0] is None:
            assert self.process.returncode == 0, errors


@contextlib.contextmanager
def mounts(folder, count=1, serve=(), mount=()):
    """Gives the served directory, and the directories of as many mounts of it."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(root, *serve))
        yield root, *[stack.enter_context(Mount(server, folder / f"mount{i}", *mount)) for i in range(count)]


def expect_same_as_natively(folder, serve, results):
    """Asserts that `results(directory)` yields on a mount what it yields on the file system below it."""
    (folder / "native").mkdir()
    natively = list(results(folder / "native"))
    with mounts(folder, serve=serve) as (_, here):
        assert list(results(here)) == natively


def is_mounted(directory):
    with open("/proc/self/mountinfo") as mounted:
        return any(line.split()[4] == str(directory) for line in mounted)


def limits_of(directory):
    """The kernel's limits of the mount: read-ahead in KiB, and the share of changed pages in %."""
    with open("/proc/self/mountinfo") as mounted:
        device = [fields[2] for fields in map(str.split, mounted) if fields[4] == str(directory)][-1]
    if not os.path.exists(f"/sys/class/bdi/{device}"):
        pytest.skip("no /sys here")
    return tuple(int(Path(f"/sys/class/bdi/{device}/{name}").read_text()) for name in ("read_ahead_kb", "max_ratio"))
