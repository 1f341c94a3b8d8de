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


def block(text):
    """Returns the lines of a text in which lines that are indented keep their layout."""
    out, held = [], []
    for line in text.split("\n") + [""]:
        if line.startswith("  "):
            if held:
                out, held = [*out, prose(" ".join(held))], []
            out.append(("verbatim", line))
        elif line.strip():
            held.append(line)
    out += [prose(" ".join(held))] if held else []
    lines, inside = [], False
    for line in out:
        if isinstance(line, tuple) != inside:
            lines.append(".fi" if inside else ".nf")
            inside = not inside
        lines.append(escape(line[1]) if isinstance(line, tuple) else line)
    return lines + ([".fi"] if inside else [])


def sentence(text, item=None):
    """Returns a text with a capital letter and a full stop. A name of the interface, or of a parameter of `item`, keeps
    its small letter."""
    first = re.match(r"\w*", text)[0]
    is_name = "_" in first or item is not None and first in item.arguments
    text = text if is_name else text[:1].upper() + text[1:]
    return text if text.endswith((".", "!")) else text + "."


def verbatim(lines):
    """Returns lines whose layout counts."""
    return [".nf", *[escape(line) or "\\&" for line in lines], ".fi"]


def paragraphs(texts):
    """Returns the lines of the paragraphs of a description."""
    out = []
    for text in texts:
        out.append(".PP")
        out += [prose(text)] if isinstance(text, str) else verbatim(text)
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
           ".B #include <redlock/redlock.h>", ".PP",
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
    others = see_also(item, reference)
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
    out += [".SH SEE ALSO", "\\fBredlock\\fR(1)"]
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


def texts(reference, version):
    """Returns the manual pages: {file name: text}."""
    found = {"redlock_reference.3": overview(reference, version)}
    for item in reference.items.values():
        if item.kind not in ("constant", "handle"):
            found[f"{item.name}.3"] = page(item, reference, version)
    return found
