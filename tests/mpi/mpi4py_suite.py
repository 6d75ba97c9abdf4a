# SPDX-License-Identifier: Apache-2.0
"""mpi4py_suite.py SUITE RECORD ARGUMENT...: a rank of mpi4py's own test-suite, in the folder SUITE, with the arguments of its main.py.

It writes into RECORD/RANK a line as each test begins and one as it ends, with its outcome; `end` is the last. Ends with status 0
whatever the outcomes are: another one is a rank that broke."""

import os
import sys
import unittest
from pathlib import Path


class Recorder(unittest.TextTestResult):
    record = None

    def startTest(self, test):
        super().startTest(test)
        self.outcome = "pass"
        print("begin", test.id(), file=self.record, flush=True)

    def stopTest(self, test):
        print(self.outcome, test.id(), file=self.record, flush=True)
        super().stopTest(test)

    def addError(self, test, err):
        super().addError(test, err)
        self.outcome = "fail"

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.outcome = "fail"

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.outcome = "fail"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcome = "skip"


def main(suite, folder, *arguments):
    sys.dont_write_bytecode = True
    sys.path.insert(0, suite)
    from main import TestProgram
    rank = os.environ.get("PMI_RANK") or os.environ["PMIX_RANK"]
    with open(Path(folder) / rank, "w") as Recorder.record:
        try:
            TestProgram(module=None, argv=["main.py", *arguments], testRunner=unittest.TextTestRunner(resultclass=Recorder))
        except SystemExit:
            print("end", file=Recorder.record)


main(*sys.argv[1:])
