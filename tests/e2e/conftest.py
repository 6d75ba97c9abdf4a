# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "common"))
from ports import port  # noqa: E402, F401


@pytest.fixture(params=["tcp", "wherry"])
def transport(request):
    """Both transports of ship, collect and pipe: they keep the same promises."""
    return request.param
