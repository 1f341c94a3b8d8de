#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the four concept diagrams of the documents as SVG.

usage: docs/images/make-concepts.py [DIRECTORY]

quorum      one attempt on five servers, two of them down
lease       a lock from acquire over an extension to ENDANGERED and LOST
fence       a paused writer, without and with a fencing token
deployment  applications and five servers in three failure domains

Each picture has its own background and two palettes, so that it is readable on light and dark pages. Positions are
pixels of the picture.
"""

import os
import sys
from xml.sax.saxutils import escape

WIDTH = 860  # of all pictures, in pixels

STYLE = """
svg { font-family: 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif; font-size: 14px }
.page { fill: #ffffff } .ink { fill: #1f2328 } .soft { fill: #59636e } .line { stroke: #59636e; fill: none }
.grid { stroke: #d1d9e0 } .plain { fill: #f6f8fa; stroke: #59636e } .zone { fill: #f6f8fa; stroke: #9aa4ae }
.good { fill: #dafbe1; stroke: #1a7f37 } .warn { fill: #fff8c5; stroke: #9a6700 } .bad { fill: #ffebe9; stroke: #cf222e }
.info { fill: #ddf4ff; stroke: #0969da } .goodink { fill: #116329 } .warnink { fill: #7d4e00 } .badink { fill: #a40e26 }
.infoink { fill: #0550ae } .goodline { stroke: #1a7f37 } .badline { stroke: #cf222e } .infoline { stroke: #0969da }
.warnline { stroke: #9a6700 }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } .ink { fill: #f0f6fc } .soft { fill: #9198a1 } .line { stroke: #9198a1 }
.grid { stroke: #3d444d } .plain { fill: #151b23; stroke: #9198a1 } .zone { fill: #151b23; stroke: #656c76 }
.good { fill: #12341d; stroke: #3fb950 } .warn { fill: #3b2e0b; stroke: #d29922 } .bad { fill: #461a1c; stroke: #f85149 }
.info { fill: #10294a; stroke: #58a6ff } .goodink { fill: #7ee787 } .warnink { fill: #e3b341 } .badink { fill: #ff9492 }
.infoink { fill: #9bcbff } .goodline { stroke: #3fb950 } .badline { stroke: #f85149 } .infoline { stroke: #58a6ff }
.warnline { stroke: #d29922 }
}
"""

# The markers of arrows, one for each colour of a line.
MARKERS = {"line": "soft", "goodline": "goodink", "badline": "badink", "infoline": "infoink"}


class Picture:
    """An SVG picture, made of elements in the order in which they are drawn."""

    def __init__(self, title, height):
        self.title, self.height = title, height
        self.parts = []

    def text(self, x, y, words, kind="ink", anchor="start", size=14, bold=False):
        """Writes a line of text. anchor: which point of the text is at x (start, middle, end)."""
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}"{weight}>'
                          f"{escape(words)}</text>")  # fmt: skip

    def box(self, x, y, width, height, kind="plain", lines=(), dashed=False, size=14):
        """Draws a rectangle with lines of text in its middle."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
                          f'stroke-width="1.5"{dash}/>')  # fmt: skip
        ink = {"good": "goodink", "warn": "warnink", "bad": "badink", "info": "infoink"}.get(kind, "ink")
        step = size + 4
        first = y + height / 2 - step * (len(lines) - 1) / 2 + size * 0.35
        for index, line in enumerate(lines):
            self.text(x + width / 2, first + index * step, line, ink, "middle", size)

    def arrow(self, x1, y1, x2, y2, kind="line", dashed=False):
        """Draws an arrow from the first point to the second."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke-width="1.6"{dash} '
                          f'marker-end="url(#{kind})"/>')  # fmt: skip

    def rule(self, x1, y1, x2, y2, kind="line", dashed=False):
        """Draws a line without a head."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke-width="1.3"{dash}/>')

    def cross(self, x, y, size=7):
        """Draws a cross for a failure around a point."""
        for sign in (1, -1):
            self.parts.append(f'<line class="badline" x1="{x - size}" y1="{y - sign * size}" x2="{x + size}" '
                              f'y2="{y + sign * size}" stroke-width="2.5"/>')  # fmt: skip

    def svg(self):
        """Returns the text of the file."""
        markers = "".join(
            f'<marker id="{line}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path class="{ink}" d="M0,0 L10,5 L0,10 z"/></marker>'
            for line, ink in MARKERS.items()
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
            f'viewBox="0 0 {WIDTH} {self.height}" role="img" aria-label="{escape(self.title)}">\n'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style><defs>{markers}</defs>\n"
            f'<rect class="page" width="{WIDTH}" height="{self.height}" rx="8"/>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def quorum():
    """Returns the picture of one attempt with two servers down."""
    picture = Picture("One attempt on five servers, two of them down: three grants are a quorum", 424)
    picture.box(24, 110, 150, 84, "info", ["client", "token 7f3a…"])
    for index in range(5):
        y = 24 + index * 54
        down = index >= 3
        picture.box(500, y, 120, 40, "bad" if down else "good", [f"server {index + 1}"], dashed=down)
        start = 122 + index * 15
        if down:
            picture.rule(178, start, 466, y + 20, "badline", dashed=True)
            picture.cross(476, y + 20, 6)
            picture.text(640, y + 25, ["stopped: no reply", "unreachable: no reply"][index - 3], "badink")
        else:
            picture.arrow(178, start, 496, y + 20, "line")
            picture.text(640, y + 25, "OK: a grant", "goodink")
    picture.text(24, 34, "SET invoice:42 7f3a… NX PX 10000", "ink", size=14, bold=True)
    picture.text(24, 54, "to all servers at once", "soft")
    picture.text(24, 222, "3 grants of 5 servers:", "goodink", bold=True)
    picture.text(24, 242, "a quorum. The lock is held;", "goodink")
    picture.text(24, 262, "the call returns without the others.", "goodink")
    left, right, y = 24, 836, 344
    picture.box(left, y, 70, 34, "plain", ["reply"], size=13)
    picture.box(left + 70, y, right - left - 150, 34, "good", ["validity: the holder may rely on the lock"], size=13)
    picture.box(right - 80, y, 80, 34, "warn", ["drift"], size=13)
    picture.text(left, y - 10, "first byte sent", "soft", size=13)
    picture.text(right, y - 10, "first byte sent + TTL", "soft", "end", 13)
    picture.text((left + right) / 2, y - 10, "not to scale", "soft", "middle", 13)
    picture.text(left, y + 56, "time until the third grant arrived", "soft", size=13)
    picture.text(right, y + 56, "allowance for clocks that run at different rates", "soft", "end", 13)
    return picture


def lease():
    """Returns the picture of a lock from acquire to LOST."""
    picture = Picture("A lock from acquire over an extension to ENDANGERED and LOST", 390)
    now = [40, 126, 300, 470, 640, 726, 780]  # acquire, acquired, extension, failed extension, endangered, lost, keys gone
    picture.text(40, 30, "The lease of one lock, TTL 10 s", "ink", bold=True, size=15)
    picture.text(836, 30, "not to scale", "soft", "end", 13)
    picture.text(40, 64, "calls and events", "soft", size=13)
    y = 120
    for x, first, second, kind in (
        (40, "acquire", "", "ink"), (126, "returns 0", "", "goodink"), (300, "extension", "granted", "goodink"),
        (470, "extension", "no quorum", "badink"), (640, "ENDANGERED", "", "warnink"), (726, "LOST", "", "badink"),
    ):  # fmt: skip
        picture.text(x, y - 34, first, kind, "middle" if x > 60 else "start", 13, bold=True)
        if second:
            picture.text(x, y - 18, second, kind, "middle", 13)
        picture.arrow(x, y - 12, x, y + 6, "line")
    picture.box(now[0], y + 10, now[1] - now[0], 40, "plain", ["attempt"], size=13)
    picture.box(now[1], y + 10, now[4] - now[1], 40, "good", ["HELD"])
    picture.box(now[4], y + 10, now[5] - now[4], 40, "warn", ["at risk"], size=13)
    picture.box(now[5], y + 10, 836 - now[5], 40, "bad", ["not held"], size=13)
    for x in (510, 550, 590):
        picture.arrow(x, y - 12, x, y + 6, "badline")
    picture.text(550, y - 18, "retries", "badink", "middle", 13)

    picture.text(40, 206, "keys on a majority of the servers", "soft", size=13)
    picture.box(70, 214, 780 - 70, 26, "info", ["SET invoice:42 … NX PX 10000; the extension gives the keys their TTL again"], size=13)
    picture.text(40, 276, "deadline", "soft", size=13)
    picture.rule(126, 290, 496, 290, "line")
    picture.rule(496, 282, 496, 298, "line")
    picture.text(300, 284, "deadline of the acquisition", "soft", "middle", 13)
    picture.rule(300, 322, 726, 322, "infoline")
    picture.rule(726, 314, 726, 330, "infoline")
    picture.text(513, 316, "deadline of the extension", "infoink", "middle", 13)
    picture.rule(now[5], 180, now[5], 340, "badline", dashed=True)
    picture.text(40, 360, "LOST comes at the deadline, before the keys expire: another client cannot hold the lock yet.", "ink", size=13)
    picture.text(40, 378, "It needs no reply from any server. ENDANGERED comes a tenth of the TTL earlier.", "ink", size=13)
    return picture


def fence_half(picture, top, fenced):
    """Draws one half of the picture of a paused writer: without (`fenced` false) or with a fencing token."""
    title = "With a fence" if fenced else "Without a fence"
    picture.text(24, top + 22, title, "ink", bold=True, size=15)
    lanes = {"client A": top + 58, "client B": top + 158, "database": top + 218}
    for name, y in lanes.items():
        picture.text(24, y + 5, name, "ink")
        picture.rule(110, y, 836, y, "grid")
    a, b, base = lanes["client A"], lanes["client B"], lanes["database"]
    number = (lambda value: f", fence {value}") if fenced else (lambda value: "")
    picture.box(120, a - 17, 160, 34, "good", ["holds the lock" + number(33)], size=13)
    picture.box(280, a - 17, 380, 34, "plain", ["paused: stopped, swapped out, a frozen virtual machine"], dashed=True, size=13)
    picture.box(660, a - 17, 96, 34, "bad", ["continues"], size=13)
    picture.rule(400, a + 17, 400, b - 17, "badline", dashed=True)
    picture.text(392, a + 56, "A's lock expires", "badink", "end", 13)
    picture.box(420, b - 17, 190, 34, "good", ["holds the lock" + number(34)], size=13)
    picture.arrow(540, b + 17, 540, base - 14, "goodline")
    picture.box(478, base - 14, 124, 28, "good", ["write accepted"], size=13)
    picture.arrow(708, a + 17, 708, base - 14, "badline")
    if fenced:
        picture.box(626, base - 14, 210, 28, "good", ["write rejected: 33 < 34"], size=13)
    else:
        picture.box(626, base - 14, 210, 28, "bad", ["accepted: B's write is lost"], size=13)


def fence():
    """Returns the picture of a paused writer, without and with a fence."""
    picture = Picture("A paused writer, without and with a fencing token", 560)
    fence_half(picture, 8, fenced=False)
    picture.rule(24, 272, 836, 272, "grid")
    fence_half(picture, 280, fenced=True)
    picture.text(24, 540, "UPDATE … SET …, fence = 33 WHERE id = … AND fence <= 33", "soft", size=13)
    picture.text(836, 540, "time →", "soft", "end", 13)
    return picture


def deployment():
    """Returns the picture of applications and servers in failure domains."""
    picture = Picture("Five servers in three failure domains, used by applications on other machines", 410)
    zones = [("zone 1", 24, 2), ("zone 2", 306, 2), ("zone 3", 588, 1)]
    number = 1
    for index, (name, x, count) in enumerate(zones):
        picture.box(x, 18, 248, 330, "zone")
        picture.text(x + 14, 42, name, "soft", bold=True)
        picture.box(x + 44, 60, 160, 62, "info", [["web service", "cron job", "worker"][index], ["libredlock", "redlock run", "libredlock"][index]])
        for server in range(count):
            middle = x + 124 + (server * 112 - 56 if count == 2 else 0)
            picture.box(middle - 48, 250, 96, 58, "good", [f"server {number}", "Redis"])
            number += 1
    middles = [92, 204, 374, 486, 712]
    for start in (148, 430, 712):
        for middle in middles:
            picture.arrow(start, 122, middle, 246, "line")
    picture.text(24, 374, "Each client asks every server, and needs three of the five.", "ink")
    picture.text(24, 394, "Any one zone may fail. The servers do not know each other: no replication, no Sentinel, no Cluster.", "ink")
    return picture


def main():
    """Draws all pictures into the directory of the first argument, or the one of this script."""
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for draw in (quorum, lease, fence, deployment):
        path = os.path.join(directory, f"{draw.__name__}.svg")
        with open(path, "w", encoding="utf-8") as out:
            out.write(draw().svg())
        print(path)


if __name__ == "__main__":
    main()
