# SPDX-License-Identifier: MIT
"""Another hiredis in the process, loaded before the one that the library is linked with: redlock_new() accepts it if
it reads replies in the same way, and refuses it otherwise; it never crashes."""

import os
import subprocess
import unittest

import tree
import tapcase  # found through tree


class AnotherHiredis(unittest.TestCase):
    """Runs a host program whose process contains another hiredis (other_hiredis.c), linked or preloaded.
    redlock_new() must refuse one with other structs."""

    def run_host(self, host, preloaded=None):
        """Runs the program whose path is in the variable `host`, and returns its output."""
        environment = {**os.environ, **({"LD_PRELOAD": preloaded} if preloaded else {})}
        done = subprocess.run([os.environ[host]], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, universal_newlines=True, timeout=30)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def check_refused(self, output, *files):
        """Fails unless the output is ELIBRARY with a text that names the libraries in conflict and the remedy."""
        self.assertTrue(output.startswith("REDLOCK_ELIBRARY: "), output)
        for name in ("libredlock.so", *files):
            self.assertIn(os.path.basename(name), output)
        self.assertRegex(output, r"compiled against hiredis [\d.]+ \(libhiredis\.so\.[\d.]+\)")
        self.assertIn("load the same one in the whole process, or build this library with -Dhiredis=static\n", output)

    def test_no_other_hiredis(self):
        """The control: with one hiredis a client can be created."""
        self.assertEqual(self.run_host("GUEST"), "REDLOCK_OK: \n")

    def test_host_linked_with_another(self):
        """A host that is linked with another hiredis is refused."""
        self.check_refused(self.run_host("LINKED"), os.environ["READER"])

    def test_host_takes_the_address_of_a_function(self):
        """A host that only takes the address of a function of the same hiredis is accepted."""
        self.assertEqual(self.run_host("STUB"), "REDLOCK_OK: \n")

    def test_another_struct_of_the_reader(self):
        """Another layout of the reader is refused."""
        self.check_refused(self.run_host("GUEST", os.environ["READER"]), os.environ["READER"])

    def test_another_table_of_reply_functions(self):
        """Another layout of the table of functions is refused."""
        self.check_refused(self.run_host("GUEST", os.environ["TABLE"]), os.environ["TABLE"])

    def test_another_struct_of_the_task(self):
        """Another layout of the task is refused."""
        self.check_refused(self.run_host("GUEST", os.environ["TASK"]), os.environ["TASK"])

    def test_one_function_from_another(self):
        """One function from another library, the others from hiredis: refused."""
        self.check_refused(self.run_host("GUEST", os.environ["FUNCTION"]), os.environ["FUNCTION"], "libhiredis.so")

    def test_equal_hiredis_is_accepted(self):
        """A second hiredis with the same layouts is accepted."""
        self.assertEqual(self.run_host("GUEST", os.environ["SAME"]), "REDLOCK_OK: \n")


if __name__ == "__main__":
    tapcase.main()
