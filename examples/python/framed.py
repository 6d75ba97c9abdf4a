# SPDX-License-Identifier: Apache-2.0
# framed.py: prints the messages that come; framed.py MESSAGE...: sends them. Each arrives whole.
import sys

import wherry


def receive() -> None:
    with wherry.listen("wherry://*:2000") as listener, wherry.FramedStream(listener.accept()) as messages:
        for message in messages:  # until the end; receive() shows each in place, without a copy
            print(message.decode())


def send(texts: list[str]) -> None:
    with wherry.FramedStream(wherry.connect("wherry://0:2000")) as messages:
        messages.hold()  # many small messages: one publication, one wake-up
        for text in texts:
            messages.send(text.encode())
        messages.flush()


if sys.argv[1:]:
    send(sys.argv[1:])
else:
    receive()
