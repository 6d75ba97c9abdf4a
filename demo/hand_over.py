#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many workers on a card hand their files to the host, over Wherry and, with the same program, over TCP.

First a tree is copied, so that it may go on changing. One round of one transport: a collector on node 0, N shippers on
node 1 that each hand over a share of the copy, all at once; then `diff -r` says whether what arrived is what was sent.
Rounds of the two transports alternate. With --hosts 2 the collector and the shippers are on two hosts: network namespaces of this
machine, with a cable between them; then rsync and tar hand the same over, too. The last line is the result, of medians. CPU seconds are those of all the shippers
and the collector, as the kernel accounts them. Over both, a file has reached the disk before it gets its name, unless
--no-sync says otherwise.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # There is nothing to clean up before main(), which handles it.

import result
import room
from ending import Interrupted, Problem, complain, ignore_signals, printable, raise_on_signals
from hosts import TwoHosts
from listing import NO_ROOM, Listing
from rounds import Course
from screen import Screen
from snapshot import Snapshot
from transports import transports

WORTH_SHOWING = 500_000_000  # bytes; a smaller tree gets generated files beside it
GENERATED_FILES_PER_SHIPPER = 10
GENERATED_FILE_BYTES = 2_000_000


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", type=Path, default=Path("/usr/share"), help="what to hand over (default: %(default)s)")
    parser.add_argument("--program", type=Path, required=True, help="the wherry program")
    parser.add_argument("--shippers", type=positive, default=60, help="workers on the card (default: %(default)s)")
    parser.add_argument("--rounds", type=positive, default=5, help="rounds of each transport (default: %(default)s)")
    parser.add_argument("--hosts", type=int, choices=(1, 2), default=1,
                        help="2: the workers are on another host, and what they are compared with is rsync --daemon, and tar through"
                        " a TCP socket (default: %(default)s)")
    parser.add_argument("--work", type=Path,
                        help="where copies go: what is sent and what arrives; a part of the tree is handed over where there is no"
                        " room for two of it (default: memory, /dev/shm, because a disk's moods would hide the difference; the"
                        " temporary folder if little fits into memory)")
    parser.add_argument("--no-sync", action="store_true",
                        help="over both transports, let the collector not wait for the disk; in memory there is nothing to wait for")
    parser.add_argument("--at-least", type=int, default=WORTH_SHOWING, metavar="BYTES",
                        help="generate files beside a tree that is smaller than this (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args()


def read_tree(tree: Path, screen: Screen) -> Listing:
    try:
        root = tree.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        why = getattr(error, "strerror", "its links lead round in a circle")
        raise Problem(f"cannot find {printable(tree)}: {why}; name a folder with files in it") from error
    listing = Listing(root)
    with screen.progress(lambda: f"reading {printable(tree)}: {len(listing.entries)} files and folders"):
        listing.read()
    return listing


def take_snapshot(arguments, listing: Listing, place: room.Place, base: Path, screen: Screen) -> Snapshot:
    snapshot = Snapshot(base, place)
    name = printable(arguments.tree)
    with screen.progress(lambda: f"copying {name}: {snapshot.files} of {listing.files} files, {snapshot.bytes / 1e6:.0f} MB"):
        snapshot.add_tree(listing, "tree")
    taken = snapshot.bytes
    if taken < arguments.at_least:
        with screen.progress(lambda: f"generating files beside {name}: {(snapshot.bytes - taken) / 1e6:.0f} MB"):
            snapshot.add_generated("generated", arguments.shippers * GENERATED_FILES_PER_SHIPPER, GENERATED_FILE_BYTES)
    if snapshot.files == 0:
        why = "nothing fits into " + printable(place.folder) if listing.left_out[NO_ROOM] else "it holds no file that can be read"
        raise Problem(f"{name}: {why}; name another folder")
    if left_out := listing.describe_left_out():
        screen.say(f"left out of {name}: {left_out}")
    if missing := listing.left_out[NO_ROOM]:
        screen.say(f"{place.folder} has room for {place.room / 1e6:.0f} MB twice, sent and arrived: {listing.files - missing} of"
                   f" {listing.files} files; for more of them, name a folder with more room: scripts/demo --work FOLDER {name}")
    if snapshot.bytes > taken:
        screen.say(f"{name} holds {taken / 1e6:.0f} MB; generated files are handed over beside it")
    return snapshot


def demonstrate(arguments, screen: Screen) -> None:
    if arguments.json:
        arguments.json.open("a").close()  # If it cannot be written, say so now.
    program = arguments.program.resolve()
    if shutil.which(program) is None:
        raise Problem(f"{printable(program)} is no program; 'scripts/build release --target wherry_program' makes it")
    listing = read_tree(arguments.tree, screen)
    place = room.choose(arguments.work, listing.needed, len(listing.entries))
    with room.work_folder(place.folder) as work:
        snapshot = take_snapshot(arguments, listing, place, work / "sent", screen)
        where = "card 1" if arguments.hosts == 1 else "another host"
        screen.say(f"{arguments.shippers} workers on {where} hand {snapshot.files} files, {snapshot.bytes / 1e6:.0f} MB, to a collector on"
                   f" the host; a copy of them, in {printable(place.folder)}, is what is sent")
        shares = []
        for index, share in enumerate(snapshot.shares(arguments.shippers)):
            shares.append(work / f"share.{index}")
            shares[-1].write_bytes(b"".join(os.fsencode(path) + b"\0" for path in share))
        if not place.in_memory:
            os.sync()
        durable = not arguments.no_sync
        with TwoHosts(program, work) if arguments.hosts == 2 else contextlib.nullcontext() as hosts:
            ways = transports(program, durable, hosts)
            rounds = Course(ways, snapshot, shares, work, place.in_memory).run(arguments.rounds, screen)
    figures = result.summarize(rounds) | {"shippers": arguments.shippers, "files": snapshot.files, "bytes": snapshot.bytes,
                                          "left_out": dict(listing.left_out), "durable": durable, "in_memory": place.in_memory}
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    screen.say(result.table(figures))
    screen.say(result.last_line(figures))


def main() -> int:
    arguments = parse_arguments()
    try:
        raise_on_signals()
        demonstrate(arguments, Screen())
        return 0
    except Problem as problem:
        complain(str(problem))
        return 1
    except OSError as error:
        complain(f"{printable(error.filename)}: {error.strerror}" if error.filename else str(error))
        return 1
    except Interrupted as interrupted:
        complain("interrupted; everything is cleaned up")
        return 128 + interrupted.number
    finally:
        ignore_signals()


if __name__ == "__main__":
    sys.exit(main())
