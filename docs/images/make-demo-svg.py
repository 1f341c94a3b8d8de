#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a command on a terminal of its own and draws what is then on the screen.

usage: docs/images/make-demo-svg.py OUTPUT.svg TITLE COMMAND [ARGUMENT...]

    docs/images/make-demo-svg.py docs/images/demo.svg './dev demo' examples/demo/run build

Understands what the demo sends: text, line ends, "\\r\\033[K" (the live line begins again), and the
colours of the SGR codes below. Braille characters are drawn as dots, so that the picture does not
depend on the reader's fonts. Exit status: that of the command.
"""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from xml.sax.saxutils import escape

COLUMNS, ROWS = 84, 60
CELL_W, CELL_H, PAD = 8.4, 17.0, 16
BAR_H = 30
STYLES = {
    "0": {},
    "1": {"font-weight": "bold"},
    "2": {"fill": "#8b949e"},
    "31": {"fill": "#ff7b72"},
    "32": {"fill": "#56d364"},
    "33": {"fill": "#e3b341"},
}
INK, PAPER, BAR = "#e6edf3", "#0d1117", "#21262d"
SGR = re.compile(r"\033\[([0-9;]*)m")


def run_on_terminal(command):
    """(exit status, all that the command wrote)."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.environ["PYTHONUTF8"] = "1"
        os.environ.pop("NO_COLOR", None)
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    output = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # Linux says EIO when the last writer is gone
            break
        if not data:
            break
        output += data
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), output.decode("utf-8")


def settled_lines(output):
    """The lines as they stand in the end: what a live line showed before is gone."""
    lines = output.replace("\r\n", "\n").rstrip("\n").split("\n")
    return [line.rsplit("\r\033[K", 1)[-1] for line in lines]


def runs_of(line):
    """(column, style, text) for each stretch of one style."""
    style, column, at = {}, 0, 0
    for code in list(SGR.finditer(line)) + [None]:
        text = line[at : code.start() if code else len(line)]
        if text:
            yield column, style, text
            column += len(text)
        if code:
            style = STYLES[code.group(1) or "0"]
            at = code.end()


def attributes(style):
    return "".join(f' {name}="{value}"' for name, value in style.items())


def dots_of(text, left, top, style):
    """Braille cells as one path of small round dots, 2 x 4 to a cell."""
    path = ""
    for index, char in enumerate(text):
        bits = ord(char) - 0x2800
        for bit in range(8):
            if bits >> bit & 1:
                row = bit % 3 if bit < 6 else 3
                column = bit // 3 if bit < 6 else bit - 6
                x = left + index * CELL_W + (column + 0.5) * CELL_W / 2
                y = top + (row + 0.5) * CELL_H / 4
                path += f"M{x:.1f} {y:.1f}h0"
    if not path:
        return ""
    colour = style.get("fill", INK)
    return f'<path d="{path}" stroke="{colour}" stroke-width="3.2" stroke-linecap="round"/>'


def draw(title, lines):
    width = COLUMNS * CELL_W + 2 * PAD
    height = BAR_H + len(lines) * CELL_H + 2 * PAD
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-size="14" fill="{INK}"'
        ' font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\','
        ' monospace" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
        f'<path d="M0 {BAR_H}V8a8 8 0 0 1 8-8H{width - 8:.0f}a8 8 0 0 1 8 8V{BAR_H}z"'
        f' fill="{BAR}"/>',
        f'<text x="{PAD}" y="{BAR_H - 10}">$ {escape(title)}</text>',
    ]
    for number, line in enumerate(lines):
        top = BAR_H + PAD + number * CELL_H
        for column, style, text in runs_of(line):
            left = PAD + column * CELL_W
            if all("\u2800" <= char <= "\u28ff" for char in text):
                svg.append(dots_of(text, left, top, style))
                continue
            # Each word at its own place: a font of another width cannot break the columns.
            for word in re.finditer(r"\S+(?: \S+)*", text):
                x = left + word.start() * CELL_W
                length = len(word.group()) * CELL_W
                svg.append(
                    f'<text x="{x:.1f}" y="{top + CELL_H * 0.76:.1f}"{attributes(style)}'
                    f' textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs">'
                    f"{escape(word.group())}</text>"
                )
    svg.append("</svg>")
    return "\n".join(line for line in svg if line) + "\n"


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    path, title, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    status, output = run_on_terminal(command)
    if status == 0:
        with open(path, "w", encoding="utf-8") as file:
            file.write(draw(title, settled_lines(output)))
    else:
        sys.stderr.write(output)
    return status


if __name__ == "__main__":
    sys.exit(main())
