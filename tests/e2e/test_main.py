# SPDX-License-Identifier: Apache-2.0
"""The program as a whole: what it says of itself, and what it says of a command line that it does not know."""

import re
from pathlib import Path

import pytest
from program import wherry

HEADER = Path(__file__).resolve().parents[2] / "include" / "wherry" / "wherry.h"


def test_the_version_is_that_of_the_header():
    [version] = re.findall(r'#define WHERRY_VERSION "(.*)"', HEADER.read_text())
    result = wherry("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"wherry {version}\n", "")


@pytest.mark.parametrize("word", ["shipp", "", "--", "./top"])
def test_an_unknown_subcommand_is_named(word):
    result = wherry(word, "--into", "somewhere")
    assert result.returncode == 2 and result.stdout == ""
    assert f'"{word}"' in result.stderr and "wherry --help" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_unknown_subcommand_does_not_write_to_the_terminal_what_it_likes():
    assert "\x1b" not in wherry("\x1b[31mred").stderr


NAME = "\x1b[31mred\nwherry: all is well"


@pytest.mark.parametrize("arguments", [
    ["ship", f"--{NAME}"], ["ship", "--to", NAME, "x"], ["ship", "--wait", NAME, "x"], ["ship", "-T", NAME], ["ship", "-C", NAME, "x"],
    ["ship", "--to", f"tcp://{NAME}:1", "x"], ["collect", "--listen", NAME, "--into", "/nowhere/x"], ["collect", "--into", f"/nowhere/{NAME}"],
    ["run", "--", NAME], ["run", "--fabric", NAME, "--", "true"], ["run", "--", "true", f"wherry://0:1/{NAME}?pmerge"],
    ["pipe", NAME], ["bench", NAME], ["top", NAME],
], ids=lambda arguments: "-".join(arguments).replace(NAME, "NAME").replace("/", "_"))
def test_no_name_is_written_to_the_terminal_as_it_is(arguments):
    result = wherry(*arguments)
    assert result.returncode != 0 and result.stderr != ""
    assert "\x1b" not in result.stderr and "\nwherry: all is well" not in result.stderr


def test_no_subcommand_is_a_usage_error_that_says_where_help_is():
    result = wherry()
    assert result.returncode == 2 and "--help" in result.stderr
