# SPDX-License-Identifier: Apache-2.0
"""The library is a drop-in: name, symbols, and which programs use it under `wherry run`."""

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from processes import DEBIAN_PYTHON, LIBRARY, PREFIX, PROGRAM, SOURCE, succeed

FORWARD = PREFIX.parent / "zmq-forward/libzmq.so.5"


def symbols(library):
    output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in output.splitlines() if " A " not in line}


def test_it_has_the_soname_of_every_other_libzmq():
    output = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert "[libzmq.so.5]" in next(line for line in output.splitlines() if "SONAME" in line)


def test_it_exports_exactly_the_functions_of_debians_library():
    debian = list(Path("/usr/lib").glob("*/libzmq.so.5"))
    if not debian:
        pytest.skip("Debian's libzmq5 is not installed")
    assert symbols(LIBRARY) == symbols(debian[0])


def test_it_exports_every_function_that_its_header_declares_and_nothing_else():
    header = (PREFIX / "include/zmq.h").read_text()
    stable = header.split("#ifdef ZMQ_BUILD_DRAFT_API")[0]
    declared = set(re.findall(r"\b(zmq_[a-z0-9_]+) \(", re.sub(r"/\*.*?\*/", "", stable, flags=re.S)))
    exported = symbols(LIBRARY)
    assert all(name.startswith("zmq_") for name in exported)
    assert {name for name in declared if name not in exported} <= {"zmq_free_fn", "zmq_timer_fn", "zmq_thread_fn"}


def test_the_library_that_forwards_exports_the_same_functions():
    assert symbols(FORWARD) - {"dl_iterate_phdr"} == symbols(LIBRARY)


def test_the_patch_changes_at_most_60_lines_of_libzmq():
    patch = (SOURCE / "adapters/zmq/patches/transport.patch").read_text().splitlines()
    changed = [line for line in patch if re.match(r"[+-](?![+-]{2} )", line)]
    assert 0 < len(changed) <= 60


@pytest.mark.parametrize("python", ["wheel", "debian"])
def test_python_uses_this_library_under_wherry_run(processes, python, tmp_path):
    """The wheel brings a libzmq of its own under another name; Debian's module is linked with Debian's."""
    if python == "debian" and subprocess.run([DEBIAN_PYTHON, "-c", "import zmq"], capture_output=True).returncode != 0:
        pytest.skip("Debian's python3-zmq is not installed")
    script = tmp_path / "has.py"
    script.write_text("import zmq; print(zmq.has('wherry'), zmq.has('curve'), zmq.has('ipc'))")
    options = {"interpreter": DEBIAN_PYTHON} if python == "debian" else {}
    assert succeed(processes.python(script, **options)) == "True True True\n"


ASKS = r"""
#include <stdio.h>
#include <zmq.h>
int main(void) {
  printf("wherry: %d\n", zmq_has("wherry"));
  return 0;
}
"""


def compiled(folder, *commands, source=ASKS, **environment):
    """A program that tells whether its libzmq knows wherry://, or another one."""
    (folder / "program.c").write_text(source)
    script = "\n".join(["set -e", *commands]).replace("PREFIX", str(PREFIX.parents[2]))
    clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    subprocess.run(["sh", "-c", script], cwd=folder, env={**clean, **environment}, check=True)
    return folder / "a.out"


SHOWS = r"""
#include <stdio.h>
#include <zmq.h>
int main(int count, char** words) {
  char line[4096];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof(line), maps) != NULL) fputs(line, stdout);
  return count > 1 ? zmq_has(words[1]) : 0;
}
"""


def loaded(output):
    """The libraries called libzmq in the map of a process."""
    return {Path(line.split()[-1]) for line in output.splitlines() if "libzmq" in line}


def test_a_process_that_calls_no_function_of_libzmq_does_not_load_it(processes):
    assert loaded(run_and_say(processes, "--", "cat", "/proc/self/maps")) == {FORWARD}


