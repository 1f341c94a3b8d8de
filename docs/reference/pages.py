# SPDX-License-Identifier: MIT
"""Writes the reference as manual pages of section 3: one for each function, callback and type, and an overview."""

import os
import re
import textwrap

import declarations
import figures
import headers

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = declarations.examples(HERE)
SMALLEST = declarations.smallest(HERE)

# What the marks at the end of a contract mean.
MARKS = {
    "any thread": "Never waits for the network. May be called from any thread, also in embedded mode and in a callback.",
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
# Pages that a page refers to although its text does not name them: where a reader goes on.
RELATED = {
    "REDLOCK_SCOPED": ["redlock_lock_cleanup", "redlock_lock_free"],
    "redlock_acquire": ["redlock_extend", "redlock_lock_check", "redlock_release", "redlock_with"],
    "redlock_acquire_start": ["redlock_adapters", "redlock_config_set_mode", "redlock_process"],
    "redlock_flags": ["redlock_config_set_fence_records", "redlock_extend"],
    "redlock_get_fd": ["redlock_adapters", "redlock_config_set_mode", "redlock_process"],
    "redlock_kind": ["redlock_lock_slot", "redlock_slot_name"],
    "redlock_lock_cleanup": ["REDLOCK_SCOPED", "redlock_lock_free"],
    "redlock_lock_fence": ["redlock_config_set_fence_records", "redlock_init_fence_records"],
    "redlock_new": ["redlock_config_new", "redlock_config_add_nodes", "redlock_shutdown"],
    "redlock_process": ["redlock_adapters", "redlock_config_set_mode"],
    "redlock_stats_prometheus": ["redlock_get_node_stats", "redlock_get_shard_stats", "redlock_get_stats"],
}
# The same for the functions that attach an event loop.
RELATED_OF_ADAPTERS = ["redlock_adapters", "redlock_config_set_mode", "redlock_free"]
FIGURES_PAGE = "redlock_stats_prometheus"  # lists the figures
TITLE = 80  # columns of the first line of a page
BOLD_WORD = re.compile(r"\b(redlock_\w+\(\)|REDLOCK_\w+)")


def escape(text):
    """Returns a text for roff, where no line begins a request and no backslash is special."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def prose(text):
    """Returns a paragraph for roff, with functions and constants in bold."""
    return BOLD_WORD.sub(lambda word: f"\\fB{word[1]}\\fR", escape(text))


DEFINITION = re.compile(r"(?P<indent> {2,})(?P<term>\S+(?: \S+)*) {2,}(?P<text>\S.*)")


def parts(lines):
    """Divides the lines of a paragraph: yields ("code", lines) where lines are indented and keep their layout,
    ("definitions", [(term, text)]) where these lines are two columns, ("item", text) for each item of a list, and ("text",
    text) for the rest."""
    kind, held = "text", []
    for line in [*lines, None]:
        is_item = line is not None and re.match(r" *- ", line)
        is_code = line is not None and line.startswith("  ") and not is_item and kind != "item"
        goes_on = line is not None and not is_item and (is_code == (kind == "code")) and (kind != "item" or line.startswith("  "))
        if held and not goes_on:
            told = definitions(held) if kind == "code" else []
            yield ("definitions", told) if told else (kind, held if kind == "code" else " ".join(held))
            held = []
        kind = "item" if is_item else "code" if is_code else kind if goes_on else "text"
        held.append(line if is_code else (line or "").strip().removeprefix("- "))


def definitions(lines):
    """Returns [(term, text)] of lines in two columns, of which the second goes on where the first is empty; [] of others."""
    first = DEFINITION.match(lines[0])
    found = []
    for line in lines if first else []:
        entry = DEFINITION.match(line)
        if entry and entry["indent"] == first["indent"] and entry.start("text") == first.start("text"):
            found.append((entry["term"], entry["text"]))
        elif len(line) - len(line.lstrip()) == first.start("text"):
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        else:
            return []
    return found


def block(text):
    """Returns the lines of a text for roff. Lines that are indented keep their layout, and items of a list are marked."""
    out = []
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", text.strip("\n")):
        out += [".PP"] if out else []
        after_list = False
        for kind, part in parts(paragraph.split("\n")):
            if kind == "code":
                out += [".RS 4", *verbatim(textwrap.dedent("\n".join(part)).split("\n")), ".RE"]
            elif kind == "definitions":
                out += entries(part)
            elif kind == "item":
                out += [".IP \\(bu 2", prose(part)]
            else:
                out += [".PP"] if after_list else []
                out.append(prose(part))
            after_list = kind in ("item", "definitions")
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
    found |= set(RELATED.get(item.name, RELATED_OF_ADAPTERS if item.header in headers.ADAPTERS else []))
    return sorted(found - constants - {item.name})


def constants_of(item, reference):
    """Returns [(constant, its value and meaning)] of the constants that the contract of an item names."""
    text = str(item.paragraphs) + str(item.parameters) + str(item.errors) + item.code
    named = [reference.items.get(name) for name in dict.fromkeys(re.findall(r"REDLOCK_\w+", text))]
    return [(one.name, f"{one.value}: {one.brief[:1].lower()}{one.brief[1:]}.") for one in named if one and one.kind == "constant"]


def title_line(name, version):
    """Returns the line .TH of a page. man shows the name left and right, and the words in the middle if they fit. A name
    that does not fit twice loses its first word."""
    words = "redlock reference"
    room = TITLE - 2 * len(f"{name}(3)")
    name = name if room > 0 else name.removeprefix("redlock_")
    return f'.TH {name} 3 "" "redlock {version}" "{words if room > len(words) + 3 else " "}"'


def synopsis(item):
    """Returns the declaration of an item without its comments, which are a list of its own."""
    return declarations.bare(item.code) if item.kind in ("struct", "enum") else headers.declaration(item)


def member_list(code, kind):
    """Returns the section about the values of an enum, or about the fields of a struct; [] if none has a comment."""
    rows = [(declarations.term(declaration, kind), sentence(text)) for declaration, text in declarations.members(code) if text]
    return [".SH VALUES" if kind == "enum" else ".SH FIELDS", *entries(rows)] if rows else []


def meaning_rows(reference):
    """Returns [(error with its number, what it means)] of all errors."""
    return [(f"{name} ({number})", f"{sentence(text)} {sentence(meaning)}") for name, number, text, meaning in reference.meanings()]


def threads_of(item):
    """Returns from which threads a function may be called; "" for what is no function."""
    return MARKS[item.mark] if item.mark else sentence(item.threads) if item.threads else ""


def page(item, reference, version):
    """Returns the manual page of an item."""
    out = [title_line(item.name, version), ".nh", ".ad l", ".SH NAME",
           f"{item.name} \\- {escape(item.brief[:1].lower() + item.brief[1:])}", ".SH SYNOPSIS", ".nf",
           f".B #include <{item.include}>", ".PP",
           *[f"\\fB{escape(line)}\\fR" for line in synopsis(item).split("\n")], ".fi", ".SH DESCRIPTION"]  # fmt: skip
    out += paragraphs(item.paragraphs)[1:]
    out += member_list(item.code, item.kind) if item.kind in ("struct", "enum") and item.name != headers.ERRORS_ENUM else []
    rows = item.explained(reference.blocking_of(item)) if item.kind in ("function", "callback") else []
    rows = [(name, sentence(text, item)) for name, text in rows if text]
    if rows:
        out += [".SH PARAMETERS", *entries(rows)]
    if result_rows(item):
        out += [".SH RETURN VALUE", *paragraphs(result_rows(item))[1:]]
    if item.name == headers.ERRORS_ENUM:
        out += [".SH ERRORS", *entries(meaning_rows(reference))]
    elif item.errors:
        out += [".SH ERRORS", *entries(failure_rows(item))]
    if item.name == FIGURES_PAGE:
        out += [".SH FIGURES", prose(figures.ABOUT), *entries(figures.rows())]
    if constants_of(item, reference):
        out += [".SH CONSTANTS", *entries(constants_of(item, reference))]
    if threads_of(item):
        out += [".SH THREADS", prose(threads_of(item))]
    if item.name in EXAMPLES:
        text, code = EXAMPLES[item.name]
        out += [".SH EXAMPLES", prose(text), ".PP", *verbatim(code.split("\n"))]
    out += [".SH HISTORY", f"Since version {item.since}."]
    others = see_also(item, reference)
    out += [".SH SEE ALSO", ", ".join(f"\\fB{name}\\fR(3)" for name in [*others, "redlock"])]
    return "\n".join(out) + "\n"


# What holds for all functions, for the page redlock(3).
THREADS = [
    "The page of each function says in its section THREADS from which threads it may be called.",
    "Calls that block wait for servers. They may be called from any thread in threaded mode, which is the default, and in "
    "hybrid mode, but not in a callback of the same client. In embedded mode they return REDLOCK_EMODE.",
    "Calls whose name ends in _start never wait, and tell their result to a function of the caller.",
    "Functions of the caller run on a thread of their own in threaded mode, and else on the thread that calls "
    "redlock_process().",
    "While a call runs on a lock, another extension or release of it returns REDLOCK_EBUSY. An automatic extension is no call: "
    "a lock can be extended and released while one is in flight.",
    "No other thread may be in a call on a client while redlock_free() frees it.",
]
DOCUMENTS = [
    ("guarantees", "what a lock promises, what it does not, and the duties of the program"),
    ("tutorial", "from nothing to a held lock"),
    ("embedding", "modes, callbacks, event loops, permits, fences, statistics"),
    ("operations", "the servers: choice, settings, monitoring, replacement"),
    ("troubleshooting", "by symptom, error and cause"),
]
LEFT_OUT = ("Contracts", "Threads", "Versions")  # parts of the comment in redlock.h about its comments


def overview(reference, version):
    """Returns the page redlock(3): the smallest program, all items by group, and the rules of all functions."""
    out = [f'.TH redlock 3 "" "redlock {version}" "redlock reference"', ".nh", ".ad l", ".SH NAME",
           "redlock \\- locks on a majority of independent Redis servers, for C", ".SH SYNOPSIS", ".nf",
           ".B #include <redlock/redlock.h>", ".PP", ".B cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs redlock)", ".fi",
           ".SH DESCRIPTION",
           prose("A client has a connection to each server. A lock is held while a majority of the servers has its key, until "
                 "its deadline. It can be lost while it is held: call redlock_lock_check() before each effect that must not "
                 "happen twice."), ".PP",
           prose("The smallest program. `redlock sandbox -- ./program` runs it with five temporary servers:"),
           ".PP", *verbatim(SMALLEST.split("\n")), ".SH FUNCTIONS AND TYPES"]  # fmt: skip
    for title, (text, items) in reference.groups.items():
        out += [f".SS {title}"]
        out += block(text) if text and title not in headers.ADAPTERS.values() else []
        out += entries([(shown_name(item), sentence(item.brief)) for item in items])
    out += [".SH THREADS"]
    for rule in THREADS:
        out += [".IP \\(bu 2", prose(rule)]
    for title, text in conventions(reference):
        out += [f".SH {title.upper()}", *block(text)]
    out += [".SH DOCUMENTS", "They are in the directory docs of the sources. Packages of them use /usr/share/doc/redlock.",
            *entries([(f"{name}.md", sentence(text)) for name, text in DOCUMENTS])]  # fmt: skip
    out += [".SH SEE ALSO", "\\fBredlock_error\\fR(3), \\fBredlock.hpp\\fR(3), \\fBredlock_adapters\\fR(3), \\fBredlock\\fR(1)"]
    return "\n".join(out) + "\n"


def shown_name(item):
    """Returns what the overview shows as name of an item: with the section of its page, or with its value."""
    if item.kind == "constant":
        return f"{item.name} ({item.value})"
    return item.name if item.kind == "handle" else f"{item.name}(3)"


def conventions(reference):
    """Returns [(title, text)] of the rules that hold for all functions, but those about threads."""
    return [(title, text) for title, text in sections(reference.overview) if title and title not in LEFT_OUT]


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
    if entity.code and entity.declarations[0].startswith("enum "):
        out += [".PP", *verbatim(entity.code.split("\n"))]
    elif entity.code:
        found = declarations.members(entity.code)
        out += [".PP", *verbatim([declaration for declaration, _ in found])]
        out += entries([(declaration, sentence(text)) for declaration, text in found if text])
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
            "\\fBredlock\\fR(3), \\fBredlock_adapters\\fR(3)"]  # fmt: skip
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
                 "header, of which nothing has to be linked but the event loop."), ".PP",
           prose("If redlock_process() fails, the adapter stops polling. That happens in a process that fork() has made, "
                 "where redlock_process() returns REDLOCK_EFORKED."), ".PP",
           prose("Such a child process shares the descriptors of the event loop with its parent. It must not run or close the "
                 "loop or detach an adapter of it before it has made the loop its own: with uv_loop_fork(), event_reinit() or, "
                 "for Asio, notify_fork(). With GLib and sd-event, which have no such function, a child leaves loop and "
                 "adapter alone.")]  # fmt: skip
    for title, _, text, items in groups:
        out += [f".SH {title}", *block(text), ".PP", ", ".join(f"\\fB{item.name}\\fR(3)" for item in items) + "."]
    out += [".SH Adapter for Asio", *block(asio.overview)]
    for entity in asio.entities:
        out += [".PP", *class_lines(entity)]
    out += [".SH SEE ALSO", ", ".join(f"\\fB{name}\\fR(3)" for name in
                                      ["redlock_get_fd", "redlock_process", "redlock_mode", "redlock.hpp", "redlock"])]  # fmt: skip
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
    found = {"redlock.3": overview(reference, version), "redlock.hpp.3": cpp_page(cpp["redlock.hpp"], version),
             "redlock_adapters.3": adapters(reference, cpp["asio.hpp"], version)}  # fmt: skip
    for item in reference.items.values():
        if item.kind not in ("constant", "handle"):
            found[f"{item.name}.3"] = page(item, reference, version)
    return found
