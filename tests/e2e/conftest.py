# SPDX-License-Identifier: Apache-2.0
import pytest


@pytest.fixture(params=["tcp", "wherry"])
def transport(request):
    """Both transports of ship, collect and pipe: they keep the same promises."""
    return request.param
