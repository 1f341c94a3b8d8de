# SPDX-License-Identifier: MIT
"""Draws pictures of a JSON document of redlock-bench with gnuplot, as SVG and PNG.

    plots.py RESULT.json DIRECTORY

percentiles            time of a pair by percentile, library and baseline, 1 to 256 in flight
throughput             pairs per second by the number in flight, and the limit of the servers
stalled                a stall of the servers as an open loop and as a closed loop measure it
time-SCENARIO          latency over time around a fault
Leaves out pictures without data in the document. Of several runs, throughput shows the median and the other
pictures show the first.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys

LIBRARY, BASELINE, THIRD, GREY = "#0072b2", "#d55e00", "#009e73", "#666666"
# Numbers of locks in flight of the scenarios embedded-N and threaded-N.
DEPTHS = (1, 8, 64, 256)
SHADES = {1: "#0b3c5d", 8: "#0072b2", 64: "#009e73", 256: "#cc79a7"}

# gnuplot settings of all pictures.
HEAD = """
set encoding utf8
set datafile missing "-"
set border 3 lc rgb "#666666"
set tics nomirror out textcolor rgb "#222222"
set grid lc rgb "#dddddd" lt 1
set key noenhanced
set title noenhanced
set rmargin 5
set label noenhanced
"""

# gnuplot settings of a picture by percentile: x is 1 / (1 - share), see curve().
PERCENT_AXIS = """
set logscale x
set xrange [1:10000]
set xtics ("0" 1, "50" 2, "90" 10, "99" 100, "99.9" 1000, "99.99" 10000)
set xlabel "percentile (%)"
set logscale y
set format y "%g"
set ylabel "time of acquire and release (ms)"
"""


class Picture:
    """One picture: gnuplot settings, and series of data."""

    def __init__(self, name, title, settings):
        self.name = name
        self.lines = [HEAD, settings, f'set title "{title}"']
        self.series = []

    def add(self, rows, style, label=None, columns="1:2"):
        """Adds a series. rows: tuples of numbers; None is a gap."""
        block = f"$data{len(self.series)}"
        self.lines.append(f"{block} << EOD")
        self.lines += [" ".join("-" if value is None else f"{value:.6g}" for value in row) for row in rows]
        self.lines.append("EOD")
        title = f'title "{label}"' if label else "notitle"
        self.series.append(f"{block} using {columns} with {style} {title}")

    def script(self):
        """Returns the gnuplot script of the picture."""
        return "\n".join(self.lines) + "\nplot " + ", \\\n  ".join(self.series) + "\n"

    def draw(self, directory):
        """Draws the picture as SVG and PNG and prints their paths."""
        for terminal, ending in (("svg size 900,540 dynamic background rgb 'white' font 'sans,14'", "svg"),
                                 ("pngcairo size 1200,720 font 'sans,15' background rgb 'white'", "png")):  # fmt: skip
            path = os.path.join(directory, f"{self.name}.{ending}")
            script = f"set terminal {terminal}\nset output '{path}'\n" + self.script() + "unset output\n"
            subprocess.run(["gnuplot"], input=script, text=True, check=True)
            print(path)


def first_run(document):
    """Returns the results of the first run by scenario."""
    return {result["scenario"]: result for result in document["results"] if result["run"] == 1}


def side(result, name):
    """Returns the side of a result with this name, or None."""
    for one in result["sides"]:
        if one["side"] == name:
            return one
    return None


def curve(one):
    """Returns the points of a percentile curve. The axis is logarithmic in 100 % - p, so the maximum has no place."""
    return [(1 / (1 - share / 100), us / 1000) for share, us in one["pair_curve"] if share < 100]


def where(document):
    """Returns the subtitle: servers and machine."""
    environment = document["environment"]
    return f"{environment['servers']} x {environment['server']}, {environment['cpu']}, {environment['cpus']} CPUs"


def percentiles(document):
    """Returns the picture of times by percentile, None without data."""
    results = first_run(document)
    depths = [depth for depth in DEPTHS if f"embedded-{depth}" in results]
    if not depths:
        return None
    picture = Picture("percentiles", f"Uncontended, closed loop, by locks in flight\\n{where(document)}",
                      PERCENT_AXIS + "set rmargin 33\nset key outside right center Left reverse\n")  # fmt: skip
    for depth in depths:
        for name, look in (("library", "lw 2.5"), ("baseline", "lw 1.5 dt 2")):
            one = side(results[f"embedded-{depth}"], name)
            if one is not None:
                picture.add(curve(one), f'lines lc rgb "{SHADES[depth]}" {look}', f"{name}, {depth} in flight")
    return picture


def rates(document, kind, name):
    """Returns (depth, median of the runs in thousand pairs per second) of one side."""
    rows = []
    for depth in DEPTHS:
        values = [
            one["pairs_per_s"] / 1000
            for result in document["results"]
            if result["scenario"] == f"{kind}-{depth}"
            for one in result["sides"]
            if one["side"] == name
        ]
        if values:
            rows.append((depth, statistics.median(values)))
    return rows


def throughput(document):
    """Returns the picture of rates by the number in flight, None without data."""
    lines = [("library, one thread (poll)", "embedded", "library", LIBRARY, 7),
             ("library, a thread for each lock", "threaded", "library", THIRD, 5),
             ("baseline: hand-written over hiredis, one thread", "embedded", "baseline", BASELINE, 9)]  # fmt: skip
    picture = Picture("throughput", f"Uncontended, closed loop\\n{where(document)}",
                      'set logscale x 2\nset xrange [0.8:320]\nset xtics (1, 8, 64, 256)\nset yrange [0:*]\n'
                      'set xlabel "locks in flight"\nset ylabel "acquired and released (thousands per second)"\n'
                      "set bmargin 9\nset key at screen 0.5,0.02 bottom center maxcols 1 Left reverse\n")  # fmt: skip
    for label, kind, name, colour, point in lines:
        rows = rates(document, kind, name)
        if rows:
            picture.add(rows, f'linespoints lc rgb "{colour}" lw 2.5 pt {point} ps 1.2', label)
    if not picture.series:
        return None
    limits = [result["figures"]["servers_pairs_per_s"] / 1000 for result in document["results"]
              if "servers_pairs_per_s" in result.get("figures", {})]  # fmt: skip
    if limits:
        limit = statistics.median(limits)
        picture.add([(0.8, limit), (320, limit)], f'lines lc rgb "{GREY}" lw 2 dt 3',
                    "the servers alone (redis-benchmark, pipelined)")  # fmt: skip
    return picture


def stalled(document):
    """Returns the picture of the scenario "stalled", None without data."""
    result = first_run(document).get("stalled")
    if result is None:
        return None
    picture = Picture("stalled", f"Three of five servers are stopped for a while\\n{where(document)}",
                      PERCENT_AXIS + "set key top left Left reverse\n")  # fmt: skip
    opened, closed = side(result, "fault"), side(result, "closed")
    rate = result["figures"]["rate_per_s"]
    picture.add(curve(opened), f'lines lc rgb "{LIBRARY}" lw 2.5', f"open loop, {rate:g} per second, from the intended start")
    picture.add(curve(closed), f'lines lc rgb "{BASELINE}" lw 2.5 dt 2', "closed loop, one caller: does not show the stall")
    return picture


def over_time(document, name):
    """Returns the picture of a scenario with a timeline: median, maximum and failures by intended start."""
    result = first_run(document)[name]
    timeline = result["timeline"]
    rows = [(start / 1000, p50 or None, p99 or None, top or None) for start, _, _, p50, p99, top in timeline["bins"]]
    if not any(row[3] for row in rows):
        return None  # all operations have failed: no time to show
    step = rows[1][0] - rows[0][0]
    highest = max(row[3] for row in rows if row[3])
    lowest = min(row[1] for row in rows if row[1])
    top = highest * 6  # room for the marks' texts
    rate = result["figures"]["rate_per_s"]
    settings = [
        f"set xrange [0:{rows[-1][0] + step:.2f}]",
        "set logscale y",
        'set format y "%g"',
        f"set yrange [{lowest / 2:.6g}:{top:.6g}]",
        'set xlabel "intended start (s)"',
        'set ylabel "time of acquire and release (ms)"',
        "set bmargin 6",
        "set key at screen 0.5,0.02 bottom center maxrows 1 Left reverse",
    ]
    for at, text in timeline["marks"]:
        settings.append(f'set arrow from first {at / 1000:.3f}, graph 0 to first {at / 1000:.3f}, graph 1 nohead '
                        f'lc rgb "{BASELINE}" lw 1.5 dt 2')  # fmt: skip
        settings.append(f'set label "{text}" at first {at / 1000:.3f}, graph 0.955 offset char 0.6,0 '
                        f'textcolor rgb "{BASELINE}"')  # fmt: skip
    picture = Picture(f"time-{name}", f"{name}: open loop, {rate:g} per second\\n{where(document)}", "\n".join(settings))
    every = f"each {step * 1000:.0f} ms"
    picture.add([(row[0] + step / 2, row[3]) for row in rows], f'points lc rgb "{GREY}" pt 7 ps 0.6', f"max of {every}")
    picture.add([(row[0] + step / 2, row[1]) for row in rows], f'lines lc rgb "{LIBRARY}" lw 2.5', f"median of {every}")
    failed = [(row[0] / 1000 + step / 2, top / 3) for row in timeline["bins"] if row[2]]
    if failed:
        picture.add(failed, f'points lc rgb "{BASELINE}" pt 2 ps 1.2', "some failed")
    return picture


def main():
    """Draws all pictures for which the document has data."""
    if len(sys.argv) != 3:
        sys.exit("usage: plots.py RESULT.json DIRECTORY")
    if shutil.which("gnuplot") is None:
        sys.exit("plots: no pictures: gnuplot is missing. On Debian: apt-get install gnuplot-nox")
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            document = json.load(file)
        if document["schema"] != "redlock.bench/1":
            raise ValueError(f"its schema is {document['schema']}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"plots: no pictures: {sys.argv[1]} is not a JSON document of redlock-bench: {error}")
    os.makedirs(sys.argv[2], exist_ok=True)
    pictures = [percentiles(document), throughput(document), stalled(document)]
    pictures += [over_time(document, name) for name, result in first_run(document).items() if "timeline" in result]
    for picture in pictures:
        if picture is not None:
            picture.draw(sys.argv[2])


if __name__ == "__main__":
    main()
