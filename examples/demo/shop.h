/* SPDX-License-Identifier: MIT
 * The shop of the demo: one item with a stock, and a ledger of its sales, in SQLite. Reading the
 * stock and writing it are two transactions, as in a program that works in between. */
#ifndef DEMO_SHOP_H
#define DEMO_SHOP_H

#include <stdint.h>

struct shop;

/* One sale. Times are CLOCK_MONOTONIC. */
struct sale {
    int worker;         /* number of the worker */
    int64_t stock_seen; /* the stock that the worker read; it writes one less */
    int64_t from_ns;    /* beginning of the turn */
    int64_t sold_ns;    /* time of the write */
};

/* Opens the database that ledger.py has created. Returns NULL after a message on stderr. */
struct shop *shop_open(const char *path);
/* Closes the database; NULL does nothing. */
void shop_close(struct shop *shop);

/* Reads the stock, in a transaction of its own. Returns 0, or -1 after a message on stderr. */
int shop_read_stock(struct shop *shop, int64_t *ret_stock);

/* Writes stock = stock_seen - 1 and one row of the ledger in one transaction. Returns 0, or -1
 * after a message on stderr. */
int shop_sell(struct shop *shop, const struct sale *sale);

#endif
