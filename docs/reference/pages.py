# SPDX-License-Identifier: MIT
"""Writes the reference as manual pages of section 3: one for each function, callback and type, and an overview."""

import re
import textwrap

import headers

# What the marks at the end of a contract mean.
MARKS = {
    "any thread": "Never waits for the network. May be called in every mode from any thread, also in a callback.",
    "configuration": "Never waits. One thread at a time for each configuration.",
    "blocks": "Waits. May be called from any thread in threaded and hybrid mode, but not in a callback of the same client.",
    "starts": "Never waits for the network. May be called from any thread, also in a callback; in embedded mode by one "
    "thread at a time for each client with all its locks and cancels.",
}
# Errors of all functions that block.
BLOCKING = [("REDLOCK_EMODE", "The client is in embedded mode."),
            ("REDLOCK_EDEADLK", "Called in a callback of the same client.")]  # fmt: skip
# Errors that contracts leave without a text.
PLAIN = {
    "EINVAL": "an argument is NULL where that is not allowed, or out of range",
    "ENOMEM": "memory is missing",
    "EFORKED": "the handle was made before fork(), by the parent process",
    "ECLOSED": "redlock_shutdown() or redlock_free() has begun on the client",
    "ECANCELED": "the cancel was already triggered",
}
BOLD_WORD = re.compile(r"\b(redlock_\w+\(\)|REDLOCK_\w+)")


