# SPDX-License-Identifier: Apache-2.0
"""bench/systems/programs/python: each way to send an array answers what `wherry bench` asks, and compares what arrived."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "bench/systems/programs/python"
sys.path.append(str(FOLDER))
from ways import WAYS  # noqa: E402


class Peer:
    def __init__(self, way, folder):
        self.process = subprocess.Popen(
            [sys.executable, FOLDER / "peer.py", way, "1", "", f"peer-{os.getpid()}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=os.environ | {"TMPDIR": str(folder)})

    def hear(self, word):
        first, *rest = self.process.stdout.readline().split()
        assert first == word
        return rest

    def tell(self, line):
        print(line, file=self.process.stdin, flush=True)


@pytest.mark.parametrize("way", WAYS)
def test_samples_of_one_size_and_of_another_are_answered(way, tmp_path):
    if way == "iceoryx2" and find_spec(way) is None:
        pytest.skip("needs `scripts/setup bench`")
    peer = Peer(way, tmp_path)
    assert len(peer.hear("processes")) == 2
    assert peer.hear("version")
    for size, touched in [(4096, 0), (4096, 1), (1 << 20, 1), (8, 1)]:
        peer.tell(f"sample stream {size} 20 5 {touched}")
        peer.hear("ready")
        peer.tell("go")
        assert float(peer.hear("done")[0]) > 0
    peer.tell("end")
    assert peer.process.wait(60) == 0
    for left in Path("/dev/shm").glob(f"peer-{os.getpid()}-*"):  # iceoryx2's list of its nodes; `wherry bench` removes it likewise
        left.unlink()
