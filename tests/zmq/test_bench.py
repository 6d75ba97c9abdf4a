# SPDX-License-Identifier: Apache-2.0
"""wherry bench zmq, with libzmq's own programs."""

import json

from processes import PROGRAM, succeed

SYSTEMS = {"zmq-wherry", "zmq-tcp", "zmq-ipc"}


def test_libzmqs_own_programs_measure_each_transport(processes, tmp_path):
    file = tmp_path / "rows.json"
    arguments = ("--smoke", "--systems", ",".join(SYSTEMS), "--sizes", "64,1M", "--json", file)
    output = succeed(processes.start(PROGRAM, "bench", "zmq", *arguments))
    assert "zmq-wherry, as a multiple of" in output
    document = json.loads(file.read_text())
    assert not document["environment"]["failed"]
    for metric in ("GB/s", "msgs/s", "cpu_s_per_GB", "ns_mean"):
        found = {(row["system"], row["size"]) for row in document["rows"] if row["metric"] == metric and row["median"] > 0}
        assert found == {(system, size) for system in SYSTEMS for size in (64, 1 << 20)}
    assert all(row["version"].startswith("4.3.") for row in document["rows"])
