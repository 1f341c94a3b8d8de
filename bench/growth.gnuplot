# SPDX-License-Identifier: MIT
# Draws six pictures of the *.dat files of growth.py in the current directory. A series without a file is left out.
# The background is white also on dark pages. Colours and line widths are those of plots.py.
there(name) = int(system("test -s " . name . ".dat && echo 1 || echo 0"))

CLIENT = "#0072b2"
SERVERS = "#d55e00"
OTHER = "#009e73"

do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 1400, 1500 font "sans,15" background rgb "white"
        set output "growth.png"
    } else {
        set terminal svg size 1000, 1140 dynamic background rgb "white" font "sans,14"
        set output "growth.svg"
    }
    set multiplot layout 3, 2 title "Growth with servers, held locks, threads and processes" font ",17"
    set border 3 lc rgb "#666666"
    set tics nomirror out textcolor rgb "#222222"
    set grid lc rgb "#dddddd" lt 1
    set key outside top center horizontal maxrows 1 Left reverse samplen 1.5 width -2
    set yrange [0:*]
    set style data linespoints
    set pointsize 0.8
    set style line 1 lc rgb CLIENT lw 2 pt 7
    set style line 2 lc rgb SERVERS lw 2 pt 5
    set style line 3 lc rgb OTHER lw 2 pt 9
    set format y "%.0f"
    set lmargin 10
    set rmargin 9

    if (there("nodes")) {
        set title "Servers, 64 locks in flight"
        set border 11 lc rgb "#666666"
        set xlabel "servers"
        set ylabel "processor time per pair (µs)"
        set y2label "commands per pair"
        set y2range [0:20]
        set y2tics
        plot "nodes.dat" using 1:5 title "client" ls 1, \
             "" using 1:6 title "all servers" ls 2, \
             "" using 1:7 axes x1y2 title "commands (right)" ls 3 dt 2
        unset y2tics
        unset y2label
        set border 3 lc rgb "#666666"
    }
    set logscale x
    if (there("held")) {
        set title "Held locks: memory"
        set xlabel "held locks, extended automatically"
        set ylabel "bytes per lock"
        set yrange [0:4096]
        set xrange [5:20000]
        plot "held.dat" using 1:($1 < 10 ? NaN : $2) title "bytes per lock" ls 1, \
             1280 title "bound: 1280 bytes" with lines lc rgb "#666666" lw 2 dt 2
        set yrange [0:*]
        set xrange [*:*]
        set title "Held locks: extensions"
        set border 11 lc rgb "#666666"
        set ylabel "client, µs per extension"
        set y2label "commands per read of a server"
        set y2range [0:*]
        set y2tics
        set logscale y
        set yrange [1:*]
        plot "held.dat" using 1:8 title "client" ls 1, \
             "" using 1:9 axes x1y2 title "commands per read (right)" ls 3 dt 2
        unset logscale y
        set yrange [0:*]
        unset y2tics
        unset y2label
        set border 3 lc rgb "#666666"
    }
    if (there("threads")) {
        set title "One client: pairs per second"
        set xlabel "blocked threads, or locks in flight in one loop"
        set ylabel "pairs per second"
        if (there("loop")) {
            plot "threads.dat" using 1:2 title "blocked threads" ls 1, \
                 "loop.dat" using 1:2 title "one loop" ls 3
        } else {
            plot "threads.dat" using 1:2 title "blocked threads" ls 1
        }
        set title "Blocked threads: cost of a pair"
        set xlabel "threads"
        set ylabel "processor time per pair (µs)"
        plot "threads.dat" using 1:5 title "client" ls 1, "" using 1:6 title "all servers" ls 2
    }
    if (there("processes")) {
        set title "Processes, one caller each"
        set border 11 lc rgb "#666666"
        set xlabel "processes"
        set ylabel "processor time per pair (µs)"
        set y2label "memory per process (KiB)"
        set y2range [0:*]
        set y2tics
        plot "processes.dat" using 1:5 title "client" ls 1, "" using 1:6 title "all servers" ls 2, \
             "" using 1:10 axes x1y2 title "memory (right)" ls 3 dt 2
        unset y2tics
        unset y2label
        set border 3 lc rgb "#666666"
    }
    unset logscale x
    unset multiplot
    unset output
}
