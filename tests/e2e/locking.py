# SPDX-License-Identifier: Apache-2.0
"""Processes that lock files when they are told to."""

import contextlib
import json
import os
import select
import subprocess
import sys

from waiting import WATCHDOG, is_running, wait_until

PROGRAM = r"""
import ctypes, errno, fcntl, json, os, signal, struct, sys, threading

libc = ctypes.CDLL(None, use_errno=True)
TYPES = {"read": fcntl.F_RDLCK, "write": fcntl.F_WRLCK, "none": fcntl.F_UNLCK}
NAMES = {number: name for name, number in TYPES.items()}
COMMANDS = {"posix": (fcntl.F_SETLK, fcntl.F_SETLKW, fcntl.F_GETLK), "ofd": (37, 38, 36)}
FLOCK = {"read": fcntl.LOCK_SH, "write": fcntl.LOCK_EX, "none": fcntl.LOCK_UN}
FORMAT = "hhqqi4x"
files = {}

def open(name, path, flags=os.O_RDWR):
    files[name] = os.open(path, flags)

def close(name):
    os.close(files.pop(name))

def duplicate(name, new):
    files[new] = os.dup(files[name])

def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), "")

def lock(kind, name, type, start=0, length=0, wait=False):
    if kind == "flock":
        checked(libc.flock(files[name], FLOCK[type] | (0 if wait else fcntl.LOCK_NB)))  # no PEP 475: EINTR is a result
        return
    if kind == "lockf":
        os.lseek(files[name], start, os.SEEK_SET)
        command = 0 if type == "none" else 1 if wait else 2
        checked(libc.lockf(files[name], command, ctypes.c_long(length)))
        return
    request = ctypes.create_string_buffer(struct.pack(FORMAT, TYPES[type], 0, start, length, 0))
    checked(libc.fcntl(files[name], COMMANDS[kind][1 if wait else 0], request))

def get(kind, name, type, start=0, length=0):
    request = struct.pack(FORMAT, TYPES[type], 0, start, length, 0)
    type, whence, start, length, pid = struct.unpack(FORMAT, fcntl.fcntl(files[name], COMMANDS[kind][2], request))
    return [NAMES[type]] + ([start, length, pid] if type != fcntl.F_UNLCK else [])

def read(name, offset, length):
    return os.pread(files[name], length, offset).decode()

def write(name, offset, text):
    return os.pwrite(files[name], text.encode(), offset)

def times(name):
    return os.fstat(files[name]).st_mtime_ns

def set_times(name, time):
    os.utime(files[name], ns=(time, time))

def handle_alarms():
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.siginterrupt(signal.SIGUSR1, True)

def forked(command, *arguments):
    # What a child that has inherited everything gets.
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, json.dumps(answer(command, arguments)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        result = json.load(file)
    os.waitpid(child, 0)
    return result

def in_thread(command, *arguments):
    results = []
    thread = threading.Thread(target=lambda: results.append(answer(command, arguments)))
    thread.start()
    thread.join()
    return results[0]

def answer(command, arguments):
    try:
        return globals()[command](*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]

for line in sys.stdin:
    command, *arguments = json.loads(line)
    print(json.dumps(answer(command, arguments)), flush=True)
"""


class Locker:
    """Each call is made in another process, and returns what the process's call did: the error's name, if it failed."""

    def __init__(self, path=None, flags=os.O_RDWR):
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if path is not None:
            assert self.open("file", str(path), flags) is None

    def __getattr__(self, command):
        return lambda *arguments: self.begin(command, *arguments).result()

    def begin(self, command, *arguments):
        """Does not wait for the result."""
        self.process.stdin.write(json.dumps([command, *arguments]) + "\n")
        self.process.stdin.flush()
        return self

    def result(self):
        assert select.select([self.process.stdout], [], [], WATCHDOG)[0], f"no answer within {WATCHDOG} s"
        return json.loads(self.process.stdout.readline())

    def wait_until_it_waits(self):
        """Its call sleeps in the kernel."""
        def sleeps():
            assert not self.has_answered(), self.result()
            with open(f"/proc/{self.process.pid}/syscall") as file:
                call = file.read().split()[0]
            return call in (str(FCNTL), str(FLOCK))
        wait_until(sleeps, "a call that locks")

    def has_answered(self):
        return select.select([self.process.stdout], [], [], 0)[0] != []

    def end(self):
        if is_running(self.process.pid):
            self.process.kill()
        self.process.wait(timeout=WATCHDOG)
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


FCNTL, FLOCK = {"x86_64": (72, 73), "aarch64": (25, 32)}[os.uname().machine]


@contextlib.contextmanager
def lockers(*paths):
    """A process for each, which has it open as "file"."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Locker(path)) for path in paths]
