# SPDX-License-Identifier: Apache-2.0
import pytest
from processes import LIBRARY, Processes


def pytest_configure():
    if not LIBRARY.exists():
        pytest.exit("skipped: scripts/build-zmq --tests has not been run", returncode=77)


@pytest.fixture
def processes(tmp_path):
    running = Processes(tmp_path)
    yield running
    running.end()
