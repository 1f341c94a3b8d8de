# SPDX-License-Identifier: MIT
"""unittest cases, reported in TAP on stdout. For tests that are written in Python:

    import unittest
    import tapcase

    class Acquire(unittest.TestCase):
        def test_free_lock_is_granted(self): ...

    if __name__ == "__main__":
        tapcase.main()

Names given on the command line choose single cases: `acquire_test.py Acquire.test_free_lock_is_granted`.
"""

import sys
import unittest


LAST_LINES = 4  # of a failure's text, shown below the case; the whole text is on stderr


class TapResult(unittest.TestResult):
    """Prints a line of TAP for each case as it ends."""

    def __init__(self):
        super().__init__()
        self.number = 0

    def line(self, verdict, test, directive=""):
        self.number += 1
        name = test.id().replace("__main__.", "")
        print(f"{verdict} {self.number} - {name}{directive}", flush=True)

    def tell(self, text):
        lines = [line.rstrip() for line in text.splitlines() if line.strip(" ^~")]
        for line in lines[-LAST_LINES:]:
            print(f"  # {line}", flush=True)
        print(text, file=sys.stderr, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.line("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line("ok", test, f" # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line("not ok", test)
        self.tell(self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.line("not ok", test)
        self.tell(self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.line("not ok", subtest)
            self.tell("".join(str(part) for part in err[1:2]))


def main():
    loader = unittest.TestLoader()
    module = sys.modules["__main__"]
    if len(sys.argv) > 1:
        suite = loader.loadTestsFromNames(sys.argv[1:], module)
    else:
        suite = loader.loadTestsFromModule(module)
    result = TapResult()
    suite.run(result)
    print(f"1..{result.number}", flush=True)
    sys.exit(0 if result.wasSuccessful() and result.number > 0 else 1)


def skip_all(reason):
    """Reports that none of the cases can run here, and ends the program."""
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)
