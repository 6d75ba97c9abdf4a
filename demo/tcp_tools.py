# SPDX-License-Identifier: Apache-2.0
"""A program at an end of a TCP connection, as netcat would have it.

tcp_tools.py serve HOST PORT COUNT COMMAND...: COMMAND for each of COUNT connections, which it reads; fails if one fails
tcp_tools.py connect HOST PORT COMMAND...: COMMAND writes to a connection
tcp_tools.py await HOST PORT COMMAND...: COMMAND, once somebody listens there
"""

import os
import socket
import subprocess
import sys
import time


def main():
    mode, host, port, *rest = sys.argv[1:]
    if mode == "serve":
        sys.exit(serve(host, int(port), int(rest[0]), rest[1:]))
    connection = connect(host, int(port))
    if mode == "connect":
        os.dup2(connection.fileno(), 1)
    connection.close()
    os.execvp(rest[0], rest)


def serve(host, port, count, command):
    running = []
    with socket.create_server((host, port), backlog=count) as listening:
        for _ in range(count):
            connection, _ = listening.accept()
            running.append(subprocess.Popen(command, stdin=connection))
            connection.close()
    return any([process.wait() != 0 for process in running])  # a list: all are waited for


def connect(host, port):
    """Tries for half a minute."""
    end = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection((host, port))
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


if __name__ == "__main__":
    main()
