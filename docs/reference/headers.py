# SPDX-License-Identifier: MIT
"""Reads the public headers: groups of items (functions, callbacks, types, constants), each with its contract.

The headers are regular, so this needs no parser of C: a comment stands before its declaration, a comment of one line
with an empty line behind it begins a group, and in a contract each parameter and each error begins a line."""

import os
import re
import textwrap

import declarations

ADAPTERS = {
    "adapters/glib.h": "Adapter for GLib",
    "adapters/libevent.h": "Adapter for libevent",
    "adapters/libuv.h": "Adapter for libuv",
    "adapters/sdevent.h": "Adapter for sd-event",
}
FILES = ["redlock.h", "config.h", "report.h", "stats.h", "error.h", *ADAPTERS]  # in the order of the reference
GROUP_OF_FILE = {"config.h": "Configuration", "stats.h": "Statistics", "report.h": "Reports", "error.h": "Errors", **ADAPTERS}

COMMENT = r"/\*(?P<comment>(?:(?!\*/).)*)\*/\n"
DECLARATION = (
    r"(?P<text>REDLOCK_API [^;]*;"
    r"|static inline [^{;]*\{.*?\n\}"
    r"|typedef struct \w+\s+\w+;[^\n]*"
    r"|typedef struct \w+ \{.*?\n\} \w+;"
    r"|enum \w+ \{.*?\n\};"
    r"|typedef [^;{]*;"
    r"|#define (?!XX)\w+_?\w*[ (][^\n]*(?:(?<=\\)\n[^\n]*)*)"
)
TOKEN = re.compile(rf"^(?:{COMMENT}(?P<empty>\n)?)|^{DECLARATION}", re.M | re.S)
ERRORS = r"(?:OK|E[A-Z]{2,})(?:, (?:OK|E[A-Z]{2,}))*"
NAMES = rf"[a-z_]\w*(?:, [a-z_]\w*)*|{ERRORS}"
ENTRY = re.compile(rf"(?:(?P<names>{NAMES}): (?P<text>.*)|(?P<bare>{ERRORS})\.)$", re.S)
MARK = re.compile(r"^\[([a-z ]+)\]$")
ERRORS_ENUM = "redlock_error"  # its values come from a macro, and its contract lists what each error means
HIDDEN = {"REDLOCK_API", "REDLOCK_NODISCARD"}  # explained in comments, not part of the interface
MACROS = {"REDLOCK_SCOPED": "REDLOCK_SCOPED redlock_lock_t *lock = NULL;"}  # macros with a page, and how each is used

# Sentences of a contract about the result: the first one, and those that go with it.
RESULT = re.compile(r"Returns (?!when\b)")
MORE_OF_RESULT = re.compile(
    r'Returns (?!when\b)|(NULL|0|false|""): |(It is )?(B|b)orrowed\b|(It is )?(S|s)tatic\b|Never NULL'
    r"|The (name|text|string) (is|belongs)\b|The caller frees\b"
)

# What parameters are that most functions have, and that contracts leave out.
COMMON = {
    "rl": "the client",
    "lock": "the lock",
    "config": "the configuration",
    "report": "the report",
    "cancel": "the cancel",
    "ret_report": "receives the report, which the caller frees with redlock_report_free(); may be NULL",
    "userdata": "passed to the function of the caller",
}


