# SPDX-License-Identifier: MIT
"""Draws which workers had a turn at the same time, in characters.

A column is the moment of one sale. A dot in it is a worker that had a turn at that moment, between
acquiring and releasing the lock. Several dots above each other are several workers at the same time.
With Unicode a character shows 4 workers x 2 moments (braille), otherwise 1 worker x 2 moments.
"""

# BRAILLE[y][x]: bit of the dot, to be added to U+2800.
BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def thin(moments, columns):
    """Returns at most `columns` of the moments, evenly chosen, with the first and the last one."""
    if len(moments) <= columns:
        return moments
    step = (len(moments) - 1) / (columns - 1)
    return [moments[round(i * step)] for i in range(columns)]


def grid(turns, moments, workers):
    """Returns grid[worker][column]: True if this worker had a turn at this moment."""
    rows = [[False] * len(moments) for _ in range(workers)]
    for turn in turns:
        for column, at in enumerate(moments):
            if turn.from_ns <= at <= turn.until_ns:
                rows[turn.worker - 1][column] = True
    return rows


def draw_braille(rows):
    """Returns (number of the first worker, text) for each line of four workers."""
    lines = []
    for top in range(0, len(rows), 4):
        band = rows[top : top + 4]
        width = len(band[0])
        line = ""
        for left in range(0, width, 2):
            bits = 0
            for y, row in enumerate(band):
                for x, inside in enumerate(row[left : left + 2]):
                    bits |= BRAILLE[y][x] if inside else 0
            line += chr(0x2800 + bits)
        lines.append((top + 1, line))
    return lines


def draw_ascii(rows):
    """Returns (number of the worker, text) for each worker."""

    def cell(pair):
        """Returns the character for two moments of one worker."""
        return "#" if all(pair) else "|" if any(pair) else "."

    return [
        (number, "".join(cell(row[left : left + 2]) for left in range(0, len(row), 2)))
        for number, row in enumerate(rows, 1)
    ]


def axis(width, begin_ns, end_ns, moments, marks, arrow):
    """Returns the line below the lanes: the time of the first and the last column, and an arrow below
    the first moment after each mark (at_ns, text)."""
    line = "0 s"
    for at_ns, text in marks:
        column = sum(1 for moment in moments if moment <= at_ns) // 2
        line = line.ljust(max(column, len(line) + 1)) + arrow + " " + text
    end = "%.1f s" % ((end_ns - begin_ns) / 1e9)
    return line.ljust(max(width - len(end), len(line) + 1)) + end
