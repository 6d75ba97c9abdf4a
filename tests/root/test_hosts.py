# SPDX-License-Identifier: Apache-2.0
"""Workers with WHERRY_HOSTS: those of the server's host hand their files over, those of another host are refused at set-up."""

import uproot
from root_file import BIN
from two_hosts import PIPE, result

REFUSED = "the fabric cannot map the server's memory; use one that can, such as shm"


def start_worker(hosts, host, entries):
    """A real program of ROOT's, with one thread and one file."""
    worker = [BIN / "root_worker", "wherry://0:5000//events.root", 1, 1, entries]
    return hosts.start(host, "run", "--", *worker, env=hosts.node_of(host), stdout=PIPE, stdin=PIPE)


def test_only_workers_of_the_servers_host_are_served(hosts, tmp_path):
    output = tmp_path / "events.root"
    merge = [BIN / "wherry-merge", "wherry://*:5000", "-o", output, "--workers", "1"]
    server = hosts.spawn(hosts.near, *merge, env=hosts.node_of(hosts.near), stdout=PIPE)
    code, errors = result(start_worker(hosts, hosts.far, 10))
    assert code == 1 and REFUSED in errors
    assert server.poll() is None
    assert result(start_worker(hosts, hosts.near, 20)) == (0, "")
    code, errors = result(server)
    assert code == 0, errors
    with uproot.open(output) as file:
        assert list(file["events"]["entry"].array(library="np")) == list(range(20))
