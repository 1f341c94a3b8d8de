# SPDX-License-Identifier: MIT
"""Another hiredis in the process, loaded before the one that the library is linked with: redlock_new() takes
it if it reads replies in the same way, and refuses it otherwise; it never crashes."""

import os
import subprocess
import unittest

import tree
import tapcase  # found through tree


class AnotherHiredis(unittest.TestCase):
    def run_host(self, host, preloaded=None):
        environment = {**os.environ, **({"LD_PRELOAD": preloaded} if preloaded else {})}
        done = subprocess.run([os.environ[host]], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, universal_newlines=True, timeout=30)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def refuses(self, told, *files):
        self.assertTrue(told.startswith("REDLOCK_ELIBRARY: "), told)
        for name in ("libredlock.so", *files):
            self.assertIn(os.path.basename(name), told)
        self.assertRegex(told, r"compiled against hiredis [\d.]+ \(libhiredis\.so\.[\d.]+\)")
        self.assertIn("load the same one in the whole process, or build this library with -Dhiredis=static\n", told)

    def test_alone(self):
        self.assertEqual(self.run_host("GUEST"), "REDLOCK_OK: \n")

    def test_the_host_is_linked_with_another(self):
        self.refuses(self.run_host("LINKED"), os.environ["READER"])

    def test_the_host_takes_the_address_of_a_function(self):
        self.assertEqual(self.run_host("STUB"), "REDLOCK_OK: \n")

    def test_another_reader(self):
        self.refuses(self.run_host("GUEST", os.environ["READER"]), os.environ["READER"])

    def test_another_table_of_functions(self):
        self.refuses(self.run_host("GUEST", os.environ["TABLE"]), os.environ["TABLE"])

    def test_another_task(self):
        self.refuses(self.run_host("GUEST", os.environ["TASK"]), os.environ["TASK"])

    def test_one_function_of_another(self):
        self.refuses(self.run_host("GUEST", os.environ["FUNCTION"]), os.environ["FUNCTION"], "libhiredis.so")

    def test_what_reads_in_the_same_way_is_taken(self):
        self.assertEqual(self.run_host("GUEST", os.environ["SAME"]), "REDLOCK_OK: \n")


if __name__ == "__main__":
    tapcase.main()
