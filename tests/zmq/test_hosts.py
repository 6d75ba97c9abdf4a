# SPDX-License-Identifier: Apache-2.0
"""Messages over wherry:// between two hosts of WHERRY_HOSTS, and beside them within one."""

import subprocess

from processes import BUILD, all_succeed
from two_hosts import PIPE


def traffic(hosts, host, role, endpoint, **options):
    return hosts.spawn(host, BUILD / "bin/traffic", role, endpoint, *(f"{name}={value}" for name, value in options.items()),
                     stdout=PIPE, stderr=subprocess.STDOUT, text=True)


def test_messages_of_every_size_cross(hosts):
    for size, count in ((16, 20000), (4096, 5000), (1 << 20, 50)):
        all_succeed([traffic(hosts, hosts.near, "pull", "wherry://*:2000", bind=1, count=count, size=size),
                     traffic(hosts, hosts.far, "push", "wherry://0:2000", count=count, size=size)], timeout=None)


def test_the_same_endpoint_serves_this_host_over_shared_memory(hosts):
    all_succeed([traffic(hosts, hosts.near, "pull", "wherry://*:2000", bind=1, count=20000, size=4096),
                 traffic(hosts, hosts.near, "push", "wherry://0:2000", count=20000, size=4096)], timeout=None)
