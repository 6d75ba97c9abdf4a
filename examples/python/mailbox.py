# SPDX-License-Identifier: Apache-2.0
# mailbox.py COUNT: prints COUNT messages of any number of senders and answers each; mailbox.py send TEXT: sends one.
import sys

import wherry


def print_next(mailbox: wherry.Mailbox, awaited: int | None = None) -> int | None:
    """Prints the next message; whose it is, or None: the awaited peer has ended."""
    while (received := mailbox.receive()) is None:
        for peer, _ in mailbox.losses():  # all that it had sent was received before
            if peer == awaited:
                return None
            mailbox.forget(peer)
    peer, message = received
    print(message.decode())
    return peer


with wherry.Mailbox(budget=64 << 10) as mailbox:  # bytes, whatever the number of senders
    if sys.argv[1] == "send":
        receiver = mailbox.connect("wherry://0:2000")
        mailbox.send(receiver, sys.argv[2].encode())
        if print_next(mailbox, receiver) is None:
            sys.exit("the receiver has ended")
    else:
        mailbox.listen("wherry://*:2000")
        for _ in range(int(sys.argv[1])):
            sender = print_next(mailbox)
            assert sender is not None  # no peer is awaited
            mailbox.send(sender, b"received")
