# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "common"))
from ports import port  # noqa: E402, F401
from two_hosts import hosts  # noqa: E402, F401
