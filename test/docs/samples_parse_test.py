# SPDX-License-Identifier: MIT
"""How samples are read out of a document, and how addresses and programs in them are replaced."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["REDLOCK_SOURCE"], "test", "lib")]
import samples
import tapcase

DOCUMENT = """# Title

<!-- sample: setup mkdir -p out -->
<!-- sample: exit 75 -->
```sh
redlock run -n x -- true
```

1. A step:

   <!-- sample: file lock.c -->
   ```c
   int main(void)
   {
   }
   ```

<!-- sample: mistake -->

```
no language
```
"""


class Parse(unittest.TestCase):
    """Blocks and the comments before them."""

    def test_blocks_in_their_order(self):
        """Each fenced block is found, with the line on which it begins."""
        found = samples.samples_of("a.md", DOCUMENT)
        self.assertEqual([(one.language, one.line) for one in found], [("sh", 5), ("c", 12), ("", 20)])
        self.assertEqual(found[1].place, "a.md:12")

    def test_directives_directly_before_a_block(self):
        """Comments count only directly before a block, several of them together."""
        found = samples.samples_of("a.md", DOCUMENT)
        self.assertEqual(found[0].directives, {"setup": "mkdir -p out", "exit": "75"})
        self.assertEqual(found[2].directives, {})

    def test_unknown_directive(self):
        """A directive that does not exist is kept, for an error."""
        found = samples.samples_of("a.md", "<!-- sample: exti 1 -->\n```sh\ntrue\n```\n")
        self.assertEqual(found[0].unknown, ["exti"])

    def test_indentation_of_a_list_is_removed(self):
        """A block inside of a list has the text without the indentation of the list."""
        self.assertEqual(samples.samples_of("a.md", DOCUMENT)[1].body, "int main(void)\n{\n}\n")


class Outputs(unittest.TestCase):
    """Blocks of text that show an output, and code without a fence."""

    def test_block_behind_another(self):
        """A block follows the one before it if only comments for the test are between them."""
        text = "```sh\ntrue\n```\n\n<!-- sample: of x -->\n```text\na\n```\n\nThen:\n\n```text\nb\n```\n"
        self.assertEqual([one.follows for one in samples.samples_of("a.md", text)], [False, True, False])

    def test_lines_are_in_the_output(self):
        """What differs from run to run does not matter; a changed word and a changed order do."""
        output = ("server  eligible\n127.0.0.1:23010  yes  redis 7.0.15  0.090\nslow\n"
                  "x: held by vm/7774/1795410015 on 5 of 5 servers, expires in 29996 to 29997 ms\n"
                  "Mon Nov 23 05:00:18 UTC 2026\n")  # fmt: skip
        for shown in ("a:6379 yes valkey 8.1.1 10.5\nFri Jan  1 15:10:28 CET 2027\n", "server ...\n\nslow\n",
                      "x: held by web3/1/1769860800 on 3 of 5 servers, expires in 5 ms\n", "x: held …\n"):  # fmt: skip
            self.assertIsNone(samples.missing_line(shown, output))
        for shown in ("x: held by vm\n", "slow\nserver eligible\n", "x: free\n", "slow\nslow\n"):
            self.assertEqual(samples.missing_line(shown, output), shown.splitlines()[-1])

    def test_code_without_a_fence(self):
        """Four blanks after an empty line begin code, but not in a list, in a block or in a paragraph."""
        text = "A\n\n    code\n    more\n\n- item\n\n    its paragraph\n\nB\n    goes on\n\n```sh\n\n    x\n```\n\n    code\n"
        self.assertEqual(samples.indented_code(text), [3, 18])


class Addresses(unittest.TestCase):
    """The servers of the sandbox in place of those of a document."""

    servers = ["127.0.0.1:1?fresh=1", "127.0.0.1:2?fresh=1", "127.0.0.1:3?fresh=1"]

    def test_lists_keep_their_length(self):
        """A list of two servers is replaced by two, whether in the environment or behind an option."""
        text = samples.with_servers("REDLOCK_SERVERS=a:6379,b:6379 redlock nodes -s 10.0.0.1,10.0.0.2,10.0.0.3", self.servers)
        self.assertEqual(
            text, f"REDLOCK_SERVERS={','.join(self.servers[:2])} redlock nodes -s {','.join(self.servers)}"
        )

    def test_servers_of_a_python_client(self):
        """The first argument of Client() is such a list; the others stay."""
        text = samples.with_servers('libredlock.Client("a:6379,b:6379", owner="a:6379")', self.servers)
        self.assertEqual(text, f'libredlock.Client("{",".join(self.servers[:2])}", owner="a:6379")')

    def test_urls_are_replaced_by_one_server_each(self):
        """The same URL is the same server, also with a database; a query stays out."""
        text = samples.with_servers('["redis://a:6379", "redis://b:6379/0", "redis://a:6379"]', self.servers)
        self.assertEqual(text, '["redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:1"]')

    def test_other_words_stay(self):
        """Words that look like an option or a host inside of other words are not replaced."""
        for text in ("ls -s", "redlock-nodes -sx", "echo REDLOCK_SERVERS"):
            self.assertEqual(samples.with_servers(text, self.servers), text)

    def test_programs_of_the_reader(self):
        """Programs in the present directory and in /usr/local/bin are the reader's own; paths below are not."""
        self.assertEqual(
            samples.scripts_named("redlock run x -- ./backup.sh && /usr/local/bin/report; ./dir/file ../up"),
            {"backup.sh", "report"},
        )


if __name__ == "__main__":
    tapcase.main()
