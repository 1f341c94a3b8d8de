/* SPDX-License-Identifier: MIT
 * demo-worker [--no-lock] DATABASE NUMBER: sells from the shop until the stock that it reads is 0.
 *
 * One turn: acquire the lock, read the stock, pause, write the stock, release the lock. --no-lock
 * is the only difference between the phases of the demo. Each turn prints one line on stdout: turn
 * FROM_NS UNTIL_NS SOLD        (CLOCK_MONOTONIC; SOLD is 1 or 0) The first line is "ready". The
 * first turn begins when stdin ends, so that all workers start together. Exit status: 0 sold out; 1
 * an error, printed on stderr. */
#include <redlock/redlock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shop.h"

#define RESOURCE      "demo:shop:stock" /* name of the lock */
#define TTL_MS        2000              /* of the lock */
#define WAIT_MS       20000             /* far longer than the whole sale: a timeout is an error */
#define READY_MS      5000              /* for the client to be ready */
#define MARGIN_MS     500               /* validity that must be left for the write */
#define SHUTDOWN_MS   1000              /* for pending undos at the end */
#define THINK_US_MIN  2000              /* pause between reading and writing */
#define THINK_US_MAX  5000
#define REST_US_MAX   20000 /* pause between two turns */
#define NS_PER_SECOND INT64_C(1000000000)

/* This process. */
struct worker {
    redlock_t *rl; /* NULL with --no-lock */
    struct shop *shop;
    int number; /* of this worker */
};

/* One turn of the worker. */
struct turn {
    int64_t from_ns, until_ns; /* the time in which no other worker must have a turn */
    int sold;                  /* 1: wrote a sale */
    int sold_out;              /* 1: read a stock of 0 */
};

/* Returns CLOCK_MONOTONIC in nanoseconds. */
static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* Sleeps for a random time from us_min to us_max microseconds. */
static void pause_us(long us_min, long us_max)
{
    long us = us_min + random() % (us_max - us_min + 1);
    struct timespec left = {.tv_sec = 0, .tv_nsec = us * 1000};
    while (nanosleep(&left, &left) != 0)
        ;
}

/* Acquires the lock. Returns 0, or -1 after a message. */
static int take_lock(struct worker *worker, redlock_lock_t **ret_lock)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    opts.wait_ms = WAIT_MS;
    redlock_report_t *report = NULL;
    int rc = redlock_acquire(worker->rl, RESOURCE, &opts, ret_lock, &report);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "demo-worker %d: no lock: %s: %s\n", worker->number, redlock_strerror(rc),
                redlock_report_text(report));
    redlock_report_free(report);
    return rc == REDLOCK_OK ? 0 : -1;
}

/* Sells one item: the part of a turn that the lock protects. `lock` is NULL with --no-lock. Returns
 * 0 or -1. */
static int sell_one(struct worker *worker, const redlock_lock_t *lock, struct turn *turn)
{
    struct sale sale = {.worker = worker->number, .from_ns = turn->from_ns};
    if (shop_read_stock(worker->shop, &sale.stock_seen) < 0)
        return -1;
    if (sale.stock_seen <= 0) {
        turn->sold_out = 1;
        return 0;
    }
    pause_us(THINK_US_MIN, THINK_US_MAX);
    if (lock && redlock_lock_check(lock, MARGIN_MS) != REDLOCK_OK)
        return 0; /* the lock may be lost: write nothing, and try again in the next turn */
    sale.sold_ns = now_ns();
    if (shop_sell(worker->shop, &sale) < 0)
        return -1;
    turn->sold = 1;
    return 0;
}

/* Runs one turn. Returns 0 or -1. */
static int take_turn(struct worker *worker, struct turn *turn)
{
    redlock_lock_t *lock = NULL;
    if (worker->rl && take_lock(worker, &lock) < 0)
        return -1;
    turn->from_ns = now_ns();
    int rc = sell_one(worker, lock, turn);
    turn->until_ns = now_ns();
    if (lock) {
        /* A release that fails is not an error here, because the lock was checked before the
         * write. */
        redlock_release(lock, NULL);
        redlock_lock_free(lock);
    }
    return rc;
}

/* Runs turns until the stock is 0. Returns 0 or -1. */
static int sell_until_sold_out(struct worker *worker)
{
    for (;;) {
        struct turn turn = {0};
        if (take_turn(worker, &turn) < 0)
            return -1;
        printf("turn %lld %lld %d\n", (long long)turn.from_ns, (long long)turn.until_ns, turn.sold);
        fflush(stdout);
        if (turn.sold_out)
            return 0;
        pause_us(0, REST_US_MAX);
    }
}

/* Creates a client and waits until the servers are ready. Returns NULL after a message. */
static redlock_t *connect_nodes(void)
{
    const char *servers = getenv("REDLOCK_SERVERS");
    if (!servers) {
        fputs("demo-worker: REDLOCK_SERVERS is not set: run it in `redlock sandbox`\n", stderr);
        return NULL;
    }
    redlock_config_t *config = NULL;
    redlock_t *rl = NULL;
    int rc = redlock_config_new(&config, NULL);
    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(config, servers);
    if (rc == REDLOCK_OK)
        rc = redlock_new(&rl, config);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "demo-worker: %s: %s\n", redlock_strerror(rc),
                redlock_config_error(config));
    redlock_config_free(config);
    if (rl && (rc = redlock_wait_ready(rl, READY_MS)) != REDLOCK_OK) {
        fprintf(stderr, "demo-worker: servers: %s\n", redlock_strerror(rc));
        redlock_free(rl);
        rl = NULL;
    }
    return rl;
}

/* Prints "ready" and waits for the end of stdin. */
static void wait_for_start(void)
{
    char byte;
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

/* Opens the shop, waits for the start, sells until the stock is 0 and returns the exit status. */
int main(int argc, char **argv)
{
    int locked = 1;
    if (argc > 1 && strcmp(argv[1], "--no-lock") == 0) {
        locked = 0;
        argc--, argv++;
    }
    if (argc != 3) {
        fputs("usage: demo-worker [--no-lock] DATABASE NUMBER\n", stderr);
        return 64;
    }
    struct worker worker = {.number = atoi(argv[2])};
    srandom((unsigned)getpid());
    int rc = -1;
    worker.shop = shop_open(argv[1]);
    if (worker.shop && (!locked || (worker.rl = connect_nodes()))) {
        wait_for_start();
        rc = sell_until_sold_out(&worker);
    }
    if (worker.rl) {
        redlock_shutdown(worker.rl, SHUTDOWN_MS);
        redlock_free(worker.rl);
    }
    shop_close(worker.shop);
    return rc == 0 ? 0 : 1;
}