def escape(text):
    """Returns a text for roff, where no line begins a request and no backslash is special."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def prose(text):
    """Returns a paragraph for roff, with functions and constants in bold."""
    return BOLD_WORD.sub(lambda word: f"\\fB{word[1]}\\fR", escape(text))


def parts(lines):
    """Divides the lines of a paragraph: yields ("code", lines) where lines are indented and keep their layout, ("item",
    text) for each item of a list, and ("text", text) for the rest."""
    kind, held = "text", []
    for line in [*lines, None]:
        is_item = line is not None and re.match(r" *- ", line)
        is_code = line is not None and line.startswith("  ") and not is_item and kind != "item"
        goes_on = line is not None and not is_item and (is_code == (kind == "code")) and (kind != "item" or line.startswith("  "))
        if held and not goes_on:
            yield kind, held if kind == "code" else " ".join(held)
            held = []
        kind = "item" if is_item else "code" if is_code else kind if goes_on else "text"
        held.append(line if is_code else (line or "").strip().removeprefix("- "))


def block(text):
    """Returns the lines of a text for roff. Lines that are indented keep their layout, and items of a list are marked."""
    out = []
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", text.strip("\n")):
        out += [".PP"] if out else []
        after_item = False
        for kind, part in parts(paragraph.split("\n")):
            if kind == "code":
                out += verbatim(part)
            elif kind == "item":
                out += [".IP \\(bu 2", prose(part)]
            else:
                out += [".PP"] if after_item else []
                out.append(prose(part))
            after_item = kind == "item"
    return out


def sentence(text, item=None):
    """Returns a text with a capital letter and a full stop. A name of the interface, or of a parameter of `item`, keeps
    its small letter."""
    first = re.match(r"\w*\(?", text)[0]
    is_name = "_" in first or first.endswith("(") or item is not None and first in item.arguments
    text = text if is_name else text[:1].upper() + text[1:]
    return text if text.endswith((".", "!")) else text + "."


def verbatim(lines):
    """Returns lines whose layout counts."""
    return [".nf", *[escape(line) or "\\&" for line in lines], ".fi"]


def paragraphs(texts):
    """Returns the lines of the paragraphs of a description."""
    out = []
    for text in texts:
        out += [".PP", *([prose(text)] if isinstance(text, str) else block("\n".join(text)))]
    return out


def entries(rows):
    """Returns a list of terms, each with its text."""
    out = []
    for term, text in rows:
        out += [".TP", f".B {escape(term)}", prose(text)] if term else [".PP", prose(text)]
    return out


def error_rows(item):
    """Returns [(names, text)] for the section of errors."""
    rows = []
    for names, text in item.errors:
        if not names:
            rows.append(("", text))
            continue
        for name in [", ".join(f"REDLOCK_{one}" for one in names)] if text else [f"REDLOCK_{one}" for one in names]:
            rows.append((name, sentence(text or PLAIN.get(name.removeprefix("REDLOCK_"), ""), item)))
    return rows


def result_rows(item):
    """Returns the paragraphs of the section about the result of a function; [] if it returns nothing."""
    if item.kind != "function" or re.match(r"void \w", item.code):
        return []
    told = " ".join(item.returns)
    if not item.errors:
        return [told]
    if told:
        told += " It is 0 or more on success."
    else:
        causes = [text for name, text in error_rows(item) if name == "REDLOCK_OK" and text]
        told = "0 (REDLOCK_OK) on success" + (": " + causes[0][:1].lower() + causes[0][1:] if causes else ".")
    return [told, "Otherwise one of the errors below, which are negative constants."]


def failure_rows(item):
    """Returns the rows of the section of errors, without REDLOCK_OK. A function that blocks has two more."""
    rows = [row for row in error_rows(item) if row[0] != "REDLOCK_OK"]
    return rows + (BLOCKING if item.mark == "blocks" else [])


def see_also(item, reference):
    """Returns the names of the items that the description of an item refers to."""
    text = " ".join(part if isinstance(part, str) else " ".join(part) for part in item.paragraphs)
    text += " ".join(entry for _, entry in item.parameters + item.errors) + item.code
    found = {name for name in re.findall(r"redlock_\w+", text) if name in reference.items and name != item.name}
    constants = {name for name, other in reference.items.items() if other.kind in ("constant", "handle")}
    return sorted(found - constants)


def page(item, reference, version):
    """Returns the manual page of an item."""
    out = [f'.TH {item.name} 3 "" "redlock {version}" "redlock reference"', ".nh", ".ad l", ".SH NAME",
           f"{item.name} \\- {escape(item.brief[:1].lower() + item.brief[1:])}", ".SH SYNOPSIS", ".nf",
           f".B #include <{item.include}>", ".PP",
           *[f"\\fB{escape(line)}\\fR" if line.strip() else "\\&" for line in headers.declaration(item).split("\n")],
           ".fi", ".SH DESCRIPTION"]  # fmt: skip
    out += paragraphs(item.paragraphs)[1:]
    rows = item.explained(reference.blocking_of(item)) if item.kind in ("function", "callback") else []
    rows = [(name, sentence(text, item)) for name, text in rows if text]
    if rows:
        out += [".SH PARAMETERS", *entries(rows)]
    if result_rows(item):
        out += [".SH RETURN VALUE", *paragraphs(result_rows(item))[1:]]
    if item.errors:
        out += [".SH ERRORS", *entries(failure_rows(item))]
    if item.mark:
        out += [".SH THREADS", prose(MARKS[item.mark])]
    out += [".SH HISTORY", f"Since version {item.since}."]
    others = see_also(item, reference) + (["redlock_adapters"] if item.header in headers.ADAPTERS else [])
    out += [".SH SEE ALSO", ", ".join(f"\\fB{name}\\fR(3)" for name in [*others, "redlock_reference"])]
    return "\n".join(out) + "\n"


def overview(reference, version):
    """Returns the page that lists all items by group, and all errors."""
    out = [f'.TH redlock_reference 3 "" "redlock {version}" "redlock reference"', ".nh", ".ad l", ".SH NAME",
           "redlock_reference \\- functions, types and errors of libredlock", ".SH SYNOPSIS", ".nf",
           ".B #include <redlock/redlock.h>", ".PP", ".B cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs redlock)", ".fi",
           ".SH DESCRIPTION"]  # fmt: skip
    for title, text in sections(reference.overview):
        out += ([f".SS {title}"] if title else [".PP"]) + block(text)
    for title, (_, items) in reference.groups.items():
        out += [f".SH {title.upper()}"]
        out += entries([(f"{item.name}(3)" if item.kind not in ("constant", "handle") else item.name, sentence(item.brief))
                        for item in items])  # fmt: skip
    out += [".SH ALL ERRORS", *entries([(name, f"{number}: {text}.") for name, number, text in reference.error_texts])]
    out += [".SH SEE ALSO", "\\fBredlock.hpp\\fR(3), \\fBredlock_adapters\\fR(3), \\fBredlock\\fR(1)"]
    return "\n".join(out) + "\n"


def told_rows(entity):
    """Returns [(names, text)] of the parameters and errors of a function of C++."""
    rows = [(", ".join(names), sentence(text)) for names, text in entity.parameters]
    for names, text in entity.errors:
        shown = re.sub(r"\b(E[A-Z]{2,})\b", r"REDLOCK_\1", names)
        rows.append((shown, sentence(text or PLAIN.get(names, ""), entity)))
    return rows


def member(entity):
    """Returns the entry of a function of C++, with its parameters and errors."""
    first, *others = [f"\\fB{escape(text)}\\fR" for text in entity.declarations]
    out = [".TP", first]
    for text in others:
        out += [".TQ", text]
    told = paragraphs(entity.paragraphs)[1:]
    if entity.calls and not told:
        told = [prose(f"Calls {entity.calls[0]}().")]
    out += [".IP" if line == ".PP" else line for line in told]
    if told_rows(entity):
        out += [".RS", *entries(told_rows(entity)), ".RE"]
    if entity.see and entity.paragraphs:
        out += [".IP", "In C: " + ", ".join(f"\\fB{name}\\fR(3)" for name in entity.see) + "."]
    return out


def class_lines(entity):
    """Returns the section of a class, of an enumeration or of a struct."""
    out = paragraphs(entity.paragraphs)[1:]
    if not entity.declarations[0].startswith("enum "):
        out = [".nf", f"\\fB{escape(entity.declarations[0])}\\fR", ".fi", ".PP", *out]
    if entity.code:
        out += [".PP", *verbatim(entity.code.split("\n"))]
    for one in entity.members:
        out += member(one)
    return out


def cpp_page(header, version):
    """Returns the page of redlock.hpp."""
    out = [f'.TH {header.name} 3 "" "redlock {version}" "redlock reference"', ".nh", ".ad l", ".SH NAME",
           f"{header.name} \\- libredlock for C++17", ".SH SYNOPSIS", ".nf", f".B #include <redlock/{header.path}>", ".PP",
           ".B c++ \\-std=c++17 program.cc $(pkg\\-config \\-\\-cflags \\-\\-libs redlock)", ".fi", ".SH DESCRIPTION"]  # fmt: skip
    for title, text in sections(header.overview):
        out += ([f".SS {title}"] if title else [".PP"]) + block(text)
    plain = [entity for entity in header.entities if not is_class(entity)]
    for entity in header.entities:
        if is_class(entity):
            out += [f".SH redlock::{entity.name}", *class_lines(entity)]
    out += [".SH FUNCTIONS AND CONSTANTS"]
    for entity in plain:
        out += member(entity)
    out += [".SH HISTORY", "Since version 0.2.0.", ".SH SEE ALSO",
            "\\fBredlock_reference\\fR(3), \\fBredlock_adapters\\fR(3)"]  # fmt: skip
    return "\n".join(out) + "\n"


def is_class(entity):
    """Returns whether an entity of C++ has a section of its own."""
    return entity.declarations[0].startswith(("class ", "struct ", "enum "))


def adapters(reference, asio, version):
    """Returns the page about the adapters for event loops. asio: the header of the one that is a class."""
    groups = [(title, path, *reference.groups[title]) for path, title in headers.ADAPTERS.items()]
    out = [f'.TH redlock_adapters 3 "" "redlock {version}" "redlock reference"', ".nh", ".ad l", ".SH NAME",
           "redlock_adapters \\- event loops that drive a client", ".SH SYNOPSIS", ".nf",
           *[f".B #include <redlock/{path}>" for path in [*headers.ADAPTERS, asio.path]], ".fi", ".SH DESCRIPTION",
           prose("An adapter has the event loop of a program drive a client in embedded or hybrid mode: the loop polls the "
                 "descriptor of redlock_get_fd() and calls redlock_process(), so callbacks run in the loop. Each adapter is a "
                 "header, of which nothing has to be linked but the event loop.")]  # fmt: skip
    for title, _, text, items in groups:
        out += [f".SH {title}", *block(text), ".PP", ", ".join(f"\\fB{item.name}\\fR(3)" for item in items) + "."]
    out += [".SH Adapter for Asio", *block(asio.overview)]
    for entity in asio.entities:
        out += [".PP", *class_lines(entity)]
    out += [".SH SEE ALSO", ", ".join(f"\\fB{name}\\fR(3)" for name in
                                      ["redlock_get_fd", "redlock_process", "redlock_mode", "redlock.hpp", "redlock_reference"])]  # fmt: skip
    return "\n".join(out) + "\n"


def sections(text):
    """Returns [(title, text)] of the first comment of redlock.h: titles stand at the margin, their text is indented."""
    found, title, lines = [], "", []
    for line in text.split("\n") + ["End"]:
        if re.match(r"[A-Z]", line) and (lines and (line == "End" or lines[-1] == "")) and not line.endswith("."):
            body = textwrap.dedent("\n".join(lines)).strip("\n")
            found += [(title, body)] if body else []
            title, lines = line, []
        else:
            lines.append(line)
    return found


def texts(reference, version, cpp):
    """Returns the manual pages: {file name: text}. cpp: the headers for C++."""
    found = {"redlock_reference.3": overview(reference, version), "redlock.hpp.3": cpp_page(cpp["redlock.hpp"], version),
             "redlock_adapters.3": adapters(reference, cpp["asio.hpp"], version)}  # fmt: skip
    for item in reference.items.values():
        if item.kind not in ("constant", "handle"):
            found[f"{item.name}.3"] = page(item, reference, version)
    return found
