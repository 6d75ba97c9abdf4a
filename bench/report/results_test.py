# SPDX-License-Identifier: Apache-2.0
"""What a file of results must be, and what the report says of one that is not."""

import json

import pytest
import results
import synthetic
from results import ReportError


def write(folder, document, name="run.json"):
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def row(**changes):
    return {
        "bench": "stream",
        "system": "wherry",
        "version": "",
        "mode": "handover",
        "senders": 1,
        "size": 64,
        "metric": "GB/s",
        "median": 1.0,
        "mad": 0.1,
        "n": 5,
    } | changes


def read(folder, *documents):
    return results.read([write(folder, document, f"{index}.json") for index, document in enumerate(documents)])


def test_every_row_of_a_good_file_is_read(tmp_path):
    document = synthetic.results()
    assert len(read(tmp_path, document).rows) == len(document["rows"])


def test_rows_are_found_by_question_and_in_order_of_size(tmp_path):
    rows = [row(size=4096, median=2), row(size=64), row(size=64, mode="touched"), row(size=64, system="tcp")]
    found = read(tmp_path, {"rows": rows}).select("stream", "GB/s", "handover")
    assert [one.size for one in found["wherry"]] == [64, 4096]
    assert list(found) == ["wherry", "tcp"]


@pytest.mark.parametrize(
    "document, reason",
    [
        ("", "not JSON"),
        ("[1", "not JSON"),
        ([], 'no "rows"'),
        ({"rows": {}}, 'no "rows"'),
        ({"rows": [], "environment": []}, '"environment" is not an object'),
        ({"rows": []}, "nothing was measured"),
        ({"rows": [7]}, "row 0: not an object"),
        ({"rows": [row(), row(size=65, system=7)]}, 'row 1: "system"'),
        ({"rows": [row(size=-1)]}, '"size"'),
        ({"rows": [row(n=True)]}, '"n"'),
        ({"rows": [row(median="fast")]}, '"median"'),
        ({"rows": [row(median=float("nan"))]}, '"median"'),
        ({"rows": [row(mad=float("inf"))]}, '"mad"'),
        ({"rows": [row(mad=-0.1)]}, '"mad" is below 0'),
        ({"rows": [row(), row()]}, "has twice GB/s of wherry in stream, 64 bytes"),
        ({"rows": [row()], "environment": {"systems": ["wherry"]}}, "environment.systems"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong_with_it(tmp_path, document, reason):
    with pytest.raises(ReportError, match=reason) as error:
        read(tmp_path, document)
    assert "0.json" in str(error.value)


def test_a_missing_field_is_named(tmp_path):
    for field in row():
        fields = row()
        del fields[field]
        with pytest.raises(ReportError, match=f'"{field}"'):
            read(tmp_path, {"rows": [fields]})


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ReportError, match="none.json: No such file"):
        results.read([tmp_path / "none.json"])


def test_two_runs_of_one_question_are_not_mixed(tmp_path):
    with pytest.raises(ReportError, match="both have GB/s of wherry"):
        read(tmp_path, {"rows": [row()]}, {"rows": [row()]})


def test_runs_of_two_machines_are_not_mixed(tmp_path):
    with pytest.raises(ReportError, match="different machines: cores differs"):
        read(
            tmp_path,
            {"rows": [row()], "environment": {"cores": 2}},
            {"rows": [row(size=65)], "environment": {"cores": 4}},
        )


def test_two_families_of_one_name_are_two_machines(tmp_path):
    def of(family, cores, **changes):
        facts = {"make": "AMD", "family": family, "caches": [{"name": "L2", "bytes": 1 << 20, "cores": cores}]}
        return {"rows": [row(**changes)], "environment": {"cpu": "AMD EPYC", "processor": facts}}

    assert len(read(tmp_path, of("26", "0"), of("26", "1", size=65)).rows) == 2
    with pytest.raises(ReportError, match="different machines: processor differs"):
        read(tmp_path, of("25", "0"), of("26", "0", size=65))


def test_a_system_that_only_counts_hand_overs_is_in_place(tmp_path):
    rows = [
        row(system="iceoryx2", metric="msgs/s"),
        row(system="iceoryx2", mode="touched"),
        row(),
        row(metric="msgs/s"),
    ]
    assert read(tmp_path, {"rows": rows}).in_place == {"iceoryx2"}


def test_reasons_are_read_from_an_object_or_a_list(tmp_path):
    failed = [{"system": "nng-tcp", "point": "stream 64 B", "reason": "timed out"}]
    found = read(tmp_path, {"rows": [row()], "environment": {"not_found": {"ucx": "no library"}, "failed": failed}})
    assert found.notes("not_found") == [("ucx", "no library")]
    assert found.notes("failed") == [("nng-tcp", "stream 64 B: timed out")]