@pytest.mark.parametrize("option", ["", "-Wl,--disable-new-dtags,-rpath,$(dirname $(cc -print-file-name=libzmq.so))"])
def test_a_program_that_is_linked_with_a_libzmq_has_this_one_from_the_start_and_no_other(processes, tmp_path, option):
    if not Path("/usr/include/zmq.h").exists():
        pytest.skip("Debian's libzmq3-dev is not installed")
    program = compiled(tmp_path, f"cc program.c -lzmq {option}", source=SHOWS)
    assert loaded(run_and_say(processes, "--log", "error", "--", program)) == {FORWARD, LIBRARY.resolve()}


def test_a_program_that_loads_libzmq_by_its_name_has_this_one(processes):
    script = "import ctypes; zmq = ctypes.CDLL('libzmq.so.5'); print(zmq.zmq_has(b'wherry'), zmq.zmq_has(b'curve'))"
    assert run_and_say(processes, "--", DEBIAN_PYTHON, "-c", script) == "1 1\n"


def test_a_library_that_is_gone_is_named_with_what_to_do(processes, tmp_path):
    place = tmp_path / "lib/wherry"
    (tmp_path / "bin").mkdir()
    for folder in ("zmq/lib", "zmq-forward"):
        (place / folder).mkdir(parents=True)
    program, copy = shutil.copy(PROGRAM, tmp_path / "bin"), place / "zmq/lib/libzmq.so.5"
    shutil.copy(FORWARD, place / "zmq-forward")
    copy.write_text("no library")
    script = "import ctypes; print('starts', flush=True); ctypes.CDLL('libzmq.so.5').zmq_has(b'wherry')"
    process = processes.start(program, "run", "--", DEBIAN_PYTHON, "-c", script)
    said, error = process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 127 and said == "starts"
    assert error.startswith(f"wherry: cannot load {place}/zmq-forward/../zmq/lib/libzmq.so.5: ") and "make zmq" in error and "--no-zmq" in error


def documented_compile_lines():
    text = (SOURCE / "docs/zmq.md").read_text()
    lines = re.search(r"^    (export PKG_CONFIG_PATH=PREFIX\S+)\n    (cc program\.c .*)$", text, re.M)
    return lines.groups()


@pytest.mark.parametrize("other", ["none", "debian"])
def test_the_documented_compile_line_links_this_library(processes, tmp_path, other):
    if other == "debian" and not Path("/usr/include/zmq.h").exists():
        pytest.skip("Debian's libzmq3-dev is not installed")
    program = compiled(tmp_path, *documented_compile_lines(), **({"PKG_CONFIG_LIBDIR": "/nonexistent"} if other == "none" else {}))
    assert succeed(processes.start(program)) == "wherry: 1\n"
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert f"libzmq.so.5 => {PREFIX}/lib/libzmq.so.5" in loaded


def test_pkg_config_names_the_prefix():
    asked = {"PKG_CONFIG_PATH": str(PREFIX / "lib/pkgconfig"), "PATH": os.environ["PATH"]}
    for variable, folder in [("prefix", PREFIX), ("libdir", PREFIX / "lib"), ("includedir", PREFIX / "include")]:
        command = ["pkg-config", f"--variable={variable}", "libzmq"]
        assert subprocess.run(command, env=asked, capture_output=True, text=True, check=True).stdout == f"{folder}\n"


def run_and_say(processes, *command):
    return succeed(processes.start(PROGRAM, "run", *command))


@pytest.fixture
def static_program(tmp_path):
    if not list(Path("/usr/lib").glob("*/libzmq.a")):
        pytest.skip("Debian's libzmq3-dev is not installed")
    return compiled(tmp_path, "cc program.c -l:libzmq.a -lsodium -lpgm-5.3 -lnorm -lgssapi_krb5 -lbsd -lstdc++ -lm")


@pytest.mark.parametrize("stripped", [False, True])
def test_wherry_run_sees_a_libzmq_inside_the_program_and_says_that_it_stays(processes, static_program, stripped):
    if stripped:
        subprocess.run(["strip", static_program], check=True)
    output = run_and_say(processes, "--", static_program)
    assert f"wherry run: {static_program} has a libzmq of its own inside" in output
    assert str(LIBRARY) in output and "docs/zmq.md" in output
    assert output.endswith("wherry: 0\n")


