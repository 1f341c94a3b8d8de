# SPDX-License-Identifier: MIT
"""Reads the headers for C++: classes with their members, functions and types, each with its comment.

The headers are regular, so this needs no parser of C++: they are laid out by clang-format, a comment stands before its
declaration, and declarations without a blank line or a comment between them share the comment of the first one. In a
comment, a sentence that begins with the name of a parameter or of an error, and a colon, is about that."""

import os
import re

import headers

FILES = {"redlock.hpp": "redlock.hpp", "asio.hpp": "adapters/asio.hpp"}  # name in the reference, and path
NAMESPACE = re.compile(r"^namespace redlock\n\{\n(.*?)^\} // namespace redlock$", re.M | re.S)
HIDDEN = re.compile(r"^namespace detail\n\{\n.*?^\} // namespace detail$", re.M | re.S)
ERROR = r"(?:(?:std::)?errc::\w+|E[A-Z]{2,})"
ERRORS = rf"{ERROR}(?:(?:, | and ){ERROR})*"
WORDS = r"[a-z_]\w*(?:, [a-z_]\w*)*"
SENTENCE = re.compile(rf"(?<=[.!])\s+(?=[A-Z]|{WORDS}: |{ERRORS}[:.])")
ENTRY = re.compile(rf"(?:({WORDS}|{ERRORS}): (.*?)|({ERRORS}))\.$", re.S)
INITIALIZERS = re.compile(r"(\)(?: noexcept)?)\s* : \w.*", re.S)