class Item:
    """A declaration with its contract."""

    def __init__(self, kind, name, code, comment, header):
        self.kind = kind  # function, callback, struct, enum, handle, constant, macro
        self.name, self.code, self.header = name, code, header
        self.paragraphs = []  # of the description; a list of lines where the layout counts
        self.parameters, self.errors = [], []  # (names, text); a remark between errors has no names
        self.mark = ""  # any thread, configuration, blocks, starts; or ""
        self.threads = ""  # the rule of a function without a mark
        self.since = "0.1.0"
        self.read(comment)

    def read(self, comment):
        """Takes the parts of a contract out of a comment."""
        for block in re.split(r"\n[ \t]*\n", comment):
            lines = block.split("\n")
            if any(line.startswith((" ", "\t")) for line in lines) and not any(ENTRY.match(line) for line in lines):
                self.paragraphs.append(lines)
                continue
            text = []
            for line in logical_lines(lines, set(self.arguments)):
                self.read_line(line, text)
            if text:
                self.paragraphs.append(" ".join(text))

    def read_line(self, line, text):
        """Reads one line of a contract, with its continuations. What is no entry goes to `text`."""
        mark, entry = MARK.match(line), ENTRY.match(line)
        since = re.match(r"Since ([\d.]+[\d])\.$", line)
        if mark:
            self.mark = mark[1]
        elif line.startswith("Threads: "):
            self.threads = line.removeprefix("Threads: ")
        elif since:
            self.since = since[1]
        elif entry and self.is_entry(entry):
            names = (entry["names"] or entry["bare"]).split(", ")
            is_error = names[0].isupper()
            (self.errors if is_error else self.parameters).append((names, (entry["text"] or "").rstrip(".")))
        elif self.errors:
            self.errors.append(([], line))
        else:
            text.append(line)
        at_end = re.search(r"\s*\bSince ([\d.]+[\d])\.$", line)
        if at_end and not since and self.kind not in ("function", "callback"):
            self.since = at_end[1]

    def is_entry(self, entry):
        """Returns whether what looks like an entry is one: of errors, or of parameters that exist."""
        if self.kind not in ("function", "callback") and self.name != ERRORS_ENUM:
            return False
        names = entry["bare"] or entry["names"]
        return names.replace(", ", "").isupper() or set(names.split(", ")) <= set(self.arguments)

    @property
    def brief(self):
        """Returns the first sentence of the description, without its full stop."""
        first = self.paragraphs[0] if self.paragraphs else self.name
        first = first if isinstance(first, str) else first[0]
        return re.split(r"(?<=[a-z)}*_\"])[.:] |[.:]$", first)[0]

    @property
    def returns(self):
        """Returns what the contract says of the result, as sentences without the word Returns; [] if it says nothing but
        that the result is a status."""
        found = []
        for text in self.paragraphs:
            for sentence in re.split(r"(?<=[.]) (?=[A-Z0-9])", text) if isinstance(text, str) else []:
                if (MORE_OF_RESULT if found else RESULT).match(sentence):
                    found.append(sentence.removeprefix("Returns "))
        return [sentence[:1].upper() + sentence[1:] for sentence in found]

    @property
    def value(self):
        """Returns the value of a constant."""
        return self.code.split()[2]

    @property
    def include(self):
        """Returns the header that a program includes for the item."""
        return f"redlock/{self.header if self.header in ADAPTERS else FILES[0]}"

    @property
    def arguments(self):
        """Returns the names of the parameters in their order."""
        inside = re.search(r"\((?!\*)((?:[^()]|\([^()]*\))*)\)[^()]*$", self.code, re.S)
        parts = re.split(r",(?![^()]*\))", inside[1]) if inside else []
        names = [re.findall(r"\w+", part)[-1] for part in parts if part.strip()]
        return [name for name in names if name != "void"]

    def explained(self, blocking=None):
        """Returns (name, text) of all parameters in their order. `blocking`: the call that a _start call starts."""
        told = {name: text for names, text in self.parameters for name in names}
        rows = []
        for name in self.arguments:
            text = told.get(name)
            if text is None and blocking and name in blocking.arguments:
                text = dict(blocking.explained()).get(name)
            if text is None and name.startswith("ret_") and name != "ret_report":
                text = "receives the result"
            rows.append((name, COMMON.get(name, "") if text is None else text))
        return rows


def logical_lines(lines, arguments):
    """Joins the lines of a paragraph that belong together: an entry goes on where the next line is indented, and text
    goes on until an entry or a mark begins. `arguments`: names with which an entry may begin, besides errors."""
    joined = []
    for line in lines:
        label = re.match(rf"({NAMES})(?:: |\.$)", line)
        is_entry = label and (label[1].isupper() or set(label[1].split(", ")) <= arguments)
        starts = is_entry or re.match(rf"{ERRORS}\.$", line) or MARK.match(line) or line.startswith(("Since ", "Threads: "))
        if joined and (line.startswith("  ") or not starts and not joined[-1][1]):
            joined[-1][0] += " " + line.strip()
        else:
            joined.append([line.strip(), bool(starts)])
    return [line for line, _ in joined]


def clean(comment):
    """Returns the text of a comment without its stars."""
    lines = [re.sub(r"^\s*\*( |$)", "", line) for line in comment.strip().split("\n")]
    return textwrap.dedent("\n".join([lines[0].strip(), *lines[1:]])).strip()


def kind_of(code):
    """Returns (kind, name) of a declaration."""
    for kind, pattern in (
        ("constant", r"#define (\w+)"),
        ("struct", r"typedef struct \w+ \{.*\} (\w+);"),
        ("enum", r"enum (\w+) \{"),
        ("callback", r"typedef [^;]*\(\*(\w+)\)"),
        ("handle", r"typedef struct \w+\s+(\w+);"),
        ("function", r"\b(redlock_\w+)\("),
    ):
        found = re.match(pattern, code, re.S) if kind != "function" else re.search(pattern, code)
        if found:
            return kind, found[1]
    raise ValueError(f"not understood: {code}")


