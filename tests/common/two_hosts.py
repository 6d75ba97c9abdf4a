# SPDX-License-Identifier: Apache-2.0
"""A fixture: two hosts, which are two network namespaces that a cable joins, and processes on each."""

import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest
from waiting import WATCHDOG

PIPE = subprocess.PIPE
PROGRAM = os.environ.get("WHERRY_PROGRAM", "wherry")
MODULE = Path(PROGRAM).resolve().parent.parent / "lib/wherry/ofi/libwherry-ofi.so"
NEAR, FAR = "10.98.0.1", "10.98.0.2"


class Hosts:
    """Node 0 at NEAR and node 1 at FAR, each a namespace that a sleeping process holds. Processes find their node in the file
    of hosts, and take the other host for another machine (WHERRY_MACHINE)."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        self.near = self.hold(["unshare", "-Urnm"])
        self.far = self.hold([*self.inside(self.near), "unshare", "-n"])
        self.ip(self.near, f"link add near0 type veth peer name far0 netns {self.far.pid}")
        for host, name, address in ((self.near, "near0", NEAR), (self.far, "far0", FAR)):
            for command in (f"addr add {address}/24 dev {name}", f"link set {name} up", "link set lo up"):
                self.ip(host, command)
        self.hosts = folder / "hosts"
        self.hosts.write_text(f"{NEAR} slots=4\n{FAR} slots=4\n")
        self.job = f"test-{uuid.uuid4().hex[:12]}"
        self.make_key("key")

    def make_key(self, name):
        subprocess.run([PROGRAM, "key", self.folder / name], check=True, capture_output=True, timeout=WATCHDOG)

    @staticmethod
    def inside(holder):
        return ["nsenter", f"--user=/proc/{holder.pid}/ns/user", f"--net=/proc/{holder.pid}/ns/net",
                f"--mount=/proc/{holder.pid}/ns/mnt", "--preserve-credentials", "--"]

    def hold(self, prefix):
        holder = subprocess.Popen([*prefix, "sh", "-c", "echo in; exec sleep 1000"], stdout=PIPE, stderr=subprocess.DEVNULL,
                                  text=True)
        self.started.append(holder)
        if holder.stdout.readline() != "in\n":
            pytest.skip("network namespaces are not permitted here")
        return holder

    def ip(self, host, command):
        if subprocess.run([*self.inside(host), "ip", *command.split()], capture_output=True, timeout=WATCHDOG).returncode != 0:
            pytest.skip(f"no cable can be laid between network namespaces here: ip {command}")

    def environment(self, host, **changes):
        """A change to None unsets."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WHERRY_")}
        ours = {"WHERRY_MACHINE": "near" if host is self.near else "far", "WHERRY_JOB": self.job,
                "WHERRY_KEY": str(self.folder / "key"), "WHERRY_HOSTS": str(self.hosts), **changes}
        return {**clean, **{name: value for name, value in ours.items() if value is not None}}

    def run(self, host, *command, env=None, **options):
        """Starts any command on that host; its standard error is a pipe unless the options say otherwise."""
        process = subprocess.Popen([*self.inside(host), *map(str, command)], env=self.environment(host, **(env or {})),
                                   **{"stderr": PIPE, **options})
        self.started.append(process)
        return process

    def start(self, host, *arguments, **options):
        """The same of the program under test."""
        return self.run(host, PROGRAM, *arguments, **options)

    def end(self):
        for process in reversed(self.started):
            process.kill()
            process.wait(timeout=WATCHDOG)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()


@pytest.fixture
def hosts(tmp_path):
    if not MODULE.exists() or shutil.which("ip") is None or shutil.which("nsenter") is None:
        pytest.skip("no libwherry-ofi.so, ip or nsenter")
    made = Hosts.__new__(Hosts)
    try:
        made.__init__(tmp_path)
        yield made
    finally:
        made.end()


def result(process):
    """Waits for the end: exit status, and what was said on standard error."""
    errors = process.stderr.read()
    return process.wait(timeout=WATCHDOG), errors if isinstance(errors, str) else errors.decode()
