# SPDX-License-Identifier: MIT
"""Draws a part of a chaos run: which client believed to hold which lock, and the faults of servers and clients."""

from xml.sax.saxutils import escape

SPAN_NS = 8 * 10**9  # length of the part
WIDTH, LEFT, RIGHT, TOP = 1200, 90, 30, 164  # of the picture, and its margins
DOWN, IMPAIRED = "#ff7b72", "#ffb03a"  # colours of faults: the target does not work meanwhile; it works
STOPPING = ("kill", "restart", "stop", "cut_", "client_kill", "client_stop")  # how kinds begin that have the colour DOWN
# Kinds of clients by the first letter of their names: what the legend says, and the colours of their first and second client.
KINDS = {
    "c": ("redlock run", "#fdf0a8", "#d9bf3c"),
    "e": ("embedded mode", "#bfe8b4", "#63b45a"),
    "f": ("another Redlock client", "#d3d7db", "#9aa1a8"),
    "h": ("hybrid mode", "#bfe1f8", "#5aa9de"),
    "t": ("threaded mode", "#edcdf5", "#bd82cf"),
}
UNKNOWN = ("", "#e6dccb", "#b59e7a")  # a name with another letter
LETTER = 0.62  # estimated width of a letter, as a share of the font size
LANE, GAP = 22, 8  # height of a row; distance between groups of rows
NODES = [str(node) for node in range(5)]
MOMENT_NS = 30 * 10**6  # width of a fault without length


class Picture:
    """An SVG of the time from `start` to `end`, drawn row by row from the top."""

    def __init__(self, start, end):
        self.start, self.end = start, end  # ns
        self.parts = []  # elements of the SVG
        self.y = TOP  # top of the present row

    def x(self, when):
        """Returns the horizontal position of a time, which is moved into the picture if it is outside."""
        share = (min(max(when, self.start), self.end) - self.start) / (self.end - self.start)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def text(self, x, y, words, size=13, anchor="start", colour="#1f2328"):
        """Adds a text. `anchor`: which point of the text is at x (start, middle, end)."""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">'
            f"{escape(words)}</text>"
        )

    def box(self, begin, end, colour, title, edge="none", inset=0):
        """Adds a rectangle for a time to the present row, smaller than the row by `inset` above and below. `title` is
        shown under the mouse pointer. Returns the position and width of the rectangle."""
        x = self.x(begin)
        width = max(self.x(end) - x, 1.2)
        self.parts.append(
            f'<rect x="{x:.1f}" y="{self.y + inset}" width="{width:.1f}" height="{LANE - 2 * inset}" '
            f'fill="{colour}" stroke="{edge}"><title>{escape(title)}</title></rect>'
        )
        return x, width

    def lane(self, words):
        """Draws the name and the line of the present row."""
        self.text(LEFT - 8, self.y + LANE * 0.7, words, anchor="end")
        self.parts.append(
            f'<line x1="{LEFT}" y1="{self.y + LANE}" x2="{WIDTH - RIGHT}" y2="{self.y + LANE}" stroke="#ddd"/>'
        )

    def heading(self, words):
        """Writes what the rows below it show, in a row of its own."""
        self.text(LEFT, self.y + LANE * 0.7, words, colour="#59636e")
        self.next()

    def next(self, gap=2):
        """Goes to the next row."""
        self.y += LANE + gap

    def svg(self):
        """Returns the SVG as a text."""
        height = self.y + 30
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" '
            f'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>'
            + "\n".join(self.parts)
            + "</svg>\n"
        )


def colour_of(name):
    """Returns the colour of a client, for SVG: the hue says its kind, light or dark whether its number is odd or even."""
    digits = "".join(letter for letter in name if letter.isdigit())
    return KINDS.get(name[:1], UNKNOWN)[2 if int(digits or 1) % 2 == 0 else 1]


def colour_of_fault(kind):
    """Returns the colour of a kind of fault, for SVG: whether the server or client works meanwhile."""
    return DOWN if kind.startswith(STOPPING) else IMPAIRED


def fits(words, size, width):
    """Returns whether a text of this font size has room in this width."""
    return len(words) * size * LETTER + 6 <= width


def draw_legend(picture, names):
    """Draws what colours and edges mean, in three rows above the scale. `names`: of the clients."""
    held = []
    for letter in sorted({name[:1] for name in names}):
        ours = [name for name in names if name[:1] == letter]
        held.append((", ".join(ours) + ": " + KINDS.get(letter, UNKNOWN)[0], [colour_of(name) for name in ours], "none"))
    edges = [("lock of several keys", ["white"], "#333"), ("overlap of two holders", ["white"], "red")]
    faults = [("the server or client does not work", [DOWN], "none"),
              ("it works, but its clock, memory or data are wrong", [IMPAIRED], "none")]  # fmt: skip
    for y, title, row in ((46, "lock held by", held), (74, "its edge", edges), (102, "fault", faults)):
        picture.text(LEFT, y + 12, title, colour="#59636e")
        x = LEFT + 94
        for words, colours, edge in row:
            for colour in colours:
                picture.parts.append(f'<rect x="{x:.1f}" y="{y}" width="18" height="14" fill="{colour}" stroke="{edge}"/>')
                x += 21
            picture.text(x + 2, y + 12, words)
            x += len(words) * 13 * LETTER * 0.85 + 22


