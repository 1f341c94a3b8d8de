# SPDX-License-Identifier: MIT
# Draws six pictures of the *.dat files of growth.py in the current directory. A series without a file is left out.
there(name) = int(system("test -s " . name . ".dat && echo 1 || echo 0"))

do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 1500, 900 font "sans,11"
        set output "growth.png"
    } else {
        set terminal svg size 1500, 900 font "sans,11"
        set output "growth.svg"
    }
    set multiplot layout 2, 3 title "redlock: growth"
    set grid
    set key below horizontal
    set yrange [0:*]
    set style data linespoints
    set pointsize 0.8

    if (there("nodes")) {
        set title "64 in flight, by nodes"
        set xlabel "nodes"
        set ylabel "processor time per pair, us"
        set y2label "commands per pair"
        set y2range [0:*]
        set y2tics
        set ytics nomirror
        plot "nodes.dat" using 1:5 title "client, us" pt 7, \
             "" using 1:6 title "servers, us" pt 5, \
             "" using 1:7 axes x1y2 title "commands" pt 9
        unset y2tics
        unset y2label
        set ytics mirror
    }
    set logscale x
    if (there("held")) {
        set title "held locks: memory"
        set xlabel "held locks, extended automatically"
        set ylabel "bytes per lock"
        set yrange [0:4096]
        plot "held.dat" using 1:2 title "bytes per lock" pt 7, 1280 title "1.25 KiB" with lines dt 2
        set yrange [0:*]
        set title "held locks: extensions"
        set ylabel "processor time of the client per extension, us"
        set y2label "commands per read of a server"
        set y2range [0:*]
        set y2tics
        set ytics nomirror
        set logscale y
        set yrange [1:*]
        plot "held.dat" using 1:8 title "client, us" pt 7, \
             "" using 1:9 axes x1y2 title "commands per read" pt 5
        unset logscale y
        set yrange [0:*]
        unset y2tics
        unset y2label
        set ytics mirror
    }
    if (there("threads")) {
        set title "pairs per second: one client"
        set xlabel "threads, or pairs in flight in one loop"
        set ylabel "pairs per second"
        if (there("loop")) {
            plot "threads.dat" using 1:2 title "blocked threads" pt 7, \
                 "loop.dat" using 1:2 title "one loop" pt 5
        } else {
            plot "threads.dat" using 1:2 title "blocked threads" pt 7
        }
        set title "cost of a pair: threads"
        set xlabel "threads"
        set ylabel "processor time, us"
        plot "threads.dat" using 1:5 title "client" pt 7, "" using 1:6 title "servers" pt 5
    }
    if (there("processes")) {
        set title "processes, one caller each"
        set xlabel "processes"
        set ylabel "processor time per pair, us"
        set y2label "memory per process, KiB"
        set y2range [0:*]
        set y2tics
        set ytics nomirror
        plot "processes.dat" using 1:5 title "client, us" pt 7, "" using 1:6 title "servers, us" pt 5, \
             "" using 1:10 axes x1y2 title "memory, KiB" pt 9
        unset y2tics
        unset y2label
        set ytics mirror
    }
    unset logscale x
    unset multiplot
    unset output
}
