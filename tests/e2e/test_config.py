# SPDX-License-Identifier: Apache-2.0
"""wherry config: the table, and what it says about values that are not valid."""

import json

from program import wherry


def rows(**env):
    result = wherry("config", "--json", env=env)
    return result, {row["name"]: row for row in json.loads(result.stdout)}


def test_every_option_is_a_row_with_variable_value_default_unit_and_help():
    result, table = rows()
    assert result.returncode == 0
    names = {"node", "job", "fabric", "ring", "spin", "connect_timeout", "nontemporal", "copy", "split", "statistics", "faults", "log"}
    assert names <= set(table)
    for row in table.values():
        assert row["environment"].startswith("WHERRY_")
        assert row["value"] == row["default"]
        assert row["help"]
        assert row["valid"] and not row["changed"]


def test_the_table_shows_the_same_rows():
    result = wherry("config")
    _, table = rows()
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    for row in table.values():
        assert any(row["environment"] in line and row["help"] in line for line in lines), row["name"]


def test_a_default_that_is_this_machines_says_why():
    _, table = rows()
    assert "L2" in table["ring"]["default_from"] or "memory" in table["ring"]["default_from"]
    assert f"{table['ring']['default']} ({table['ring']['default_from']})" in wherry("config").stdout
    assert "default_from" not in table["spin"]


def test_a_value_that_differs_from_the_default_is_marked():
    result, table = rows(WHERRY_RING="64K")
    assert result.returncode == 0
    assert table["ring"]["value"] == "64K" and table["ring"]["changed"]
    marked = [line for line in wherry("config", env={"WHERRY_RING": "64K"}).stdout.splitlines() if line.startswith("* ")]
    assert len([line for line in marked if "WHERRY_" in line]) == 1
    assert "WHERRY_RING" in marked[0]


def test_a_value_that_is_not_valid_fails_and_says_what_is():
    result, table = rows(WHERRY_RING="3", WHERRY_JOB="a/b")
    assert result.returncode == 1
    assert not table["ring"]["valid"] and "from 4K to 1G" in table["ring"]["error"]
    assert not table["job"]["valid"]
    assert table["node"]["valid"]
    assert "WHERRY_RING=3" in result.stderr and "WHERRY_JOB=a/b" in result.stderr


def test_control_characters_of_the_environment_do_not_reach_the_terminal():
    result = wherry("config", env={"WHERRY_JOB": "\x1b[31mred"})
    assert result.returncode == 1
    assert "\x1b" not in result.stdout + result.stderr


def test_an_unknown_option_is_a_usage_error():
    assert wherry("config", "--bogus").returncode == 2
