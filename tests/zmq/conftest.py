# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest
from processes import LIBRARY, Processes

sys.path.insert(0, str(Path(__file__).parents[1] / "common"))
from ports import port  # noqa: E402, F401
from two_hosts import hosts  # noqa: E402, F401


def pytest_configure():
    if not LIBRARY.exists():
        pytest.exit("skipped: scripts/build-zmq --tests has not been run", returncode=77)


@pytest.fixture
def processes(tmp_path):
    running = Processes(tmp_path)
    yield running
    running.end()
