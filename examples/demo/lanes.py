# SPDX-License-Identifier: MIT
"""Who was inside when: a picture in characters.

A column is one moment, the moment of a sale; a dot in it is a worker that was inside then, between
taking the lock (or not) and giving it back. Several dots above each other are several workers
inside at once. With Unicode a character holds 4 workers x 2 moments (braille), otherwise 1 x 2.
"""

# Bits of U+2800 + bits, by row and by column.
BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def thin(moments, columns):
    """Not more than `columns` of them, evenly chosen, first and last included."""
    if len(moments) <= columns:
        return moments
    step = (len(moments) - 1) / (columns - 1)
    return [moments[round(i * step)] for i in range(columns)]


def grid(turns, moments, workers):
    """grid[worker][column]: was this worker inside at this moment?"""
    rows = [[False] * len(moments) for _ in range(workers)]
    for turn in turns:
        for column, at in enumerate(moments):
            if turn.from_ns <= at <= turn.until_ns:
                rows[turn.worker - 1][column] = True
    return rows


def draw_braille(rows):
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
    def cell(pair):
        return "#" if all(pair) else "|" if any(pair) else "."

    return [
        (number, "".join(cell(row[left : left + 2]) for left in range(0, len(row), 2)))
        for number, row in enumerate(rows, 1)
    ]


def axis(width, begin_ns, end_ns, moments, marks, arrow):
    """The line below the lanes: the time of the first and the last column, and an arrow under the
    first moment after each mark, (at_ns, text)."""
    line = "0 s"
    for at_ns, text in marks:
        column = sum(1 for moment in moments if moment <= at_ns) // 2
        line = line.ljust(max(column, len(line) + 1)) + arrow + " " + text
    end = "%.1f s" % ((end_ns - begin_ns) / 1e9)
    return line.ljust(max(width - len(end), len(line) + 1)) + end
