# SPDX-License-Identifier: Apache-2.0
import os

import pytest
import zmq

# Ports of this run's own; read when the first of them is bound.
os.environ["WHERRY_JOB"] = f"sockets-{os.getpid()}"


def pytest_configure():
    if not zmq.has("wherry"):
        pytest.exit("skipped: scripts/build-zmq --tests has not been run", returncode=77)
