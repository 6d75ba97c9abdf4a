# SPDX-License-Identifier: Apache-2.0
"""wherry.Windows: memory that the peer reads, writes and maps."""

import errno
import gc
import mmap

import pytest
import wherry


@pytest.fixture
def sides():
    """The windows of both ends of a stream, a registered page of the first and its offset."""
    with wherry.listen("wherry://*:*", windows=True) as listener:
        attempt = wherry.start_connect(listener.local, windows=True)
        with listener.accept(timeout=60) as one, attempt.finish(60) as other:
            page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE)
            windows = wherry.Windows(one)
            yield page, windows.add(page), wherry.Windows(other), one, other


def test_the_peer_writes_and_reads(sides):
    page, offset, peer, _, _ = sides
    peer.write_to(b"written by the peer", offset)
    assert page[:19] == b"written by the peer"
    page[:5] = b"READ "
    place = bytearray(7)
    peer.read_from(place, offset)
    assert place == b"READ en"
    peer.fence()
    peer.signal(offset + 64, 42)
    assert int.from_bytes(page[64:72], "little") == 42


def test_a_mapping_outlives_the_stream(sides):
    page, offset, peer, one, other = sides
    assert peer.can_map
    view = peer.map(offset, mmap.PAGESIZE)
    view[:3] = b"abc"
    assert page[:3] == b"abc"
    one.close()
    other.close()
    gc.collect()
    assert view[:3] == b"abc"
    with pytest.raises(wherry.Error) as caught:
        peer.write_to(b"x", offset)
    assert caught.value.errno == errno.EBADF


def test_wrong_windows(sides, pair):
    page, offset, peer, one, _ = sides
    with pytest.raises(wherry.Error) as caught:
        peer.write_to(b"x", offset + mmap.PAGESIZE)
    assert caught.value.errno == errno.ENXIO
    with pytest.raises(wherry.Error) as caught:
        wherry.Windows(one).add(bytearray(100))
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(ValueError, match="'read_write'"):
        peer.map(offset, mmap.PAGESIZE, "all")
    view = peer.map(offset, mmap.PAGESIZE, "read")
    assert view.readonly
    wherry.Windows(one).remove(offset, mmap.PAGESIZE)
    with pytest.raises(wherry.Error) as caught:
        wherry.Windows(pair[0])
    assert caught.value.errno == errno.ENOTSUP
