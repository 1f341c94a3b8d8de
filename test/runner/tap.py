# SPDX-License-Identifier: MIT
"""Turns a test program's output and exit status into counts.

The exit status decides: a program whose cases all passed but that ends with another status than 0 (a data
race, a leak, a crash in an exit handler) has failed.
"""

import re
from collections import namedtuple

Result = namedtuple("Result", "passed failed skipped reasons")

CASE = re.compile(r"^(not )?ok\b(?: +\d+)?(?: *-)? *(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\b[:\s]*(.*))?$", re.IGNORECASE)
SKIP = re.compile(r"#\s*SKIP\b[:\s]*(.*)$", re.IGNORECASE)
SKIP_STATUS = 77
MORE_LINES = 6  # of the text of a failed case after its first line

# The first line of what a sanitizer or valgrind reports, the lines that say nothing, and the line with which a sanitizer
# sums up one report.
FINDING = re.compile(r"(WARNING|ERROR): \w*Sanitizer\b|: runtime error: |^==\d+== \S")
RULER = re.compile(r"^=*$")
SUMMARY = re.compile(r"^SUMMARY: ")
FINDING_LINES = 24  # two stacks of a data race
SUMMARIES = 6


def is_tap(text):
    """Returns whether the text has a line of TAP."""
    return any(CASE.match(line) or PLAN.match(line) for line in text.splitlines())


def status_text(status):
    """Returns the words for an exit status; negative: minus the number of a signal."""
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"


def finding(text):
    """Returns the lines that tell what a sanitizer or valgrind has found: the beginning of the first report, and one line
    for each other place. An empty list if the text has no report."""
    lines = [line.rstrip() for line in text.splitlines() if not RULER.match(line.strip())]
    first = next((number for number, line in enumerate(lines) if FINDING.search(line)), None)
    if first is None:
        return []
    shown = lines[first : first + FINDING_LINES]
    summaries = dict.fromkeys(line for line in lines[first:] if SUMMARY.match(line) and line not in shown)
    return shown + list(summaries)[:SUMMARIES]


def from_status(text, status):
    """Counts a program that reports nothing but its exit status as one case."""
    if status == 0:
        return Result(1, 0, 0, [])
    if status == SKIP_STATUS:
        lines = [line for line in text.splitlines() if line.strip()]
        return Result(0, 0, 1, [f"skipped: {lines[-1].strip() if lines else 'no reason given'}"])
    return Result(0, 1, 0, [status_text(status)])


def from_tap(text, status):
    """Returns the result that a TAP output and the exit status have together."""
    passed = failed = skipped = 0
    plan = None
    reasons = []
    more = 0  # lines that still belong to the last case, which has failed
    for line in text.splitlines():
        match = PLAN.match(line)
        if match:
            more = 0
            plan = int(match.group(1))
            if plan == 0 and match.group(2) is not None:
                skipped += 1
                reasons.append(f"skipped: {match.group(2) or 'no reason given'}")
            continue
        if line.startswith("Bail out!"):
            more = 0
            failed += 1
            reasons.append(line)
            continue
        match = CASE.match(line)
        if not match:
            if more > 0 and line.strip():
                reasons[-1] += f"\n    {line.strip()}"
                more -= 1
            continue
        more = 0
        skip = SKIP.search(match.group(2))
        if skip and not match.group(1):
            skipped += 1
            reasons.append(f"skipped: {match.group(2)}")
        elif match.group(1):
            failed += 1
            reasons.append(f"failed: {match.group(2)}")
            more = MORE_LINES
        else:
            passed += 1
    broken = what_is_wrong(plan, passed, failed, skipped, status)
    if broken:
        reasons.append(broken)
        failed += 1
    return Result(passed, failed, skipped, reasons)


def what_is_wrong(plan, passed, failed, skipped, status):
    """Returns an error that no case reports, such as a missing plan; None if there is none."""
    cases = passed + failed + skipped
    if status < 0:
        return status_text(status)
    if plan is None:
        return f"ended after {cases} cases without a plan ({status_text(status)})"
    if plan > 0 and cases != plan:
        return f"{plan} cases announced, {cases} seen ({status_text(status)})"
    if cases == 0:
        return "ran no case"
    if status != 0 and failed == 0:
        return f"all cases passed, but {status_text(status)}"
    return None


def read(text, status):
    """Returns the result of a program from its output and its exit status, with TAP or without."""
    return from_tap(text, status) if is_tap(text) else from_status(text, status)