def busiest(history):
    """Returns the start of the part with most faults, in ns."""
    starts = [fault.start for fault in history.faults] or [history.start]
    return max(starts, key=lambda begin: sum(begin <= when < begin + SPAN_NS for when in starts))


def within(begin, end, picture):
    """Returns whether a time from `begin` to `end` is visible in the picture."""
    return begin < picture.end and end > picture.start


def draw_scale(picture, origin):
    """Draws a line for each second, with the time since `origin`."""
    for second in range(0, int((picture.end - picture.start) / 1e9) + 1):
        when = picture.start + second * 10**9
        x = picture.x(when)
        picture.parts.append(
            f'<line x1="{x:.1f}" y1="{TOP - 12}" x2="{x:.1f}" y2="{picture.y}" stroke="#eee"/>'
        )
        picture.text(x, TOP - 16, f"{round((when - origin) / 1e9, 1):g} s", 12, "middle", "#59636e")


def draw_grants(picture, history, marked):
    """Draws a row for each key. A lock of several keys is in several rows, with an edge. `marked`: id() of the grants
    that get a red edge."""
    picture.heading("Each row is a key: which client held its lock. The key s0{#1} is slot 1 of the semaphore s0.")
    for key in sorted({key for grant in history.grants for key in grant.keys}):
        picture.lane(key)
        for grant in history.grants:
            if key in grant.keys and within(grant.start, grant.end, picture):
                name = grant.client.partition(".")[0]
                bad = id(grant) in marked
                edge = "#333" if len(grant.keys) > 1 else "none"
                x, width = picture.box(
                    grant.start, grant.end, colour_of(name),
                    f"{grant.client} #{grant.number} {grant.resource} {(grant.end - grant.start) / 1e6:.1f} ms"
                    + (f", fence {grant.fence}" if grant.fence else ""),
                    "red" if bad else edge, 5 if bad else 2)  # fmt: skip
                if fits(name, 12, width):
                    picture.text(x + 3, picture.y + LANE * 0.7, name, 12)
        picture.next()


def draw_faults(picture, history, targets, on_clients):
    """Draws a row for each server or client (`targets`), with its faults. `on_clients`: the targets are clients."""
    picture.heading("Each row is a client: faults of its process." if on_clients else
                    "Each row is a server: faults of the server or of its network.")  # fmt: skip
    for target in targets:
        name = f"server {target}"
        faults = [
            fault for fault in history.faults
            if fault.target == target and fault.kind.startswith("client_") == on_clients
            and within(fault.start, max(fault.end, fault.start + MOMENT_NS), picture)
        ]  # fmt: skip
        picture.lane(name if not on_clients else target)
        edges = [picture.x(fault.start) for fault in faults[1:]] + [WIDTH - RIGHT]
        for fault, room_to in zip(faults, edges):
            end = max(fault.end, fault.start + MOMENT_NS)
            x, width = picture.box(fault.start, end, colour_of_fault(fault.kind), fault.kind, inset=3)
            words = fault.kind.removeprefix("client_").replace("_", " ")
            if fits(words, 12, width):
                picture.text(x + 3, picture.y + LANE * 0.7, words, 12)
            elif fits(words, 12, room_to - x - width):
                picture.text(x + width + 3, picture.y + LANE * 0.7, words, 12)
        picture.next()


def draw(history, verdict, title):
    """Returns an SVG of the part with the first violation, or of the one with most faults."""
    start = history.start + (busiest(history) - history.start) // 10**9 * 10**9
    pairs = verdict.overlaps or [(first, second) for first, second, _ in verdict.excused]
    if verdict.overlaps:
        start = verdict.overlaps[0][1].start - SPAN_NS // 2
    picture = Picture(start, start + SPAN_NS)
    names = sorted({grant.client.partition(".")[0] for grant in history.grants})
    marked = {id(grant) for pair in pairs for grant in pair}
    picture.text(LEFT, 26, title, 16)
    draw_legend(picture, names)
    draw_grants(picture, history, marked)
    picture.next(GAP)
    draw_faults(picture, history, NODES, on_clients=False)
    picture.next(GAP)
    clients = sorted({fault.target for fault in history.faults if fault.kind.startswith("client_")})
    draw_faults(picture, history, clients, on_clients=True)
    lanes, picture.parts = picture.parts, []
    draw_scale(picture, history.start)
    picture.parts += lanes
    return picture.svg()
