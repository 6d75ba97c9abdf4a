# SPDX-License-Identifier: Apache-2.0
"""Hosts for tests of the network: network namespaces that cables join, made without root (docs/network.md)."""

import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from waiting import WATCHDOG, wait_until

COMMON = Path(__file__).resolve().parent
PIPE = subprocess.PIPE
PROGRAM = os.environ.get("WHERRY_PROGRAM", "wherry")
MODULE = Path(PROGRAM).resolve().parent.parent / "lib/wherry/ofi/libwherry-ofi.so"
NEAR, FAR = "10.98.0.1", "10.98.0.2"
NEAR6, FAR6 = "fd98::1", "fd98::2"
PIECE = os.urandom(60_000)  # more than any packet, less than a pipe holds


class Hosts:
    """Node 0 at NEAR and node 1 at FAR, each a namespace that a sleeping process holds. Processes find their node in the file
    of hosts, and take the other host for another machine (WHERRY_MACHINE)."""

    def __init__(self, folder):
        self.folder, self.started, self.hosts = folder, [], folder / "hosts"
        self.job = f"test-{uuid.uuid4().hex[:12]}"
        self.near = self.hold(["unshare", "-Urnm"])
        self.far = self.another_host()
        self.lay_cable(self.near, "near0", NEAR, self.far, "far0", FAR)
        self.name_hosts(NEAR, FAR)
        self.make_key("key")

    def make_key(self, name):
        subprocess.run([PROGRAM, "key", self.folder / name], check=True, capture_output=True, timeout=WATCHDOG)

    def name_hosts(self, near, far):
        self.hosts.write_text(f"{near} slots=4\n{far} slots=4\n")

    def set_names(self, host, lines):
        """What names mean on that host: its /etc/hosts."""
        file = self.folder / f"names-{host.pid}"
        file.write_text(lines)
        self.run(host, "mount", "--bind", file, "/etc/hosts")

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
        self.ip(holder, "link set lo up")
        # No address of IPv6 is tentative for a second: nobody else has it.
        self.run(holder, "sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad")
        return holder

    def another_host(self):
        return self.hold([*self.inside(self.near), "unshare", "-nm"])

    def lay_cable(self, one, one_name, one_address, other, other_name, other_address, bits=24):
        self.ip(one, f"link add {one_name} type veth peer name {other_name} netns {other.pid}")
        for host, name, address in ((one, one_name, one_address), (other, other_name, other_address)):
            self.ip(host, f"addr add {address}/{bits} dev {name}")
            self.ip(host, f"link set {name} up")

    def run(self, host, *command, reason="the kernel does not permit it"):
        """A command of that host's; the test is skipped if it fails."""
        done = subprocess.run([*self.inside(host), *map(str, command)], capture_output=True, text=True, timeout=WATCHDOG)
        if done.returncode != 0:
            pytest.skip(f"{reason}: {' '.join(map(str, command))}: {done.stderr}")
        return done.stdout

    def ip(self, host, command):
        self.run(host, "ip", *command.split(), reason="no cable can be laid between network namespaces here")

    def filter(self, host, hook, *rules):
        """Rules for the packets of that host: nft's, each with the chain `hook`."""
        if shutil.which("nft") is None:
            pytest.skip("no nft")
        kind = "nat" if hook == "postrouting" else "filter"
        lines = ["add table inet test", f"add chain inet test {hook} {{ type {kind} hook {hook} priority 0; }}"]
        lines += [f"add rule inet test {hook} {rule}" for rule in rules]
        self.run(host, "nft", "; ".join(lines))

    def established(self, host):
        """The TCP connections of that host: pairs of the own and the peer's address, without ports."""
        lines = self.run(host, "ss", "-tnH", "state", "established").splitlines()
        pairs = (re.findall(r"(\S+?)(?:%\S+)?:\d+(?=\s|$)", line) for line in lines)
        return {tuple(address.strip("[]").removeprefix("::ffff:") for address in pair) for pair in pairs}

    def wait_for_ports(self, host, count):
        """The ports that the processes of that host listen on, once there are so many."""
        tables = [Path(f"/proc/{host.pid}/net/{name}") for name in ("tcp", "tcp6")]

        def listened():
            lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()]
            found = {int(fields[1].split(":")[1], 16) for fields in lines if fields[3] == "0A"}
            return found if len(found) >= count else None
        return wait_until(listened, f"{count} ports")

    def environment(self, host, **changes):
        """A change to None unsets."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WHERRY_")}
        ours = {"WHERRY_MACHINE": f"host-{host.pid}", "WHERRY_JOB": self.job,
                "WHERRY_KEY": str(self.folder / "key"), "WHERRY_HOSTS": str(self.hosts), **changes}
        return {**clean, **{name: value for name, value in ours.items() if value is not None}}

    def spawn(self, host, *command, env=None, **options):
        """Starts any command on that host; its standard error is a pipe unless the options say otherwise."""
        process = subprocess.Popen([*self.inside(host), *map(str, command)], env=self.environment(host, **(env or {})),
                                   **{"stderr": PIPE, **options})
        self.started.append(process)
        return process

    def start(self, host, *arguments, key=None, prefix=(), env=None, **options):
        """The same of the program under test, behind the words of `prefix`, with the key of that name."""
        settings = {**({"WHERRY_KEY": str(self.folder / key)} if key else {}), **(env or {})}
        return self.spawn(host, *prefix, PROGRAM, *arguments, env=settings, **options)

    def listen(self, host, *, env=None, **options):
        return self.start(host, "pipe", "--listen", "wherry+ofi://*:5000", env={**self.node_of(host), **(env or {})},
                          **{"stdout": PIPE, **options})

    def connect(self, host, *arguments, env=None, **options):
        """To a listener on the other host."""
        other = 1 if host is self.near else 0
        return self.start(host, "pipe", *arguments, f"wherry+ofi://{other}:5000", env={**self.node_of(host), **(env or {})},
                          **{"stdin": PIPE, **options})

    def node_of(self, host):
        """For tests of names: not each of them is one that a host finds itself by."""
        return {"WHERRY_NODE": "0" if host is self.near else "1"}

    def carry(self, to, by, look=lambda: None, **options):
        """Carries bytes from host `by` to a listener of host `to`, and returns what `look` saw while both were connected."""
        file = self.folder / "received"
        with open(file, "wb") as output:
            listener = self.listen(to, stdout=output, **options)
        connector = self.connect(by, "--wait", WATCHDOG, **options)
        connector.stdin.write(PIECE)
        connector.stdin.flush()
        wait_until(lambda: connector.poll() is not None or listener.poll() is not None or file.stat().st_size == len(PIECE),
                   "the first piece")
        assert connector.poll() is None, connector.stderr.read().decode()
        assert listener.poll() is None, listener.stderr.read().decode()
        seen = look()
        connector.stdin.write(PIECE)
        connector.stdin.close()
        assert result(connector) == (0, "") and result(listener) == (0, "")
        assert file.read_bytes() == 2 * PIECE
        return seen

    def refusal(self, host, *arguments, **options):
        """What a connector of that host says when it fails."""
        code, errors = result(self.connect(host, *arguments, **options))
        assert code == 1, errors
        return errors

    def end(self):
        for process in reversed(self.started):
            process.kill()
            process.wait(timeout=WATCHDOG)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()


class RoutedHosts(Hosts):
    """Between the two a router, at ROUTER on the near side. The far host's way to the near one leads through it."""

    ROUTER, ROUTER_FAR, BEHIND = "10.98.0.254", "10.99.0.254", "10.99.0.2"

    def lay_cable(self, *_):
        self.router = self.another_host()
        super().lay_cable(self.near, "near0", NEAR, self.router, "router0", self.ROUTER)
        super().lay_cable(self.router, "router1", self.ROUTER_FAR, self.far, "far0", self.BEHIND)
        self.ip(self.far, f"route add default via {self.ROUTER_FAR}")
        self.run(self.router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def name_hosts(self, near, far):
        super().name_hosts(near, self.BEHIND if far == FAR else far)


class BadlyCabledHosts(Hosts):
    """The cable is a program on a host between the two (bad_cable.py), which a test starts by disturb()."""

    def lay_cable(self, *_):
        self.middle = self.another_host()
        for end, name, address, here in ((self.near, "near0", NEAR, "middle0"), (self.far, "far0", FAR, "middle1")):
            self.ip(end, f"link add {name} type veth peer name {here} netns {self.middle.pid}")
            self.ip(end, f"addr add {address}/24 dev {name}")
            self.ip(end, f"link set {name} up")
            self.ip(self.middle, f"link set {here} up")
            # A program that hands frames on sees them as they leave the stack: whole, if the interface is to cut them.
            self.run(end, sys.executable, COMMON / "offloads_off.py", name)

    def disturb(self, *options):
        cable = self.spawn(self.middle, sys.executable, COMMON / "bad_cable.py", "middle0", "middle1", *options, stdout=PIPE)
        assert cable.stdout.readline() == b"ready\n"


class ThreeHosts(RoutedHosts):
    """A third host, node 2, at THIRD behind the router."""

    ROUTER_THIRD, THIRD = "10.97.0.254", "10.97.0.2"

    def lay_cable(self, *_):
        super().lay_cable()
        self.third = self.another_host()
        Hosts.lay_cable(self, self.router, "router2", self.ROUTER_THIRD, self.third, "third0", self.THIRD)
        self.ip(self.third, f"route add default via {self.ROUTER_THIRD}")
        self.ip(self.near, f"route add default via {self.ROUTER}")

    def name_hosts(self, near, far):
        super().name_hosts(near, far)
        with open(self.hosts, "a") as file:
            file.write(f"{self.THIRD} slots=4\n")


def made(kind, folder):
    """For a fixture: hosts, which are ended behind the test even if they were not made whole."""
    if not MODULE.exists() or shutil.which("ip") is None or shutil.which("nsenter") is None:
        pytest.skip("no libwherry-ofi.so, ip or nsenter")
    hosts = kind.__new__(kind)
    try:
        hosts.__init__(folder)
        yield hosts
    finally:
        hosts.end()


@pytest.fixture
def hosts(tmp_path):
    yield from made(Hosts, tmp_path)


@pytest.fixture
def routed(tmp_path):
    yield from made(RoutedHosts, tmp_path)


@pytest.fixture
def badly_cabled(tmp_path):
    yield from made(BadlyCabledHosts, tmp_path)


@pytest.fixture
def three_hosts(tmp_path):
    yield from made(ThreeHosts, tmp_path)


def result(process):
    """Waits for the end: exit status, and what was said on standard error."""
    errors = process.stderr.read()
    return process.wait(timeout=WATCHDOG), errors if isinstance(errors, str) else errors.decode()
