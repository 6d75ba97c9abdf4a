# SPDX-License-Identifier: Apache-2.0
"""wherry key: makes a private key, never overwrites one, and says how to use it."""

import stat

from program import wherry


def test_a_key_is_private_and_said_how_to_use(tmp_path):
    file = tmp_path / "key"
    result = wherry("key", str(file))
    assert result.returncode == 0, result.stderr
    assert f"export WHERRY_KEY={file}" in result.stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith("wherry-key-1:")
    assert file.read_text().split(":")[1].strip() not in result.stdout


def test_each_key_is_another(tmp_path):
    for name in "ab":
        assert wherry("key", str(tmp_path / name)).returncode == 0
    assert (tmp_path / "a").read_text() != (tmp_path / "b").read_text()


def test_a_key_is_not_overwritten(tmp_path):
    file = tmp_path / "key"
    file.write_text("mine")
    result = wherry("key", str(file))
    assert result.returncode == 1
    assert "a key is never overwritten" in result.stderr
    assert file.read_text() == "mine"


def test_a_wrong_command_line():
    assert wherry("key").returncode == 2
