# SPDX-License-Identifier: MIT
"""The form of the documents for users: how long they are, and that a test can run their code."""

import glob
import html
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
SOURCE = os.environ["REDLOCK_SOURCE"]
sys.path[:0] = [os.path.join(SOURCE, "test", "lib")]
import samples
import tapcase

# README and docs/*.md; docs/internals and the reference, which is generated, are for others.
DOCUMENTS = ["README.md", *sorted(os.path.relpath(path, SOURCE) for path in glob.glob(os.path.join(SOURCE, "docs", "*.md")))]
WORDS_MAX = 20000  # all documents for users together
README_LINES_MAX = 130


def read(document):
    """Returns the text of a document."""
    with open(os.path.join(SOURCE, document), encoding="utf-8") as file:
        return file.read()


def words_of(text):
    """Returns the number of words that a reader reads: what blanks separate and has a letter or a digit, in paragraphs, lists
    and tables. Code in fences and comments do not count."""
    text = re.sub(r"<!--.*?-->", "", samples.FENCE.sub("", text), flags=re.S)
    return sum(1 for word in text.split() if re.search(r"\w", word))


class Documents(unittest.TestCase):
    """All documents for users."""

    def test_words(self):
        """The documents together stay below the limit. To add, shorten something else."""
        counts = {document: words_of(read(document)) for document in DOCUMENTS}
        self.assertGreater(len(counts), 10)
        self.assertLessEqual(sum(counts.values()), WORDS_MAX, counts)

    def test_what_counts_as_a_word(self):
        """Code, comments and the bars of tables do not count; commands within a sentence do."""
        text = "<!-- sample: exit 1 -->\n```sh\nredlock run\n```\n\n| a | `b c` |\n|---|---|\n- Two words.\n"
        self.assertEqual(words_of(text), 5)

    def test_length_of_readme(self):
        """README can be read at once."""
        self.assertLessEqual(read("README.md").count("\n"), README_LINES_MAX)

    def test_picture_of_a_fence_compares_as_the_text(self):
        """The statement in the picture has the condition of the statement that guarantees.md shows, with a number."""
        condition = re.search(r"AND (fence \S+) :mine", read("docs/guarantees.md"))[1]
        picture = html.unescape(read("docs/images/fence.svg"))
        self.assertEqual(re.findall(r"AND (fence \S+) \d+", picture), [condition])

    def test_no_code_without_a_fence(self):
        """No block of code is only indented, because samples_test.py would not run it."""
        for document in DOCUMENTS:
            with self.subTest(document=document):
                self.assertEqual(samples.indented_code(read(document)), [])


if __name__ == "__main__":
    tapcase.main()
