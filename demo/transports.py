# SPDX-License-Identifier: Apache-2.0
"""Ways to hand files over: the commands of a collector, and of a shipper that hands over what a share names."""

import contextlib
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ending import Problem
from hosts import NEAR, TwoHosts


@dataclass
class Transport:
    name: str  # in the results
    program: Path
    durable: bool  # the collector waits for the disk, if the transport can
    hosts: TwoHosts | None = None

    ENDS_BY_ITSELF: ClassVar[bool] = True  # the collector, once all shippers have

    def address(self) -> contextlib.AbstractContextManager[str]:
        """For one round."""
        raise NotImplementedError

    def collector(self, address: str, into: Path, base: Path, count: int) -> list:
        raise NotImplementedError

    def shipper(self, address: str, base: Path, share: Path, name: str) -> list:
        raise NotImplementedError

    def on(self, node: int, command: list) -> list:
        """The command, on the host of that node."""
        if self.hosts is None:
            return command
        return [*self.hosts.inside(self.hosts.far if node else self.hosts.near), *command]

    def environment(self, node: int) -> dict[str, str]:
        """Of a process on that node."""
        place = self.hosts.environment(node) if self.hosts else {"WHERRY_NODE": str(node)}
        return os.environ | {"WHERRY_JOB": f"demo-{os.getpid()}"} | place


class Wherry(Transport):
    """`wherry ship` and `wherry collect`."""

    def address(self):
        return contextlib.nullcontext("wherry://0:2000")

    def collector(self, address, into, base, count):
        return [self.program, "collect", "--listen", address, "--into", into, "--quiet", "--expect", str(count),
                *([] if self.durable else ["--no-sync"])]

    def shipper(self, address, base, share, name):
        return [self.program, "ship", "--to", address, "--wait", "30", "--quiet", "--name", name, "-C", base, "--no-recursion", "-0",
                "--files-from", share]


class WherryOverTcp(Wherry):
    """The same programs over a TCP socket of this host."""

    @contextlib.contextmanager
    def address(self) -> Iterator[str]:
        # Stays free for the collector, which may bind beside a socket that holds the port and does not listen.
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", 0))
            yield f"tcp://127.0.0.1:{holder.getsockname()[1]}"


class Rsync(Transport):
    """Shippers are rsync's clients, the collector is its daemon. Only on hosts of its own, where every port is free."""

    ENDS_BY_ITSELF = False
    PORT = "8730"

    def address(self):
        return contextlib.nullcontext(f"rsync://{NEAR}:{self.PORT}/into")

    def collector(self, address, into, base, count):
        into.mkdir()
        config = into.with_name("rsyncd.conf")
        config.write_text(f"use chroot = no\nreverse lookup = no\n[into]\npath = {into}\nread only = no\nmunge symlinks = no\n")
        # A daemon of root's changes its groups, which a user namespace forbids. So it is another user's.
        return ["unshare", "--user", "--map-user=1", "--map-group=1", "rsync", "--daemon", "--no-detach", f"--config={config}",
                f"--port={self.PORT}", f"--address={NEAR}"]

    def shipper(self, address, base, share, name):
        return [sys.executable, Path(__file__).with_name("tcp_tools.py"), "await", NEAR, self.PORT, "rsync", "-lptD", "--from0",
                "--whole-file", "--dirs", *(["--fsync"] if self.durable else []), f"--files-from={share}", f"{base}/", f"{address}/"]


class Tar(Transport):
    """`tar -c` into a TCP socket, and a `tar -x` for each at its other end. It does not wait for the disk.

    Of several that make one folder, one may fail: so all folders are made before.
    """

    PORT = "8731"

    def address(self):
        return contextlib.nullcontext(NEAR)

    def collector(self, address, into, base, count):
        for folder, _, _ in os.walk(base):
            os.mkdir(into / os.path.relpath(folder, base))
        return [sys.executable, Path(__file__).with_name("tcp_tools.py"), "serve", address, self.PORT, str(count), "tar", "-x", "-C", into]

    def shipper(self, address, base, share, name):
        return [sys.executable, Path(__file__).with_name("tcp_tools.py"), "connect", address, self.PORT, "tar", "-c", "--null",
                "--no-recursion", "-C", base, "-T", share]


def transports(program: Path, durable: bool, hosts: TwoHosts | None) -> list[Transport]:
    """Wherry first."""
    if hosts is None:
        return [Wherry("wherry", program, durable), WherryOverTcp("tcp", program, durable)]
    if shutil.which("rsync") is None:
        raise Problem("no program 'rsync' to compare with; it is in the package of that name")
    return [Wherry("wherry", program, durable, hosts), Rsync("rsync", program, durable, hosts), Tar("tar", program, durable, hosts)]
