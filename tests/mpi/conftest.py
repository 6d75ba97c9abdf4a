# SPDX-License-Identifier: Apache-2.0
import pytest
from mpis import ALL, need


@pytest.fixture(scope="module", params=ALL, ids=lambda mpi: mpi.name)
def mpi(request):
    """Each MPI in turn; a test is skipped for one that is not here. A file may have a fixture of its own in its place."""
    need(request.param)
    return request.param