class Reference:
    """All items, in groups, and the texts of the headers themselves."""

    def __init__(self, folder):
        self.groups = {}  # title: [text of the group, [items]]
        self.overview = ""  # the first comment of redlock.h
        for name in FILES:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                self.read(name, file.read())
        self.items = {item.name: item for _, items in self.groups.values() for item in items}
        self.error_texts = self.read_errors(os.path.join(folder, "error.h"))
        self.write_out_errors(self.items[ERRORS_ENUM])

    def blocking_of(self, item):
        """Returns the call that a _start call starts, or None."""
        return self.items.get(item.name.removesuffix("_start")) if item.name.endswith("_start") else None

    def read(self, header, source):
        """Adds the items of a header."""
        title = GROUP_OF_FILE.get(header, "")
        comment = ""
        first = True
        for token in TOKEN.finditer(source):
            if token["comment"] is not None:
                text = clean(token["comment"])
                if first:
                    first = False
                    text = text.partition("\n")[2].strip("\n")  # without the licence
                    if header == FILES[0]:
                        self.overview = text
                    elif header in ADAPTERS:
                        self.groups[title] = [text, []]
                elif token["empty"]:
                    head, _, rest = text.partition("\n\n")
                    if len(head) < 40:
                        title = head.rstrip(".")
                        self.groups.setdefault(title, ["", []])[0] = rest
                    elif title in self.groups:  # explains the item before it
                        self.groups[title][1][-1].paragraphs.append(text.split("\n"))
                    comment = ""
                    continue
                comment = text
                continue
            self.add(title, header, token["text"], comment)
            comment = ""

    def add(self, title, header, code, comment):
        """Adds an item to the group with this title."""
        kind, name = kind_of(code)
        if name in HIDDEN or name.endswith("_H") or name == "REDLOCK_ERROR_MAP":
            return
        if " ".join(comment.split()).endswith("Not for other callers."):
            return
        if kind == "function":
            code = re.sub(r"\s*\{.*", ";", code, flags=re.S)
            code = re.sub(r"(REDLOCK_API|REDLOCK_NODISCARD|static inline)\s+", "", code)
        if name in MACROS:
            kind, code = "macro", MACROS[name]
        beside = re.search(r"/\* (.*?) \*/$", code) if kind in ("constant", "handle") else None
        if beside:
            comment, code = beside[1][0].upper() + beside[1][1:] + ".", code[: beside.start()].rstrip()
        item = Item(kind, name, code, comment, header)
        group = self.groups.setdefault(title, ["", []])
        since = re.search(r"^Since ([\d.]+)\.$", group[0], re.M)  # of all that the header has
        item.since = since[1] if since else item.since
        group[1].append(item)

    def write_out_errors(self, item):
        """Replaces the macro in the enum of errors by what it expands to."""
        rows = "".join(f"    {name} = {number}, /* {text} */\n" for name, number, text in self.error_texts)
        item.code = f"enum {item.name} {{\n    REDLOCK_OK = 0,\n{rows}}};"

    def meanings(self):
        """Returns [(name, number, text, meaning)] of the errors. The meaning is what the contract of the enum says."""
        told = {name: text for names, text in self.items[ERRORS_ENUM].errors for name in names}
        return [(*row, told.get(row[0].removeprefix("REDLOCK_"), "")) for row in self.error_texts]

    @staticmethod
    def read_errors(path):
        """Returns [(name, number, text)] of the list of errors."""
        with open(path, encoding="utf-8") as file:
            found = re.findall(r'XX\((\w+), (-?\d+), "([^"]*)"\)', file.read())
        return [(f"REDLOCK_{name}", int(number), text) for name, number, text in found]


def declaration(item):
    """Returns the declaration of a function with one parameter per line if it does not fit into one."""
    code = re.sub(r"\s+", " ", item.code)
    if item.kind not in ("function", "callback"):
        return item.code
    if len(code) <= declarations.WIDTH:
        return code
    head, _, rest = code.partition("(") if item.kind == "function" else code.partition(")(")
    opening = "(" if item.kind == "function" else ")("
    parts = re.split(r", (?![^()]*\))", rest[: rest.rindex(")")])
    return head + opening + "\n    " + ",\n    ".join(parts) + ");"
