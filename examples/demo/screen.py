# SPDX-License-Identifier: MIT
"""Prints whole lines, and one live line that is redrawn on a terminal and omitted elsewhere. Colours
only on a terminal and without NO_COLOR."""

import os
import shutil
import time

# Colours and styles by name, as terminal codes.
PAINT = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}
REDRAW_SECONDS = 0.05  # shortest time between two drawings of the live line


class Screen:
    """The output of the demo. `unicode`: it may contain braille."""
    def __init__(self, out):
        self.out = out
        self.terminal = out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.colour = self.terminal and not os.environ.get("NO_COLOR")
        encoding = (out.encoding or "ascii").lower().replace("-", "")
        # The font of the Linux console has no braille.
        self.unicode = encoding == "utf8" and os.environ.get("TERM") != "linux"
        self.drawn_at = 0.0

    def paint(self, name, text):
        """Returns the text in a colour of PAINT, or unchanged without colours."""
        return f"\033[{PAINT[name]}m{text}\033[0m" if self.colour else text

    def line(self, text=""):
        """Prints a whole line."""
        print(text, file=self.out, flush=True)

    def live(self, text):
        """Redraws the live line, at most every REDRAW_SECONDS."""
        if self.terminal and time.monotonic() - self.drawn_at >= REDRAW_SECONDS:
            self.drawn_at = time.monotonic()
            # A line that wraps cannot be redrawn.
            columns = shutil.get_terminal_size().columns
            print("\r\033[K" + text[: columns - 1], end="", file=self.out, flush=True)

    def settle(self, text):
        """Replaces the live line by a final one."""
        self.line(("\r\033[K" if self.terminal else "") + text)
