# SPDX-License-Identifier: Apache-2.0
"""A port of the loopback interface that is forwarded to another, as ssh and containers do. `altered`, {position: byte},
is what the one behind it says differently at the beginning of each connection."""

import socket
import threading


class Forwarder:
    def __init__(self, to_port, altered={}):
        self.to_port = to_port
        self.altered = altered
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = []
        self.threads = [threading.Thread(target=self.accept)]

    def __enter__(self):
        self.threads[0].start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.threads[0].join()
        for each in self.sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # its peer has closed it
        for thread in self.threads[1:]:
            thread.join()
        for each in [self.listener, *self.sockets]:
            each.close()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.to_port))
            self.sockets += [near, far]
            for source, target, altered in [(near, far, {}), (far, near, self.altered)]:
                self.threads.append(threading.Thread(target=self.copy, args=(source, target, altered)))
                self.threads[-1].start()

    @staticmethod
    def copy(source, target, altered):
        passed = 0
        try:
            while data := bytearray(source.recv(65536)):
                for position, byte in altered.items():
                    if passed <= position < passed + len(data):
                        data[position - passed] = byte
                passed += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # either end is gone