def test_wherry_run_says_what_the_replaced_library_has_that_this_one_has_not(processes, tmp_path):
    if not Path("/usr/include/zmq.h").exists():
        pytest.skip("Debian's libzmq3-dev is not installed")
    program = compiled(tmp_path, "cc program.c -lzmq")
    said, answer = run_and_say(processes, "--", program).splitlines()
    library = re.search(r"libzmq\.so\.5 => (\S+)", subprocess.run(["ldd", program], capture_output=True, text=True).stdout)[1]
    assert said == f"wherry run: the libzmq with wherry:// has no pgm, norm, gssapi, which {library} has; --no-zmq keeps that"
    assert answer == "wherry: 1"
    assert run_and_say(processes, "--log", "error", "--", program) == "wherry: 1\n"
    assert run_and_say(processes, "--no-zmq", "--", program) == "wherry: 0\n"


def test_of_a_program_that_has_this_library_there_is_nothing_to_say(processes, tmp_path):
    program = compiled(tmp_path, *documented_compile_lines())
    assert run_and_say(processes, "--", program) == "wherry: 1\n"
    assert run_and_say(processes, "--", "sh", "-c", "true") == ""


@pytest.mark.parametrize("how", ["not installed", "refused"])
def test_endpoints_to_carry_without_the_library_that_carries_them_are_an_error(processes, tmp_path, how):
    program, *options = [PROGRAM, "--no-zmq"]
    if how == "not installed":
        (tmp_path / "bin").mkdir()
        program, options = shutil.copy(PROGRAM, tmp_path / "bin"), []
    process = processes.start(program, "run", *options, "--zmq", "ipc://", "--", "echo", "ran")
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 125 and "ran\n" not in output
    assert ("make zmq" if how == "not installed" else "leave out one of the two") in output


def test_with_no_zmq_the_program_keeps_its_own(processes, tmp_path):
    process = processes.start(PROGRAM, "run", "--no-zmq", "--", "env")
    output = succeed(process)
    assert str(FORWARD) not in output


def test_what_the_environment_preloads_already_stays(processes):
    process = processes.start(PROGRAM, "run", "--no-root", "--", "env", env={"LD_LIBRARY_PATH": "/nowhere", "LD_PRELOAD": ""})
    lines = succeed(process).splitlines()
    assert "LD_LIBRARY_PATH=/nowhere" in lines
    assert f"LD_PRELOAD={FORWARD}" in lines


def refused(*arguments):
    """What scripts/build-zmq says when it refuses, before it has touched anything."""
    command = [SOURCE / "scripts/build-zmq", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode != 0
    return result.stderr


def test_a_source_that_does_not_exist_is_named(tmp_path):
    assert f"{tmp_path}/none.tar.gz is neither a file nor a directory" in refused("--source", tmp_path / "none.tar.gz")


def test_a_directory_without_libzmq_is_named(tmp_path):
    assert f"{tmp_path} holds no libzmq 4.3.4 or 4.3.5" in refused("--source", tmp_path)


def test_a_file_whose_hash_is_not_known_is_refused_whatever_it_holds(tmp_path):
    text = tmp_path / "text.tar.gz"
    text.write_text("not a tarball")
    packed = tmp_path / "packed.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(SOURCE / "adapters/zmq/wherry.cmake", "zeromq-4.3.5/src/zmtp_engine.hpp")
    for file in [text, packed]:
        assert re.search(rf"{file} is no release that is known here \(sha256 [0-9a-f]{{64}}\)", refused("--source", file))


@pytest.mark.parametrize("option", ["--source", "--prefix", "--preset", "--nonsense"])
def test_an_option_without_its_value_is_answered_with_the_usage(option):
    assert "scripts/build-zmq [--source WHERE]" in refused(option)
