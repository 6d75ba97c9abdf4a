# SPDX-License-Identifier: Apache-2.0
"""How libzmq's own test programs are run."""

import re
import signal
import subprocess

from processes import BUILD, environment

FAILED = re.compile(r":\d+:(\w+):FAIL")
# Many of these programs give their peers and threads a tenth of a second, three at most, for what is to have happened by then.
# On a busy machine that may not be enough. Chance does not repeat itself, what is wrong does.
RUNS = 3
# Of these such a moment is noticed by waiting for ever for what cannot come: test_security_zap's client for being judged,
# test_spec_dealer's five peers for having connected, test_sub_forward for a subscription. Of any other an alarm tells of a
# lost wake-up, and counts at once.
HASTY = {"test_security_zap", "test_spec_dealer", "test_sub_forward"}


def own_test(name, folder, failing=frozenset(), **changes):
    """Runs one with changes to the environment; exactly the functions in `failing` must fail."""
    said = ""
    for _ in range(RUNS):
        result = subprocess.run([BUILD / "bin" / name], env=environment(folder, **changes), cwd=folder, capture_output=True,
                                text=True, timeout=180)
        output = result.stdout + result.stderr
        if set(FAILED.findall(output)) == failing and (result.returncode == 0) == (not failing):
            return
        said += f"{output}(status {result.returncode})\n"
        assert result.returncode != -signal.SIGALRM or name in HASTY, said
    raise AssertionError(said)
