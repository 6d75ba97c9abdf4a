# SPDX-License-Identifier: Apache-2.0
"""Two hosts on this machine: network namespaces that a cable joins. Needs no root where users may make namespaces."""

import shutil
import subprocess
from pathlib import Path

from ending import Problem, printable, uninterrupted

NEAR, FAR = "10.98.0.1", "10.98.0.2"  # in namespaces: nothing outside has these addresses
HOLD = ["sh", "-c", "echo ready; exec cat"]  # until its standard input ends, which it does with this process


class TwoHosts:
    """Node 0, where the collector runs, at NEAR, and node 1 at FAR. Each is a namespace that a process holds."""

    def __init__(self, program: Path, folder: Path):
        self._program, self._hosts, self._key = program, folder / "hosts", folder / "key"
        self._holders: list[subprocess.Popen] = []

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_) -> None:
        self._end()

    def _make(self) -> None:
        for needed, package in (("ip", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux")):
            if shutil.which(needed) is None:
                raise Problem(f"no program '{needed}' to make two hosts; it is in the package {package}")
        self.near = self._hold(["unshare", "-Urn"])
        self.far = self._hold([*self.inside(self.near), "unshare", "-n"])
        self._lay_cable()
        self._hosts.write_text(f"{NEAR}\n{FAR}\n")
        self._run([self._program, "key", self._key])

    @staticmethod
    def inside(holder: subprocess.Popen) -> list:
        return ["nsenter", f"--user=/proc/{holder.pid}/ns/user", f"--net=/proc/{holder.pid}/ns/net", "--preserve-credentials", "--"]

    def environment(self, node: int) -> dict[str, str]:
        """What programs on that host need to reach the other over the network: one kernel has both."""
        return {"WHERRY_HOSTS": str(self._hosts), "WHERRY_KEY": str(self._key), "WHERRY_NODE": str(node), "WHERRY_MACHINE": f"demo-{node}"}

    def _end(self) -> None:
        with uninterrupted():
            for holder in reversed(self._holders):
                holder.kill()
                holder.communicate()

    def _hold(self, prefix: list) -> subprocess.Popen:
        with uninterrupted():
            holder = subprocess.Popen([*prefix, *HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      start_new_session=True)
            self._holders.append(holder)
        if holder.stdout.readline() != b"ready\n":
            self._fail(holder.stderr.read())
        self._run([*self.inside(holder), "ip", "link", "set", "lo", "up"])
        return holder

    def _lay_cable(self) -> None:
        ip = [*self.inside(self.near), "ip"]
        self._run([*ip, "link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", str(self.far.pid)])
        for holder, name, address in ((self.near, "near0", NEAR), (self.far, "far0", FAR)):
            ip = [*self.inside(holder), "ip"]
            self._run([*ip, "addr", "add", f"{address}/24", "dev", name])
            self._run([*ip, "link", "set", name, "up"])

    def _run(self, command: list) -> None:
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode != 0:
            self._fail(done.stderr)

    def _fail(self, errors: bytes) -> None:
        said = printable(errors.decode(errors="replace").strip())
        raise Problem(f"cannot make two hosts of this machine: {said}; run it as root, or let users make network namespaces")
