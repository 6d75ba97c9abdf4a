# SPDX-License-Identifier: Apache-2.0
"""C++ streams under `wherry run --files`: libstdc++ reads and writes the descriptors of files that it opens by fopen."""

import subprocess

import pytest
from host_path import Report
from program import PROGRAM
from ring_programs import by_ring, card, here, namespace, server  # noqa: F401

# Makes the same calls each time for a seed, and prints what they return.
GAME = r"""
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace {

std::mt19937 chance;
unsigned below(unsigned limit) { return chance() % limit; }

void step(std::fstream& file, std::vector<char>& memory) {
  const std::streamsize size = below(8) == 0 ? below(40000) : below(600);
  switch (below(10)) {
    case 0:
      std::cout << "seekg " << file.seekg(below(60000)).good() << '\n';
      break;
    case 1:
      std::cout << "seekp " << file.seekp(below(60000)).good() << '\n';
      break;
    case 2:
      std::cout << "tell " << file.tellg() << ' ' << file.tellp() << '\n';
      break;
    case 3:
      std::cout << "flush " << file.flush().good() << '\n';
      break;
    case 4:
    case 5:
      file.read(memory.data(), size);
      std::cout << "read " << file.gcount() << ' ' << std::hash<std::string>()({memory.data(), std::size_t(file.gcount())}) << '\n';
      break;
    case 6:
      std::cout << "peek " << file.peek() << ' ' << file.rdbuf()->in_avail() << '\n';
      break;
    default:
      file.write(std::string(size, char('a' + below(26))).data(), size);
      std::cout << "write " << file.good() << '\n';
  }
  file.clear();
}

}  // namespace

int main(int, char** words) {
  chance.seed(std::stoul(words[2]));
  const std::ios::openmode modes[] = {std::ios::in, std::ios::out, std::ios::app, std::ios::in | std::ios::out,
                                      std::ios::in | std::ios::app, std::ios::in | std::ios::out | std::ios::trunc,
                                      std::ios::in | std::ios::out | std::ios::ate};
  std::ofstream(words[1]) << std::string(50000, '.');
  std::vector<char> memory(40000), buffer(100000);
  for (int opened = 0; opened < 30; opened++) {
    std::fstream file;
    // Without a buffer each character is a system call.
    if (const unsigned kind = below(12); kind == 0)
      file.rdbuf()->pubsetbuf(nullptr, 0);
    else if (kind < 4)
      file.rdbuf()->pubsetbuf(buffer.data(), 100000);
    file.open(words[1], modes[below(7)]);
    std::cout << "open " << file.is_open() << '\n';
    for (unsigned steps = below(200); steps > 0; steps--) step(file, memory);
    if (below(2)) file.close();
    std::cout << "close " << file.good() << '\n';
  }
}
"""

# Writes lines, each of which is flushed.
WRITE_LINES = r"""
#include <fstream>

int main(int, char** words) {
  std::ofstream file(words[1]);
  for (int i = 0; i < 20'000; i++) file << "line " << i << std::endl;
}
"""

# Reads lines 300 times. Their sum is the result.
READ_LINES = r"""
#include <fstream>
#include <iostream>
#include <string>

int main(int, char** words) {
  std::ifstream file(words[1]);
  long sum = 0;
  for (int again = 0; again < 300; again++) {
    file.clear();
    file.seekg(0);
    for (std::string line; std::getline(file, line);) sum += std::stol(line.substr(5));
  }
  std::cout << sum;
}
"""

LINES = "".join(f"line {i}\n" for i in range(20_000))


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name, source in (("game", GAME), ("write", WRITE_LINES), ("read", READ_LINES)):
        (folder / f"{name}.cc").write_text(source)
        subprocess.run(["c++", "-O1", folder / f"{name}.cc", "-o", folder / name], check=True)
    return folder


def run(server, folder, program, *words):
    command = [PROGRAM, "run", "--files", folder, "--", program, *words]
    done = subprocess.run(list(map(str, command)), env={**server.env, "WHERRY_FILES_REPORT": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, Report(done.stderr)


@pytest.mark.parametrize("seed", range(4))
def test_streams_give_what_they_give_natively(server, here, tmp_path, programs, seed):
    natively = subprocess.run([programs / "game", tmp_path / "native", str(seed)], capture_output=True, text=True, check=True).stdout
    (tmp_path / "local").mkdir()
    for folder in (here, tmp_path / "local"):
        said, _ = run(server, folder, programs / "game", folder / "file", seed)
        assert said.splitlines() == natively.splitlines()
        assert subprocess.run(["cmp", folder / "file", tmp_path / "native"]).returncode == 0
    assert subprocess.run(["cmp", server.root / "file", tmp_path / "native"]).returncode == 0


def test_lines_that_are_flushed_need_no_system_call(server, here, programs):
    _, report = run(server, here, programs / "write", here / "file")
    assert by_ring(report) > 19_000, report.said
    assert (server.root / "file").read_text() == LINES


def test_a_stream_reads_in_place(server, here, tmp_path, programs):
    (tmp_path / "local").mkdir()
    for folder, path in ((here, server.root / "file"), (tmp_path / "local", tmp_path / "local/file")):
        path.write_text(LINES)
        said, report = run(server, folder, programs / "read", folder / "file")
        assert int(said) == 300 * sum(range(20_000))
        assert report.calls("reads in place") > 1000, report.said
