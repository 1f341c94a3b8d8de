# SPDX-License-Identifier: MIT
# Six pictures of growth.py's *.dat files in the current directory; a series that was not measured is left out.
there(name) = int(system("test -s " . name . ".dat && echo 1 || echo 0"))

do for [kind in "png svg"] {
    if (kind eq "png") {
        set terminal pngcairo size 1500, 900 font "sans,11"
        set output "growth.png"
    } else {
        set terminal svg size 1500, 900 font "sans,11"
        set output "growth.svg"
    }
    set multiplot layout 2, 3 title "redlock: what grows with what"
    set grid
    set key below horizontal
    set yrange [0:*]
    set style data linespoints
    set pointsize 0.8

    if (there("nodes")) {
        set title "64 in flight, by nodes"
        set xlabel "nodes"
        set ylabel "us of processor a pair"
        set y2label "commands a pair"
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
        set xlabel "held locks, renewed"
        set ylabel "bytes a lock"
        set yrange [0:4096]
        plot "held.dat" using 1:2 title "bytes a lock" pt 7, 1280 title "1.25 KiB" with lines dt 2
        set yrange [0:*]
        set title "held locks: renewals"
        set ylabel "client, us of processor a renewal"
        set y2label "commands a read of a server"
        set y2range [0:*]
        set y2tics
        set ytics nomirror
        set logscale y
        set yrange [1:*]
        plot "held.dat" using 1:8 title "client, us" pt 7, \
             "" using 1:9 axes x1y2 title "commands a read" pt 5
        unset logscale y
        set yrange [0:*]
        unset y2tics
        unset y2label
        set ytics mirror
    }
    if (there("threads")) {
        set title "pairs a second: one client"
        set xlabel "threads, or in flight in one loop"
        set ylabel "pairs a second"
        if (there("loop")) {
            plot "threads.dat" using 1:2 title "threads that block" pt 7, \
                 "loop.dat" using 1:2 title "one loop" pt 5
        } else {
            plot "threads.dat" using 1:2 title "threads that block" pt 7
        }
        set title "a pair's work: threads"
        set xlabel "threads"
        set ylabel "us of processor"
        plot "threads.dat" using 1:5 title "client" pt 7, "" using 1:6 title "servers" pt 5
    }
    if (there("processes")) {
        set title "processes, one caller each"
        set xlabel "processes"
        set ylabel "us of processor a pair"
        set y2label "KiB a process"
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
