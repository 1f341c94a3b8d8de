# SPDX-License-Identifier: MIT
"""Writes the reference as one page of HTML, with an index by group, for light and dark screens."""

import re
from html import escape

import figures
import headers
import pages

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --code: #f6f8fa; --link: #0969da }
@media (prefers-color-scheme: dark) {
:root { --ink: #f0f6fc; --soft: #9198a1; --line: #3d444d; --code: #151b23; --link: #58a6ff } body { background: #0d1117 } }
body { color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem }
a { color: var(--link); text-decoration: none } a:hover { text-decoration: underline }
pre, code { font-family: ui-monospace, monospace; font-size: 14px }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; padding: .7rem }
section { border-top: 1px solid var(--line); margin-top: 2rem } h3 code { font-size: 18px } dt { font-weight: 600 }
dd { margin: 0 0 .4rem 1.5rem } .soft { color: var(--soft) } td { padding: .1rem 1rem .1rem 0; vertical-align: top }
"""


def linked(text, reference):
    """Returns a text as HTML with links to the items that it names."""

    def link(word):
        name = word[1]
        return f'<a href="#{name}"><code>{word[0]}</code></a>' if name in reference.items else f"<code>{word[0]}</code>"

    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text, quote=False))
    return re.sub(r"(?<![\w#\">])((?:redlock|REDLOCK)_\w+)(?:\(\))?", link, text)


def block(text, reference):
    """Returns a text as HTML: paragraphs, lists, and lines that keep their layout."""
    out = []
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", text.strip("\n")):
        for kind, part in pages.parts(paragraph.split("\n")):
            if kind == "code":
                out.append("<pre>" + escape("\n".join(part), quote=False) + "</pre>")
            elif kind == "definitions":
                out.append(definitions(part, reference))
            else:
                tag = "li" if kind == "item" else "p"
                out.append(f"<{tag}>{linked(part, reference)}</{tag}>")
    return re.sub(r"((?:<li>(?:(?!</li>).)*</li>)+)", r"<ul>\1</ul>", "".join(out), flags=re.S)


def described(paragraphs, reference):
    """Returns the paragraphs of a description."""
    return "".join(block(text if isinstance(text, str) else "\n".join(text), reference) for text in paragraphs)


def definitions(rows, reference):
    """Returns a list of terms with their texts."""
    out = []
    for term, text in rows:
        out.append(f"<dt><code>{escape(term)}</code></dt>" if term else "")
        out.append(f"<dd>{linked(text, reference)}</dd>")
    return "<dl>" + "".join(out) + "</dl>"


def item_html(item, reference):
    """Returns the section of an item."""
    out = [f'<section id="{item.name}"><h3><code>{item.name}</code></h3><pre>{escape(headers.declaration(item))}</pre>']
    out.append(described(item.paragraphs, reference))
    if item.kind in ("function", "callback"):
        rows = [(name, pages.sentence(text, item)) for name, text in item.explained(reference.blocking_of(item)) if text]
        out.append("<h4>Parameters</h4>" + definitions(rows, reference) if rows else "")
        result = " ".join(pages.result_rows(item))
        out.append(f"<h4>Return value</h4><p>{linked(result, reference)}</p>" if result else "")
        out.append("<h4>Errors</h4>" + definitions(pages.failure_rows(item), reference) if item.errors else "")
    if item.name == headers.ERRORS_ENUM:
        out.append(definitions(pages.meaning_rows(reference), reference))
    if item.name in pages.EXAMPLES:
        text, code = pages.EXAMPLES[item.name]
        out.append(f"<h4>Example</h4><p>{linked(text, reference)}</p><pre>{escape(code, quote=False)}</pre>")
    if item.name == pages.FIGURES_PAGE:
        out.append(f"<h4>Figures</h4><p>{escape(figures.ABOUT)}</p>" + definitions(figures.rows(), reference))
    mark = f"Threads: {pages.threads_of(item)} " if pages.threads_of(item) else ""
    out.append(f'<p class="soft">{escape(mark)}Since {item.since}. Header: redlock/{item.header}.</p></section>')
    return "".join(out)


def function_html(entity, reference):
    """Returns a function of C++, with its parameters and errors."""
    out = ["<pre>" + escape("\n".join(entity.declarations)) + "</pre>"]
    out.append(described(entity.paragraphs or [f"Calls {name}()." for name in entity.calls[:1]], reference))
    rows = pages.told_rows(entity)
    out.append(definitions(rows, reference) if rows else "")
    if entity.see and entity.paragraphs:
        out.append(f'<p class="soft">In C: {linked(", ".join(f"{name}()" for name in entity.see), reference)}.</p>')
    return "".join(out)


def header_html(header, title, reference):
    """Returns the part about a header for C++. The id of an entity has the name of the header in front."""
    out = [f"<h2>{escape(title)}</h2><pre>#include &lt;redlock/{header.path}&gt;</pre>"]
    for name, text in pages.sections(header.overview):
        out.append(f"<h4>{escape(name)}</h4>" if name else "")
        out.append(block(text, reference))
    for entity in header.entities:
        out.append(f'<section id="{header.name}:{entity.name}"><h3><code>redlock::{entity.name}</code></h3>')
        if pages.is_class(entity):
            is_enum = entity.declarations[0].startswith("enum ")
            out.append("" if is_enum else "<pre>" + escape(entity.declarations[0]) + "</pre>")
            out.append(described(entity.paragraphs, reference))
            out.append("<pre>" + escape(entity.code) + "</pre>" if entity.code else "")
            out += [function_html(one, reference) for one in entity.members]
        else:
            out.append(function_html(entity, reference))
        out.append("</section>")
    return "".join(out)


def index(reference, cpp, chapters):
    """Returns the index: a table for each group."""
    tables = [(title, [(item.name, item.name, item.brief) for item in items]) for title, (_, items) in reference.groups.items()]
    tables += [(title, [(f"{name}:{entity.name}", f"redlock::{entity.name}", entity.brief) for entity in cpp[name].entities])
               for name, title in chapters.items()]  # fmt: skip
    out = []
    for title, rows in tables:
        cells = "".join(f'<tr><td><a href="#{place}"><code>{name}</code></a></td>'
                        f"<td>{linked(pages.sentence(brief), reference)}</td></tr>" for place, name, brief in rows)  # fmt: skip
        out.append(f"<h4>{escape(title)}</h4><table>{cells}</table>")
    return "".join(out)


def site(reference, version, cpp):
    """Returns the whole page: the smallest program, the index, the errors, the rules of all functions, and then each item."""
    chapters = {"redlock.hpp": "C++: redlock.hpp", "asio.hpp": "Adapter for Asio"}
    out = [f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
           f"<title>redlock {version}: reference</title><style>{STYLE}</style></head><body>"
           f"<h1>redlock {version}: reference</h1><p>The smallest program:</p><pre>{escape(pages.SMALLEST, quote=False)}</pre>"
           "<pre>cc program.c $(pkg-config --cflags --libs redlock) -o program\nredlock sandbox -- ./program</pre>"]  # fmt: skip
    out += ["<h2>Index</h2>", index(reference, cpp, chapters), "<h2>All errors</h2>"]
    out.append(definitions(pages.meaning_rows(reference), reference))
    out.append("<h2>Threads</h2><ul>" + "".join(f"<li>{linked(rule, reference)}</li>" for rule in pages.THREADS) + "</ul>")
    for title, text in pages.conventions(reference):
        out.append(f"<h2>{escape(title)}</h2>" + block(text, reference))
    for title, (text, items) in reference.groups.items():
        out.append(f"<h2>{escape(title)}</h2>" + (block(text, reference) if text else ""))
        out += [item_html(item, reference) for item in items]
    out += [header_html(cpp[name], title, reference) for name, title in chapters.items()]
    return "\n".join(out) + "</body></html>\n"
