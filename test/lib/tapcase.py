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


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0

    def line(self, verdict, test, directive=""):
        self.number += 1
        name = test.id().replace("__main__.", "")
        print(f"{verdict} {self.number} - {name}{directive}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.line("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line("ok", test, f" # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line("not ok", test)
        print(self.failures[-1][1], file=sys.stderr, flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        self.line("not ok", test)
        print(self.errors[-1][1], file=sys.stderr, flush=True)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.line("not ok", subtest)
            print("".join(str(part) for part in err[1:2]), file=sys.stderr, flush=True)


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
    """For a program none of whose cases can run here."""
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)
