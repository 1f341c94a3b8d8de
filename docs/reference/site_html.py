# SPDX-License-Identifier: MIT
"""Writes the reference as one page of HTML, with an index by group, for light and dark screens."""

import re
from html import escape

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
dd { margin: 0 0 .4rem 1.5rem } .text { white-space: pre-line } .soft { color: var(--soft) } td { padding: .1rem 1rem .1rem 0; vertical-align: top }
"""


def linked(text, reference):
    """Returns a text as HTML with links to the items that it names."""

    def link(word):
        name = word[1]
        return f'<a href="#{name}"><code>{word[0]}</code></a>' if name in reference.items else f"<code>{word[0]}</code>"

    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text, quote=False))
    return re.sub(r"(?<![\w#\">])((?:redlock|REDLOCK)_\w+)(?:\(\))?", link, text)


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
    for text in item.paragraphs:
        if isinstance(text, str):
            out.append(f"<p>{linked(text, reference)}</p>")
        else:
            out.append("<pre>" + escape("\n".join(text)) + "</pre>")
    if item.kind in ("function", "callback"):
        rows = [(name, pages.sentence(text, item)) for name, text in item.explained(reference.blocking_of(item)) if text]
        out.append("<h4>Parameters</h4>" + definitions(rows, reference) if rows else "")
        result = " ".join(pages.result_rows(item))
        out.append(f"<h4>Return value</h4><p>{linked(result, reference)}</p>" if result else "")
        out.append("<h4>Errors</h4>" + definitions(pages.failure_rows(item), reference) if item.errors else "")
    mark = f"Threads: {pages.MARKS[item.mark]} " if item.mark else ""
    out.append(f'<p class="soft">{escape(mark)}Since {item.since}. Header: redlock/{item.header}.</p></section>')
    return "".join(out)


def site(reference, version):
    """Returns the whole page."""
    out = [f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
           f"<title>redlock {version}: reference</title><style>{STYLE}</style></head><body>"
           f"<h1>redlock {version}: reference of the C interface</h1>"]  # fmt: skip
    for title, text in pages.sections(reference.overview):
        out.append(f"<h4>{escape(title)}</h4>" if title else "")
        out.append(f"<div class=\"text\">{linked(text, reference)}</div>")
    out.append("<h2>Index</h2>")
    for title, (_, items) in reference.groups.items():
        rows = "".join(f'<tr><td><a href="#{item.name}"><code>{item.name}</code></a></td>'
                       f"<td>{linked(pages.sentence(item.brief), reference)}</td></tr>" for item in items)  # fmt: skip
        out.append(f"<h4>{escape(title)}</h4><table>{rows}</table>")
    out.append("<h2>All errors</h2>")
    out.append(definitions([(name, f"{number}: {text}.") for name, number, text in reference.error_texts], reference))
    for title, (text, items) in reference.groups.items():
        out.append(f"<h2>{escape(title)}</h2>" + (f"<p>{linked(' '.join(text.split()), reference)}</p>" if text else ""))
        out += [item_html(item, reference) for item in items]
    return "\n".join(out) + "</body></html>\n"