class Entity:
    """A class, a function, a type or a member, with all declarations that share one comment."""

    def __init__(self, text, comment):
        self.name = name_of(text)
        self.declarations, self.calls, self.arguments = [], [], []
        self.paragraphs = []  # of the description; a list of lines where the layout counts
        self.parameters, self.errors = [], []  # (names, text), (names as written, text)
        self.members = []  # of a class
        self.code = ""  # fields of a struct, or the values of an enum
        self.comment = comment
        self.add(text)

    def add(self, text):
        """Adds a declaration with its body."""
        declaration = declaration_of(text)
        self.declarations.append(declaration)
        self.arguments += arguments_of(declaration)
        if not text.startswith(("class ", "struct ")):
            called = re.findall(r"\b(redlock_\w+)\(", text[len(declaration) // 2 :])
            self.calls += [name for name in dict.fromkeys(called) if name not in [*self.calls, "redlock_category"]]

        self.read()

    def read(self):
        """Takes the entries out of the comment, with the parameters of all declarations so far."""
        self.paragraphs, self.parameters, self.errors = [], [], []
        for block in re.split(r"\n[ \t]*\n", self.comment) if self.comment else []:
            lines = block.split("\n")
            if any(line.startswith("    ") for line in lines):
                self.paragraphs.append(lines)
                continue
            text = [one for one in SENTENCE.split(" ".join(line.strip() for line in lines)) if not self.read_entry(one)]
            if text:
                self.paragraphs.append(" ".join(text))

    def read_entry(self, sentence):
        """Keeps a sentence about a parameter or an error. Returns whether it is one."""
        entry = ENTRY.match(sentence)
        if not entry:
            return False
        names = entry[1] or entry[3]
        if re.fullmatch(ERRORS, names):
            self.errors.append((names, entry[2] or ""))
        elif set(names.split(", ")) <= set(self.arguments):
            self.parameters.append((names.split(", "), entry[2]))
        else:
            return False
        return True

    @property
    def brief(self):
        """Returns the first sentence of the description, without its full stop."""
        first = next((text for text in self.paragraphs if isinstance(text, str)), "")
        return SENTENCE.split(first)[0].rstrip(".")

    @property
    def see(self):
        """Returns the functions of redlock.h that do the work, without those that the description names."""
        told = " ".join(text if isinstance(text, str) else " ".join(text) for text in self.paragraphs)
        return [name for name in self.calls if name not in told and not name.endswith("_free")]


class Header:
    """A header: its first comment and what it declares."""

    def __init__(self, name, path, source):
        self.name, self.path = name, path
        self.overview = headers.clean(re.match(r"/\*(.*?)\*/", source, re.S)[1]).partition("\n")[2].strip("\n")
        self.entities = []
        for hidden in HIDDEN.findall(source):  # its names for types are written out
            for alias, target in re.findall(r"^using (\w+) = (.*);$", hidden, re.M):
                source = source.replace(f"detail::{alias}", target)
        for space in NAMESPACE.findall(source):
            self.entities += [one for one in entities(HIDDEN.sub("", space)) if "::" not in one.name]


def statements(text):
    """Yields (comment or "", whether an empty line or a comment precedes, text) of each declaration with its body; as text
    "public:" and the like for access labels."""
    comment, gap, lines, at = "", True, text.split("\n"), 0
    while at < len(lines):
        line, end = lines[at], at
        if line.startswith("/*"):
            end = next(number for number in range(at, len(lines)) if "*/" in lines[number])
            comment, gap = headers.clean("\n".join(lines[at : end + 1]).strip()[2:-2]), True
        elif not line.strip() or line.startswith("#"):
            comment, gap = "", True
        elif re.match(r"(public|private|protected):$", line):
            yield "", True, line
            comment, gap = "", True
        else:
            end = last_line(lines, at)
            yield comment, gap, "\n".join(lines[at : end + 1])
            comment, gap = "", False
        at = end + 1


def last_line(lines, at):
    """Returns the number of the line that ends the declaration which begins in line `at`: that of its closing brace, or of
    its semicolon with the comment behind it."""
    while not re.search(r"(^| )\{$|;(\s*/\*.*)?$", lines[at]):
        at += 1
    if lines[at].endswith("{"):
        return next(number for number in range(at, len(lines)) if lines[number].startswith("}"))
    return next(number for number in range(at, len(lines)) if "/*" not in lines[at] or "*/" in lines[number])


def entities(text):
    """Returns what a namespace declares."""
    found = []
    for comment, gap, statement in statements(text):
        if not gap and found and name_of(statement) == found[-1].name:
            found[-1].add(statement)
        elif comment and not statement.startswith("friend "):
            entity = Entity(statement, comment)
            if statement.startswith(("class ", "struct ")):
                read_class(entity, statement)
            elif statement.startswith("enum "):
                entity.code = statement
            found.append(entity)
    return found


def read_class(entity, text):
    """Adds the public members and fields of a class."""
    body = re.search(r"\{\n(.*)\n\};$", text, re.S)[1]
    lines = [re.sub(r"^  (\w+:)$", r"\1", line) if re.match(r"  \w+:$", line) else line[4:] for line in body.split("\n")]
    lines = ["#" if re.match(r"\s*#|^(if|ifdef|else|endif)\b", line) else line for line in lines]
    public, code = text.startswith("struct "), []
    for comment, gap, statement in statements("\n".join(lines)):
        if re.match(r"\w+:$", statement):
            public = statement == "public:"
        elif not public or statement.startswith(("friend ", "using ")) or "= delete;" in statement:
            continue
        elif is_field(statement):
            code += [*([""] if comment and code else []), *(f"/* {comment} */".split("\n") if comment else []), statement]
        else:
            add_member(entity, comment, gap, statement)
    entity.code = "\n".join(code)


def add_member(owner, comment, gap, statement):
    """Adds a function of a class. Leaves out what has no comment and only copies, moves or destroys an object."""
    name = name_of(statement)
    if not gap and owner.members and owner.members[-1].name == name:
        owner.members[-1].add(statement)
        return
    member = Entity(statement, comment)
    if comment or member.calls and name not in (owner.name, f"~{owner.name}", "operator="):
        owner.members.append(member)


def is_field(statement):
    """Returns whether a statement of a class is a field, not a function."""
    return "{\n" not in statement and not re.search(r"\w\(", re.sub(r"/\*.*?\*/|<.*>", "", statement, flags=re.S))


def name_of(text):
    """Returns the name that a declaration declares."""
    text = re.sub(r"^template <[^\n]*>\s", "", text)
    variable = re.match(r"[^(={\n]*\b(\w+) = ", text)
    if variable and not text.startswith("using "):
        return variable[1]
    kind = re.match(r"(?:class|struct|enum class|using) (\w+)\b(?! ?::)", text)
    if kind:
        return kind[1]
    function = re.search(r"(operator ?(?:bool|[^\s\w(]+)|[~\w:]*\w)\s*\(", text)
    return function[1] if function else re.search(r"(\w+)\s*(?:=|\{|;)", text)[1]


def declaration_of(text):
    """Returns a declaration in one line, without its body, its initializers and words that matter in the header only."""
    text = re.sub(r"\n\{.*|\s*\{\n.*", "", text, flags=re.S) if "\n" in text else text
    text = " ".join(text.split())
    if not text.startswith(("class ", "struct ", "enum ")):
        text = INITIALIZERS.sub(r"\1", text)
    text = re.sub(r" override$| = default;$", "", text)
    if "=" not in text.partition("(")[0]:
        text = re.sub(r"(\)(?: const)?(?: noexcept)?);$", r"\1", text)
    return re.sub(r"\binline (?!constexpr)", "", text)


def arguments_of(declaration):
    """Returns the names of the parameters."""
    inside = re.search(r"\w\((.*)\)", declaration)
    parts = re.split(r",(?![^<(]*[>)])", inside[1]) if inside else []
    names = [re.findall(r"\w+", part.partition("=")[0]) for part in parts]
    return [words[-1] for words in names if words]


def read(folder):
    """Returns the headers for C++: {name: Header}. folder: that of redlock.h."""
    found = {}
    for name, path in FILES.items():
        with open(os.path.join(folder, path), encoding="utf-8") as file:
            found[name] = Header(name, path, file.read())
    return found
