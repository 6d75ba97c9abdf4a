# SPDX-License-Identifier: Apache-2.0
"""wherry mount: programs that know nothing of it do on a mount what they do on a file system of this machine."""

import os
import subprocess
from pathlib import Path

import pytest
from errors_of_calls import results
from program import PROGRAM, environment
from serving import HAS_FINE_TIMES, SERVERS, enter_mount_namespace, mounts

BIN = Path(PROGRAM).resolve().parent
OPERATIONS = int(os.environ.get("WHERRY_FILES_OPERATIONS", 1500))
SEED = {name: value for name, value in os.environ.items() if name == "WHERRY_TEST_SEED"}
needs_programs = pytest.mark.skipif(not (BIN / "files_changer").exists(), reason="a sanitizer's build has none of tests/files")

# Each prints what it came to; the current folder is empty at first.
SCRIPTS = {
    "copies": """
        mkdir from && cd from && mkdir -p a/b c && seq 1000 > a/numbers && printf x > a/b/small && : > c/empty
        truncate -s 1M c/sparse && ln a/numbers c/link && ln -s ../a/numbers c/symbolic && ln -s nowhere broken
        chmod 640 a/numbers && chmod 1755 c && find . -exec touch -h -d 2003-01-01 {} + && touch -d 2001-02-03T04:05:06.789 a/b/small && touch -h -d 2002-01-01 broken && cd ..
        cp -a from cp && rsync -aH from/ rsync && tar -C from -cf t.tar . && mkdir tar && tar -C tar -xpf t.tar
        mv cp/a cp/moved && mv cp/moved cp/a && cp --reflink=never -r --preserve=all from again && rm -r again
        for copy in cp rsync tar; do
          diff -r --no-dereference from $copy && (cd $copy && find . ! -path ./c/sparse -printf '%P %y %m %n %s %l %TY-%Tm-%Td-%TT\\n' | grep -v '^ d\\|^[a-c/]* d' | sort)
        done
        ls -A from | sort; stat -c '%n %h %s' from/a/numbers from/c/link; rm -rf from cp; ls | sort
    """,
    "git": """
        export HOME=$PWD GIT_CONFIG_NOSYSTEM=1; git init -q -b main r && cd r && git config user.name a && git config user.email a@b
        export GIT_AUTHOR_DATE=2001-01-01T00:00:00Z GIT_COMMITTER_DATE=2001-01-01T00:00:00Z; git config core.fsync none
        for i in $(seq 20); do mkdir d$i; seq $i > d$i/f; done; git add -A && git commit -qm one && git mv d1/f d2/g && git commit -qam two
        git gc -q && git fsck 2>&1 && git status --short && git log --format=%H && git clone -q . ../clone && cd ../clone && git log --format=%H
        git checkout -q HEAD~1 && git status --short && cat d1/f && git diff HEAD main --stat
    """,
    "sqlite": """
        for mode in delete wal truncate; do
          sqlite3 $mode.db "pragma journal_mode=$mode; create table t(a); insert into t values(1),(2); begin; insert into t select a+10 from t;
            rollback; insert into t select a+20 from t; select sum(a) from t; pragma integrity_check;"
          sqlite3 $mode.db 'vacuum; select count(*) from t; pragma wal_checkpoint(truncate);'
        done; ls | sort
    """,
    "executables": """
        cp /bin/ls here && chmod +x here && ./here here && printf '#!/bin/sh\\necho script $1\\n' > s && chmod 755 s && ./s word
        chmod -x s; ./s 2>/dev/null || echo not executable; (sleep 1 & echo $!) > pid; cat < s | wc -l; wc -c < here > w; test -s w && echo counted
    """,
    "python": """
        python3 - <<'END'
import mmap, os
with open("m", "w+b") as file:
    file.truncate(20000)
    with mmap.mmap(file.fileno(), 20000) as memory:
        memory[4090:4100] = b"0123456789"
        memory.flush()
        print(os.pread(file.fileno(), 12, 4089))
        os.pwrite(file.fileno(), b"written", 8192)
        print(memory[8192:8199])
    print(os.lseek(file.fileno(), 0, os.SEEK_END), os.fstat(file.fileno()).st_size)
    os.posix_fallocate(file.fileno(), 20000, 5000)
    print(os.fstat(file.fileno()).st_size)
for mode in ("w", "a", "a+", "r+"):
    with open("t", mode) as file:
        print(mode, file.tell(), file.write("line\\n"))
with open("t") as file:
    print(file.read())
os.mkdir("d")
for i in range(300):
    open(f"d/{i}", "w").close()
print(len(os.listdir("d")), sum(entry.is_file() for entry in os.scandir("d")))
for name in os.listdir("d"):
    os.unlink(f"d/{name}")
os.rmdir("d")
END
    """,
}


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


def run(script, folder):
    folder.mkdir()
    result = subprocess.run(["bash", "-c", script], cwd=folder, env=environment(LC_ALL="C"), capture_output=True, text=True, timeout=250)
    return result.returncode, result.stdout.replace(str(folder), "FOLDER"), result.stderr.replace(str(folder), "FOLDER")


@SERVERS
@pytest.mark.parametrize("name", SCRIPTS)
def test_programs_do_what_they_do_natively(tmp_path, name, serve):
    natively = run(SCRIPTS[name], tmp_path / "native")
    assert natively[0] == 0, natively
    with mounts(tmp_path, serve=serve) as (_, here):
        assert run(SCRIPTS[name], here / "folder") == natively


def test_calls_fail_as_they_do_natively(tmp_path):
    (tmp_path / "native").mkdir()
    natively = results(tmp_path / "native")
    with mounts(tmp_path) as (_, here):
        assert results(here) == natively


@needs_programs
@SERVERS
@pytest.mark.parametrize("processes", [1, 3])
def test_random_calls_read_what_a_model_in_memory_says(tmp_path, processes, serve):
    with mounts(tmp_path, serve=serve) as (_, here):
        words = [BIN / "files_exerciser", here / "file", OPERATIONS, processes, "--no-hits"]
        result = subprocess.run(list(map(str, words)), env=environment(**SEED), capture_output=True, text=True, timeout=250)
        assert result.returncode == 0, result.stdout + result.stderr


@needs_programs
@pytest.mark.skipif(not HAS_FINE_TIMES, reason="Linux before 6.13: a change within one tick is seen when the file is opened next")
@pytest.mark.parametrize("other", ["mount1", "root"])
def test_random_changes_by_another_mount_and_by_the_host_are_read_at_once(tmp_path, other):
    with mounts(tmp_path, 2) as (_, here, _):
        words = [BIN / "files_changer", here / "file", OPERATIONS, "--also", tmp_path / other / "file"]
        result = subprocess.run(list(map(str, words)), cwd=tmp_path, env=environment(**SEED), capture_output=True, text=True, timeout=250)
        assert result.returncode == 0, result.stdout + result.stderr
