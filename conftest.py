# SPDX-License-Identifier: Apache-2.0
"""A file whose tests are all skipped ends with status 77, which ctest shows as skipped.

pytest ends with 5 if a module skips itself before it has any test, which ctest counts as a failure, and with 0 if each test
skips itself, which ctest counts as passed.
"""

SKIPPED = 77
NO_TESTS = 5

outcomes = []


def pytest_collectreport(report):
    if report.outcome != "passed":
        outcomes.append(report.outcome)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        outcomes.append(report.outcome)


def pytest_sessionfinish(session, exitstatus):
    if exitstatus in (0, NO_TESTS) and outcomes and set(outcomes) == {"skipped"}:
        session.exitstatus = SKIPPED
