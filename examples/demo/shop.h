/* SPDX-License-Identifier: MIT
 * The shop of the demo: one item with a stock, and a ledger of its sales, in SQLite. Reading the
 * stock and writing it back are two transactions, as in a program that has to think in between. */
#ifndef DEMO_SHOP_H
#define DEMO_SHOP_H

#include <stdint.h>

struct shop;

struct sale {
    int worker;
    int64_t stock_seen; /* what the worker read; it writes back one less */
    int64_t from_ns;    /* when the worker went in, CLOCK_MONOTONIC */
    int64_t sold_ns;    /* when it wrote */
};

/* Opens the database that the orchestrator made. NULL: the reason is on stderr. */
struct shop *shop_open(const char *path);
void shop_close(struct shop *shop);

/* First transaction. 0, or -1 with the reason on stderr. */
int shop_read_stock(struct shop *shop, int64_t *ret_stock);

/* Second transaction: stock = stock_seen - 1, and one row in the ledger. 0, or -1 with the reason
 * on stderr. */
int shop_sell(struct shop *shop, const struct sale *sale);

#endif
