# SPDX-License-Identifier: Apache-2.0
"""What `wherry bench --json` wrote: reads files, checks them, and answers "which systems, at which sizes, how fast".

A file is {"environment": {...}, "rows": [...]}; docs/benchmarks.md says what stands in both.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path


class ReportError(Exception):
    """Something the user can put right; its text is all that is shown."""


@dataclass(frozen=True)
class Row:
    """One figure: the median of n samples."""

    bench: str
    system: str
    version: str
    mode: str
    senders: int
    size: int
    metric: str
    median: float
    mad: float
    n: int

    @property
    def key(self) -> tuple:
        return (self.bench, self.system, self.mode, self.senders, self.size, self.metric)


MODE_TEXT = {
    "handover": "hand-over alone",
    "touched": "payload written and read",
    "processes": "workers are processes",
    "threads": "workers are threads",
    "processes-higgs": "workers are processes, the Higgs tree",
    "threads-higgs": "workers are threads, the Higgs tree",
    "hit": "read, hits",
    "first": "read, first touch",
    "cold": "read, cold",
    "random-read": "random reads, hits",
    "used-read": "read and summed up, hits",
    "write": "written, without fsync",
    "write-synced": "written, with fsync",
    "random-write": "random writes, without fsync",
    "used-write-synced": "made and written, with fsync",
    "hit-threads": "read by threads, hits",
    "write-threads": "written by threads, without fsync",
    "write-synced-threads": "written by threads, with fsync",
    "latency": "half a round trip of ranks 0 and 1",
    "bandwidth": "from rank 0 to rank 1",
    "halo-1": "halo exchange on a ring",
    "halo-2": "halo exchange in 2 dimensions",
    "halo-3": "halo exchange in 3 dimensions",
    "allreduce": "MPI_Allreduce",
    "heat": "a step of the heat equation",
    "fft": "a 2-D Fourier transform",
    "memory": "all ranks together",
}
TEXTS = ("bench", "system", "version", "mode", "metric")
COUNTS = ("senders", "size", "n")
NUMBERS = ("median", "mad")
# Two files that differ in one of these do not belong on one page.
MACHINE = ("cpu", "processor", "cores", "kernel", "architecture", "memory_bytes")


@dataclass
class Run:
    """One file: its rows were measured in one interleaved run."""

    name: str
    environment: dict
    rows: list[Row]

    def notes(self, key: str) -> list[tuple[str, str]]:
        """Pairs (system, text) of "not_found" and "failed": an object of reasons, or a list of objects."""
        notes = self.environment.get(key) or []
        if isinstance(notes, dict):
            return [(str(system), str(reason)) for system, reason in notes.items()]
        if not isinstance(notes, list) or not all(isinstance(note, dict) for note in notes):
            raise ReportError(f"{self.name}: environment.{key} is neither an object nor a list of objects")
        return [
            (str(note.get("system", "?")), ": ".join(filter(None, map(str, (note.get("point"), note.get("reason"))))))
            for note in notes
        ]


class Results:
    """Every row of the files given, and what the environments say about the systems."""

    def __init__(self, runs: list[Run]):
        self.runs = runs
        self.rows = [row for run in runs for row in run.rows]
        self._refuse_mixtures()
        self.in_place = self._find_in_place()

    def benches(self) -> list[str]:
        return list(dict.fromkeys(row.bench for row in self.rows))

    def select(
        self, bench: str, metric: str, mode: str | None = None, senders: int | None = None
    ) -> dict[str, list[Row]]:
        """The rows that answer one question, by system and in order of size (connect: in order of connections)."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            wanted = row.bench == bench and row.metric == metric
            if wanted and mode in (None, row.mode) and senders in (None, row.senders):
                found.setdefault(row.system, []).append(row)
        return {system: sorted(rows, key=lambda row: (row.size, row.senders)) for system, rows in found.items()}

    def modes(self, bench: str) -> list[str]:
        present = {row.mode for row in self.rows if row.bench == bench}
        return [mode for mode in MODE_TEXT if mode in present]

    def senders(self, bench: str) -> list[int]:
        return sorted({row.senders for row in self.rows if row.bench == bench})

    def versions(self) -> dict[str, str]:
        return {row.system: row.version for row in self.rows}

    def settings(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for run in self.runs:
            for system, facts in self._facts(run).items():
                if facts.get("settings"):
                    found[system] = str(facts["settings"])
        return found

    def notes(self, key: str) -> list[tuple[str, str]]:
        """As Run.notes, over all runs, each once."""
        return list(dict.fromkeys(note for run in self.runs for note in run.notes(key)))

    @staticmethod
    def _facts(run: Run) -> dict[str, dict]:
        systems = run.environment.get("systems") or {}
        if not isinstance(systems, dict) or not all(isinstance(facts, dict) for facts in systems.values()):
            raise ReportError(f"{run.name}: environment.systems is not an object of objects")
        return systems

    def _find_in_place(self) -> set[str]:
        """Systems whose payload never moves: marked `in_place` in the run, or with hand-overs but no GB/s of them."""
        found = {system for run in self.runs for system, facts in self._facts(run).items() if facts.get("in_place")}
        handover = [row for row in self.rows if row.bench in ("stream", "many") and row.mode == "handover"]
        counted = {row.system for row in handover if row.metric == "msgs/s"}
        return found | (counted - {row.system for row in handover if row.metric == "GB/s"})

    def _refuse_mixtures(self) -> None:
        """Ratios hold within one run only: neither two machines nor the same figure twice."""
        first = self.runs[0]
        for run in self.runs[1:]:
            for key in MACHINE:
                if fact_of_machine(run, key) != fact_of_machine(first, key):
                    raise ReportError(f"{first.name} and {run.name} come from different machines: {key} differs")
        seen: dict[tuple, str] = {}
        for run in self.runs:
            for row in run.rows:
                if row.key in seen:
                    where = (
                        f"{seen[row.key]} and {run.name} both have"
                        if seen[row.key] != run.name
                        else f"{run.name} has twice"
                    )
                    raise ReportError(f"{where} {row.metric} of {row.system} in {row.bench}, {row.size} bytes")
                seen[row.key] = run.name


def fact_of_machine(run: Run, key: str) -> object:
    """Of the processor its kind: caches are those of the first core that a run may use."""
    fact = run.environment.get(key)
    return {name: fact[name] for name in fact if name != "caches"} if isinstance(fact, dict) else fact


def sizes_of(rows: dict[str, list[Row]]) -> list[int]:
    return sorted({row.size for own in rows.values() for row in own})


def reference_size(rows: dict[str, list[Row]]) -> int:
    """64 bytes, or what is nearest."""
    return min({row.size for own in rows.values() for row in own}, key=lambda size: abs(size - 64))


def at_size(rows: dict[str, list[Row]], size: int) -> dict[str, Row]:
    return {system: row for system, own in rows.items() for row in own if row.size == size}


def read(paths: list[Path]) -> Results:
    """Reads all files. Throws ReportError naming the file and what is wrong with it."""
    results = Results([read_one(path) for path in paths])
    if not results.rows:
        raise ReportError(f"no rows in {', '.join(map(str, paths))}: nothing was measured")
    return results


def read_one(path: Path) -> Run:
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ReportError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list):
        raise ReportError(f'{path}: not a result of wherry bench: no "rows"')
    environment = document.get("environment", {})
    if not isinstance(environment, dict):
        raise ReportError(f'{path}: "environment" is not an object')
    rows = [to_row(path, index, row) for index, row in enumerate(document["rows"])]
    return Run(str(path), environment, rows)


def to_row(path: Path, index: int, fields: object) -> Row:
    def refuse(reason: str):
        raise ReportError(f"{path}: row {index}: {reason}")

    if not isinstance(fields, dict):
        refuse("not an object")
    for name in TEXTS:
        if not isinstance(fields.get(name), str):
            refuse(f'"{name}" is missing or not a text')
    for name in COUNTS:
        if not isinstance(fields.get(name), int) or isinstance(fields[name], bool) or fields[name] < 0:
            refuse(f'"{name}" is missing or not a count')
    for name in NUMBERS:
        value = fields.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
            refuse(f'"{name}" is missing or not a number')
    if fields["mad"] < 0:
        refuse('"mad" is below 0')
    return Row(**{name: fields[name] for name in TEXTS + COUNTS + NUMBERS})
