# SPDX-License-Identifier: Apache-2.0
"""A collector under test, shippers for it, and trees to hand over."""

import json
import os
import queue
import re
import signal
import subprocess
import threading
import uuid

from program import PROGRAM, environment
from waiting import WATCHDOG, is_running, wait_until  # noqa: F401

LISTEN = {"tcp": "tcp://127.0.0.1:0", "wherry": "wherry://*:*"}


class Collector:
    """`wherry collect` with a free port. As a context manager it is killed at the end if it still runs."""

    def __init__(self, into, transport="tcp", *options, command=(), env=None):
        self.into = into
        self.job = f"test-{uuid.uuid4().hex[:12]}"
        self.env = environment(WHERRY_JOB=self.job, **(env or {}))
        self.messages = []
        self._lines = queue.Queue()
        self.process = subprocess.Popen(
            [*command, PROGRAM, "collect", "--listen", LISTEN[transport], "--into", str(into), "--json", *map(str, options)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        line = self._lines.get(timeout=WATCHDOG)
        assert "listening on " in line, line
        self.address = line.split("listening on ")[1]

    def _read(self):
        for line in self.process.stderr:
            text = line.decode(errors="replace").rstrip("\n")
            self.messages.append(text)
            self._lines.put(text)
        self._lines.put("it ended")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdout.close()
        self.process.wait()

    def wait_for_message(self, pattern):
        return wait_until(lambda: next((m for m in self.messages if re.search(pattern, m)), None), pattern)

    def finish(self, tell=None):
        """Waits for its end, after telling it to stop if `tell` is a signal: (exit status, summary)."""
        if tell:
            self.process.send_signal(tell)
        output = self.process.stdout.read()
        status = self.process.wait(timeout=WATCHDOG)
        self._reader.join(timeout=WATCHDOG)
        return status, json.loads(output)

    def stop(self):
        return self.finish(signal.SIGTERM)

    def ship(self, *arguments, command=(), **options):
        """Runs `wherry ship` to its end."""
        return subprocess.run([*command, PROGRAM, "ship", "--to", self.address, *map(str, arguments)], env=self.env,
                              capture_output=True, text=True, timeout=WATCHDOG, **options)

    def start_ship(self, *arguments, **options):
        return subprocess.Popen([PROGRAM, "ship", "--to", self.address, *map(str, arguments)], env=self.env,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def pending_bytes(self):
        """Sizes of the files that the collector holds open without a name."""
        sizes = []
        for entry in os.scandir(f"/proc/{self.process.pid}/fd"):
            try:
                target = os.readlink(entry.path)
                if target.startswith(str(self.into)) and target.endswith(" (deleted)"):
                    sizes.append(os.stat(entry.path).st_size)
            except OSError:
                pass  # closed meanwhile
        return sizes


def address_of(uri):
    host, port = uri.removeprefix("tcp://").rsplit(":", 1)
    return host, int(port)


def listing(root):
    """Everything below `root` with what shall be kept of it: {path: (type, mode, mtime, content)}."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            kind = status.st_mode & 0o170000
            link = os.path.islink(path)
            content = os.readlink(path) if link else None
            if kind == 0o100000:
                with open(path, "rb") as file:
                    content = file.read()
            mode = None if link else status.st_mode & 0o7777
            found[os.path.relpath(path, root)] = (kind, mode, status.st_mtime_ns, content)
    return found


def make_tree(root):
    """A small tree with one of everything that can be shipped, and times long past."""
    (root / "empty").mkdir(parents=True)
    (root / "deep/er/and/deeper").mkdir(parents=True)
    (root / "nothing").write_bytes(b"")
    (root / "deep/letter").write_bytes(b"x")
    (root / "deep/er/big").write_bytes(os.urandom(3_000_001))
    (root / "deep/er/and/deeper/text").write_text("a line\n")
    (root / "a name with spaces, \u00fcml\u00e4uts and\na newline").write_text("odd")
    os.symlink("deep/letter", root / "link")
    os.symlink("/nowhere/at all", root / "dangling")
    os.symlink("deep", root / "link to directory")
    for path, mode in [("nothing", 0o600), ("deep/letter", 0o444), ("deep/er/big", 0o755), ("empty", 0o1777), ("deep/er", 0o555)]:
        os.chmod(root / path, mode)
    for folder, folders, files in os.walk(root, topdown=False):
        for index, name in enumerate(sorted(folders + files)):
            stamp = 1_000_000_000_123_456_789 + index * 1_000_000_007
            os.utime(os.path.join(folder, name), ns=(stamp, stamp), follow_symlinks=False)
    os.utime(root, ns=(946684800_000000001,) * 2)
