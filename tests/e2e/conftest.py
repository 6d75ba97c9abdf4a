# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "common"))
from ports import port  # noqa: E402, F401
from two_hosts import badly_cabled, hosts, routed, three_hosts  # noqa: E402, F401


@pytest.fixture(params=["tcp", "wherry"])
def transport(request):
    """Both transports of ship, collect and pipe: they keep the same promises."""
    return request.param


@pytest.fixture
def open_folder():
    """A folder that everybody may enter; pytest's own are for their owner only."""
    folder = tempfile.mkdtemp(prefix="wherry-test-")
    os.chmod(folder, 0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def others_folder(open_folder):
    """A destination that another user owns."""
    into = os.path.join(open_folder, "into")
    os.mkdir(into)
    os.chown(into, 65534, 65534)
    yield into


@pytest.fixture(params=["disk", "tmpfs"])
def folder(request, tmp_path):
    """For the files of a program by wherry run --files, on either kind of file system."""
    if request.param == "disk":
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(prefix="wherry-test-", dir="/dev/shm"))
    yield made
    shutil.rmtree(made)
