# SPDX-License-Identifier: Apache-2.0
"""wherry mount: very many files. WHERRY_MOUNT_FILES says how many; `make soak` takes 10^5."""

import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from program import environment
from serving import NO_PASSTHROUGH, Mount, Server, enter_mount_namespace
from waiting import wait_until

FILES = int(os.environ.get("WHERRY_MOUNT_FILES", 10_000))
IN_ONE = FILES // 10
# A sanitizer keeps freed memory, and notes beside each piece.
HAS_SANITIZER = any(name in os.environ for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"))
PER_FILE = 1024  # bytes
LEAST_SEEN = 100_000  # fewer take less than what the daemon frees only in large pieces


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


def name_of(i):
    return f"{i // IN_ONE}/file {i} of the experiment"


def listed(directory, *command):
    """All lines, without the directory's name."""
    done = subprocess.run([*command, "."], cwd=directory, env=environment(LC_ALL="C"), capture_output=True, text=True, check=True)
    return sorted(done.stdout.splitlines())


def use(folder, names):
    """Writes to files, and removes them."""
    for name in names:
        with open(folder / name, "ab") as file:
            file.write(name.encode())
        assert (folder / name).read_bytes() == name.encode()
        os.unlink(folder / name)


def memory_of(process):
    """Bytes: its share of all memory, hence that of its log, too."""
    return 1024 * int(re.search(r"^Pss: +(\d+)", Path(f"/proc/{process}/smaps_rollup").read_text(), re.MULTILINE)[1])


def test_very_many_files_are_listed_as_on_the_host_and_take_little_memory(tmp_path):
    root = tmp_path / "root"
    for i in range(10):
        (root / str(i)).mkdir(parents=True)
    for i in range(FILES):
        os.close(os.open(root / name_of(i), os.O_WRONLY | os.O_CREAT, 0o600 + i % 8))
    chosen = random.Random(1).sample(range(FILES), 500)
    with Server(root, NO_PASSTHROUGH, "--no-lend") as server:
        card = Mount(server, tmp_path / "mount")
        with card as here:
            use(here, [f"new {i}" for i in range(500)])  # connections and threads get the memory that they keep
            before = memory_of(card.daemon())
            assert listed(here, "ls", "-lRi") == listed(root, "ls", "-lRi")
            grown = memory_of(card.daemon()) - before
            use(here, [name_of(i) for i in chosen])
            names = listed(here, "find")
            assert names == listed(root, "find") and len(names) == FILES - 500 + 11
            assert HAS_SANITIZER or grown < PER_FILE * FILES, grown / FILES
            subprocess.run(["rm", "-r", *(here / str(i) for i in range(10))], check=True)
            assert os.listdir(here) == os.listdir(root) == []
            if FILES >= LEAST_SEEN and not HAS_SANITIZER:
                wait_until(lambda: memory_of(card.daemon()) - before < grown / 2, "less memory")
