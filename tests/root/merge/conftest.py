# SPDX-License-Identifier: Apache-2.0
"""Loads libWherryROOTMerge (WHERRY_ROOT_MERGE names it) into PyROOT."""

import os
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore", message=".*alpha stage.*")
# Also for processes of tests that import this file.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "common")]

import processes  # noqa: E402
import pytest  # noqa: E402
import ROOT  # noqa: E402

ROOT.gROOT.SetBatch(True)
if "WHERRY_ROOT_MERGE" in os.environ:
    assert ROOT.gSystem.Load(os.environ["WHERRY_ROOT_MERGE"]) >= 0


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    yield
    processes.clean_up()


@pytest.fixture
def stopping(tmp_path_factory):
    return processes.preloading(processes.STOPPER, tmp_path_factory.mktemp("stopping"))
