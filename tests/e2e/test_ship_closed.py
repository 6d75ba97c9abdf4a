# SPDX-License-Identifier: Apache-2.0
"""wherry ship and wherry collect by an ordinary user, whom the modes of what is there already deny access."""

import os

import pytest
from collecting import Collector, listing
from other_user import NOBODY, need_other_user
from program import PROGRAM


@pytest.fixture(autouse=True)
def as_other_user():
    need_other_user(PROGRAM)


def ship_as_other_user(into, *shares):
    """Ships each share to one collector of another user's."""
    with Collector(into, "tcp", "--expect", len(shares), command=NOBODY) as collector:
        for share in shares:
            result = collector.ship(*share)
            assert (result.returncode, result.stderr) == (0, "")
        assert collector.finish()[0] == 0


CLOSED_MODES = [0o555, 0o444, 0o666, 0o111, 0o333, 0o055, 0o000]  # each denies its owner something


def make_closed_tree(root, content):
    for mode in CLOSED_MODES:
        folder = root / f"{mode:03o}"
        (folder / "inner").mkdir(parents=True)
        (folder / "read-only").write_text(content)
        (folder / "inner/read-only").write_text(content)
        os.symlink(content, folder / "link")
        for path, its_mode in [("read-only", 0o444), ("inner/read-only", 0o000), ("inner", 0o555), ("", mode)]:
            os.chmod(folder / path, its_mode)
    for folder, folders, files in os.walk(root, topdown=False):
        for name in folders + files:
            os.utime(os.path.join(folder, name), ns=(10**18, 10**18), follow_symlinks=False)
    os.chmod(root, 0o500)


def test_a_tree_that_denies_its_owner_access_can_be_shipped_again_and_replaced(tmp_path, others_folder):
    for content in ("old", "new"):
        make_closed_tree(tmp_path / content / "tree", content)
    for content in ("old", "old", "new"):
        ship_as_other_user(others_folder, [tmp_path / content / "tree"])
        assert listing(others_folder) == listing(tmp_path / content)


def test_a_closed_tree_can_be_shipped_again_in_shares_of_any_order(tmp_path, others_folder):
    make_closed_tree(tmp_path / "tree", "content")
    ship_as_other_user(others_folder, [tmp_path / "tree"])
    paths = [f"tree/{name}" for name in listing(tmp_path / "tree")]
    shares = [sorted(paths, reverse=True)[start::3] for start in range(3)]
    before = listing(others_folder)
    ship_as_other_user(others_folder, *[["-C", tmp_path, "--no-recursion", *share] for share in shares])
    assert listing(others_folder) == before


def test_a_closed_directory_that_is_not_shipped_itself_has_its_mode_again(tmp_path, others_folder):
    (tmp_path / "closed/deeper").mkdir(parents=True)
    (tmp_path / "closed/deeper/file").write_text("new")
    for path, mode in [("closed", 0o2311), ("closed/deeper", 0o555)]:
        os.mkdir(os.path.join(others_folder, path), 0o755)
        os.chown(os.path.join(others_folder, path), 65534, 65534)
        os.chmod(os.path.join(others_folder, path), mode)
    ship_as_other_user(others_folder, ["-C", tmp_path, "closed/deeper/file"])
    found = listing(others_folder)
    assert [found[path][1] for path in ("closed", "closed/deeper")] == [0o2311, 0o555]
    assert found["closed/deeper/file"][3] == b"new"


@pytest.mark.parametrize("mode", [0o755, 0o555])
def test_files_are_replaced_below_a_destination_that_may_not_be_written(tmp_path, others_folder, mode):
    """They wait for their names in the highest folder that may be."""
    shares = []
    for name in ("alice", "bob"):
        (tmp_path / name / "deeper").mkdir(parents=True)
        (tmp_path / name / "deeper/file").write_text("new")
        os.symlink("new", tmp_path / name / "deeper/link")
        os.chmod(tmp_path / name, mode)
        os.mkdir(os.path.join(others_folder, name))
        os.chown(os.path.join(others_folder, name), 65534, 65534)
        shares.append(["-C", tmp_path, name])
    os.chown(others_folder, 0, 0)
    for _ in range(2):
        ship_as_other_user(others_folder, *shares)
        assert listing(others_folder) == listing(tmp_path)


def test_a_killed_collectors_staging_below_a_closed_destination_is_removed_by_the_next(tmp_path, others_folder):
    (tmp_path / "open").mkdir()
    (tmp_path / "open/file").write_text("new")
    stale = os.path.join(others_folder, "open/.wherry-partial.0123456789abcdef0123456789abcdef")
    os.makedirs(stale, 0o700)
    for path in (os.path.dirname(stale), stale):
        os.chown(path, 65534, 65534)
    os.chown(others_folder, 0, 0)
    ship_as_other_user(others_folder, ["-C", tmp_path, "open"])
    assert listing(others_folder) == listing(tmp_path)


def test_a_closed_directory_may_be_opened_by_its_user_between_shippers(tmp_path, others_folder):
    """A mode that no shipper announced is not remembered."""
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed/file").write_text("new")
    closed = os.path.join(others_folder, "closed")
    os.mkdir(closed, 0o555)
    os.chown(closed, 65534, 65534)
    with Collector(others_folder, "tcp", "--expect", 2, command=NOBODY) as collector:
        assert collector.ship("-C", tmp_path, "closed/file").returncode == 0
        assert listing(others_folder)["closed"][1] == 0o555
        os.chmod(closed, 0o750)
        assert collector.ship("-C", tmp_path, "closed/file").returncode == 0
        assert collector.finish()[0] == 0
    assert listing(others_folder)["closed"][1] == 0o750
