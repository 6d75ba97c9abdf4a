# SPDX-License-Identifier: Apache-2.0
"""wherry run: programs that were compiled with AddressSanitizer start, find their defects and read their files."""

import shutil
import subprocess
from pathlib import Path

import pytest
from program import PROGRAM, environment

LIBRARY = Path(PROGRAM).resolve().parent.parent / "lib/wherry/files/libwherry-preload.so"

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="a sanitizer's build has no library that programs could load")

# Reads the file in small pieces, as often as it takes for a cache to answer; then, if it is told to, one that is too long.
SOURCE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** words) {
  char* buffer = malloc(512);
  const int file = open(words[1], O_RDONLY);
  long sum = 0;
  for (int i = 0; i < 30000; i++) sum += pread(file, buffer, 512, i % 100 * 512);
  printf("%ld\n", sum);
  fflush(stdout);
  if (count > 2) sum += pread(file, buffer, 513, 0);
  free(buffer);
  const pid_t child = fork();
  if (child == 0) execlp("echo", "echo", "of a child", (char*)NULL);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}
"""
COMPILERS = {
    "gcc": ["gcc"],
    "gcc, static runtime": ["gcc", "-static-libasan"],
    "clang": ["clang-19"],
    "clang, shared runtime": ["clang-19", "-shared-libasan", "-Wl,-rpath,RUNTIME"],
}


@pytest.fixture(params=COMPILERS)
def program(request, tmp_path):
    compiler, *options = COMPILERS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    runtime = subprocess.run([compiler, "-print-file-name=libclang_rt.asan-x86_64.so"], capture_output=True, text=True).stdout.strip()
    options = [option.replace("RUNTIME", str(Path(runtime).parent)) for option in options]
    (tmp_path / "program.c").write_text(SOURCE)
    compiled = subprocess.run([compiler, "-g", "-fsanitize=address", *options, "program.c", "-o", "program"], cwd=tmp_path, capture_output=True, text=True)
    if compiled.returncode != 0:
        pytest.skip(f"this {request.param} has no AddressSanitizer")
    (tmp_path / "file").write_bytes(bytes(100_000))
    return tmp_path / "program"


def run(*words):
    return subprocess.run(list(map(str, words)), env=environment(WHERRY_LOG="error"), capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("path", ["none", "kernel", "auto"])
def test_a_program_with_address_sanitizer_starts_and_finds_its_defects(program, path):
    files = [] if path == "none" else ["--files", program.parent, "--file-path", path]
    wherry = [PROGRAM, "run", *files, "--", program, program.parent / "file"]
    good = run(*wherry)
    assert (good.returncode, good.stdout, good.stderr) == (0, "15360000\nof a child\n", "")
    bad = run(*wherry, "too long")
    assert bad.returncode != 0 and "heap-buffer-overflow" in bad.stderr and "of a child" not in bad.stdout
