/* SPDX-License-Identifier: MIT
 * redsync as a driver: see ../README.md.
 *
 * Settings: go-redis 9, as in its README; WithFailFast, which its documentation recommends where servers may be blocked
 * (a majority decides, the library does not wait for the others); ContextTimeoutEnabled, without which go-redis ignores
 * redsync's time limit for each server (5 % of the time to live); as many connections as callers, at least the default
 * of go-redis. Default retries: 32, after 50 to 250 ms. */
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

// Go's clock does not show its absolute value. These are one moment of it, and CLOCK_MONOTONIC in ns at that moment.
var (
	base      = time.Now()
	baseNanos = monotonic()
)

func monotonic() int64 {
	var at syscall.Timespec
	const clockMonotonic = 1
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
	return at.Nano()
}

func now() int64 {
	return baseNanos + int64(time.Since(base))
}

type task struct {
	manager  *redsync.Redsync
	resource string
	ttl      time.Duration
	hold     time.Duration
	own      bool
}

// reason returns the word of a failed call and its error, on one line.
func reason(err error) string {
	var taken *redsync.ErrTaken
	word := "error"
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) {
		word = "taken"
	}
	return word + " " + strings.ReplaceAll(fmt.Sprint(err), "\n", " ")
}

func (task *task) contend(number int, end int64) []string {
	var lines []string
	name := task.resource
	if task.own {
		name += strconv.Itoa(number)
	}
	mutex := task.manager.NewMutex(name, redsync.WithExpiry(task.ttl), redsync.WithFailFast(true))
	var want int64
	for now() < end {
		if want == 0 {
			want = now()
		}
		if err := mutex.Lock(); err != nil {
			lines = append(lines, fmt.Sprintf("failed %d %d %d %s", number, want, now(), reason(err)))
			continue
		}
		grant := now()
		until := grant + int64(time.Until(mutex.Until()))
		if task.hold > 0 {
			time.Sleep(task.hold)
		}
		called := now()
		released, err := mutex.Unlock()
		done := now()
		if !released {
			lines = append(lines, fmt.Sprintf("failed %d %d %d release %s", number, called, done, reason(err)))
		}
		lines = append(lines, fmt.Sprintf("hold %d %d %d %d %d", number, want, grant, min(called, until), done))
		want = 0
	}
	return lines
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, "redsync:", err)
		os.Exit(64)
	}
	return value
}

func main() {
	arguments := os.Args[1:]
	first, count := number(arguments[4]), number(arguments[5])
	var pools []redis.Pool
	for _, url := range strings.Split(arguments[0], ",") {
		options, err := goredislib.ParseURL(url)
		if err != nil {
			fmt.Fprintln(os.Stderr, "redsync:", err)
			os.Exit(64)
		}
		options.ContextTimeoutEnabled = true
		options.PoolSize = max(count, 10*runtime.GOMAXPROCS(0))
		client := goredislib.NewClient(options)
		if err := client.Ping(context.Background()).Err(); err != nil {
			fmt.Fprintln(os.Stderr, "redsync:", err)
			os.Exit(69)
		}
		pools = append(pools, goredis.NewPool(client))
	}
	task := &task{
		manager:  redsync.New(pools...),
		resource: arguments[1],
		ttl:      time.Duration(number(arguments[2])) * time.Millisecond,
		hold:     time.Duration(number(arguments[3])) * time.Microsecond,
		own:      len(arguments) > 6,
	}
	fmt.Println("ready")
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		end, _ := strconv.ParseInt(input.Text(), 10, 64)
		lines := make([][]string, count)
		var group sync.WaitGroup
		for i := range count {
			group.Go(func() { lines[i] = task.contend(first+i, end) })
		}
		group.Wait()
		for _, list := range lines {
			for _, line := range list {
				fmt.Fprintln(out, line)
			}
		}
		fmt.Fprintln(out, "over")
		out.Flush()
	}
}
