# SPDX-License-Identifier: MIT
"""Another hiredis in the process, loaded before the one that the library is linked with: redlock_new() accepts it if
it reads replies in the same way, and refuses it otherwise; it never crashes."""

import os
import subprocess
import unittest

import tree
import tapcase  # found through tree


class AnotherHiredis(unittest.TestCase):
    def run_host(self, host, preloaded=None):
        """Runs the program whose path is in the variable `host`, and returns its output."""
        environment = {**os.environ, **({"LD_PRELOAD": preloaded} if preloaded else {})}
        done = subprocess.run([os.environ[host]], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, universal_newlines=True, timeout=30)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def check_refused(self, output, *files):
        self.assertTrue(output.startswith("REDLOCK_ELIBRARY: "), output)
        for name in ("libredlock.so", *files):
            self.assertIn(os.path.basename(name), output)
        self.assertRegex(output, r"compiled against hiredis [\d.]+ \(libhiredis\.so\.[\d.]+\)")
        self.assertIn("load the same one in the whole process, or build this library with -Dhiredis=static\n", output)

    def test_no_other_hiredis(self):
        self.assertEqual(self.run_host("GUEST"), "REDLOCK_OK: \n")

    def test_host_linked_with_another(self):
        self.check_refused(self.run_host("LINKED"), os.environ["READER"])

    def test_host_takes_the_address_of_a_function(self):
        self.assertEqual(self.run_host("STUB"), "REDLOCK_OK: \n")

    def test_another_struct_of_the_reader(self):
        self.check_refused(self.run_host("GUEST", os.environ["READER"]), os.environ["READER"])

    def test_another_table_of_reply_functions(self):
        self.check_refused(self.run_host("GUEST", os.environ["TABLE"]), os.environ["TABLE"])

    def test_another_struct_of_the_task(self):
        self.check_refused(self.run_host("GUEST", os.environ["TASK"]), os.environ["TASK"])

    def test_one_function_from_another(self):
        self.check_refused(self.run_host("GUEST", os.environ["FUNCTION"]), os.environ["FUNCTION"], "libhiredis.so")

    def test_equal_hiredis_is_accepted(self):
        self.assertEqual(self.run_host("GUEST", os.environ["SAME"]), "REDLOCK_OK: \n")


if __name__ == "__main__":
    tapcase.main()
