# SPDX-License-Identifier: MIT
"""Reads the samples of a document: its fenced blocks, and the comments before them that say how a test runs them.

Each block begins with a language. A line `<!-- sample: WORDS -->` directly before a block changes how it is run:

    fragment        C or C++: the body of a function that has rl, lock, config and rc.
    file NAME       The block is written to this file first; a later block may use it.
    exit N          The expected exit status, otherwise 0.
    prints TEXT     The output must contain this text.
    setup COMMAND   A shell command that runs before the block.
    skip REASON     The block is not run.
    needs MODULE    C or C++: compiled with the flags of this module of pkg-config; not run without it.
    of COMMAND      A text block is the output of this command.
    unchecked WHY   A text block is compared with nothing.
    same PATH       The block has the lines of this file of the source tree, without its comments and empty lines.

A block of text is what a reader sees. Directly behind a block that is run, it is the output of that; otherwise it needs
`of` or `unchecked`. Its lines are in the output in this order, with other numbers, times, addresses, versions and
holders; three dots stand for anything.
"""

import re

# The languages whose blocks are run, those that are parsed, and those that are neither.
RUN = {"c", "cpp", "python", "sh", "crontab"}
PARSED = {"json", "ini", "yaml"}
OUTPUT = {"text", "console"}
SHOWN = {"conf", "sql", "js", "go", "java", "csharp", "cmake", "meson", "make", "diff", "promql"}

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w+-]*)[ \t]*\n(?P<body>.*?)^(?P=indent)```[ \t]*$", re.M | re.S)
COMMENT = re.compile(r"<!-- sample: (\w+) ?(.*?) -->[ \t]*\n\Z")
DIRECTIVES = {"fragment", "file", "exit", "prints", "setup", "skip", "needs", "of", "unchecked", "same"}


class Sample:
    """A fenced block of a document."""

    def __init__(self, document, line, language, body):
        self.document, self.line = document, line  # of the first line of the block
        self.language, self.body = language, body
        self.directives = {}  # by name: the words behind it
        self.unknown = []  # names that are no directives
        self.follows = False  # nothing but comments of samples is between it and the block before

    @property
    def place(self):
        """Returns where the sample is, for messages."""
        return f"{self.document}:{self.line}"


def samples_of(document, text):
    """Returns the samples of a document in their order."""
    found, end = [], 0
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        body = "".join(line[indent:] if line.strip() else line for line in match["body"].splitlines(keepends=True))
        sample = Sample(document, text.count("\n", 0, match.start()) + 1, match["language"], body)
        before = text[: match.start()]
        while True:
            comment = COMMENT.search(before)
            if not comment:
                break
            if comment[1] in DIRECTIVES:
                sample.directives[comment[1]] = comment[2]
            else:
                sample.unknown.append(comment[1])
            before = before[: comment.start()]
        sample.follows = bool(found) and not before[end:].strip()
        found.append(sample)
        end = match.end()
    return found


def indented_code(text):
    """Returns the numbers of the lines that begin a block of code without a fence: four blanks after an empty line."""
    lines = FENCE.sub(lambda match: "x" + "\n" * match[0].count("\n"), text).split("\n")
    items = re.compile(r" *(?:[-*]|\d+\.) ")  # in a list, four blanks may go on with an item
    found, in_list = [], False
    for number, (before, line) in enumerate(zip(["", *lines], lines), 1):
        in_list = bool(items.match(line)) or in_list and (not line.strip() or line.startswith("  "))
        if line.startswith("    ") and line.strip() and not before.strip() and not in_list:
            found.append(number)
    return found


# What differs from run to run, in the order in which it is replaced.
PLACEHOLDERS = [
    (r"\b[\w.-]+/\d+/\d{9,}", "HOLDER"),
    (r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b", "TIME"),
    (r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ TIME [A-Z]+ \d{4}\b", "DATE"),
    (r"\b(?:redis|valkey) \d+(?:\.\d+)+", "VERSION"),
    (r"[\w.-]*\w:\d{2,5}\b(?:\?fresh=1)?", "SERVER"),
    (r"\d+(?:\.\d+)?", "N"),
    (r"N to N\b", "N"),
    (r"\bN(?:ms|s|m|h)\b", "N s"),
    (r"\bN (?:us|ms|s)\b", "N s"),
    (r"(?:SERVER, )+SERVER\b", "SERVER"),
    (r"\s+", " "),
]


def without_particulars(line):
    """Returns a line of an output with words in capitals in place of what differs from run to run."""
    for pattern, word in PLACEHOLDERS:
        line = re.sub(pattern, word, line)
    return line.strip()


def missing_line(shown, output):
    """Returns the first line of `shown` that is not in the output behind the line before it, or None. Empty lines and
    lines of three dots are not compared."""
    rest = iter([without_particulars(line) for line in output.splitlines()])
    for line in shown.splitlines():
        parts = [re.escape(without_particulars(part)) for part in re.split(r"\.\.\.|…", line)]
        pattern = re.compile(r" ?.*".join(parts))
        if line.strip(" .…") and not any(pattern.fullmatch(candidate) for candidate in rest):
            return line
    return None


HOST = r"[A-Za-z0-9_.-]+(?::[0-9]{2,5})?(?:\?[\w=&]+)?"
LIST = re.compile(rf"((?:REDLOCK_SERVERS=|(?<![\w-])-s |--servers[ =]|\bClient\()[\"']?)({HOST}(?:,{HOST})*)(?=[\"'\s]|$)", re.M)
URL = re.compile(r"rediss?://[A-Za-z0-9_.-]+(?::\d+)?(?:/\d+)?(?=[\"'\s,\]]|$)")


def with_servers(text, servers):
    """Returns the text with the addresses of the sandbox in place of those of the document: in lists of servers, which
    keep their length up to the number of servers, also those of a Client(...) in Python, and in redis:// URLs, the first URL of the text first."""

    def replace_list(match):
        wanted = match[2].count(",") + 1
        return match[1] + ",".join(servers[:wanted])

    order = {}

    def replace_url(match):
        number = order.setdefault(match[0], len(order))
        return "redis://" + servers[number % len(servers)].partition("?")[0]

    return URL.sub(replace_url, LIST.sub(replace_list, text))


SCRIPT = re.compile(r"(?<![\w./-])(?:\./|/usr/local/bin/)([\w-]+(?:\.sh)?)(?![\w./])")


def scripts_named(text):
    """Returns the programs of the reader's own that a shell sample names: ./backup.sh, /usr/local/bin/report."""
    return {match[1] for match in SCRIPT.finditer(text)}
