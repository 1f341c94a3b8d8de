/* SPDX-License-Identifier: MIT
 * purchase DATABASE ITEM BUYER [--stop-before-write]: sells an item to one buyer.
 *
 * Three checks, each for what the previous one cannot detect. The lock keeps buyers from working on
 * the item at the same time. The program reads the row again under the lock. The UPDATE compares
 * the row and the fencing token in the same statement as the write. The row alone is not enough:
 * while this process was stopped, it may have changed and changed back (sold and returned).
 *
 * The table: item(id TEXT PRIMARY KEY, buyer TEXT, fence INTEGER NOT NULL DEFAULT 0).
 *
 * Exit status: 0 bought; 1 sold to another buyer; 3 rejected by the fencing token; 75 other clients
 * held the lock for the whole wait, or the lock was lost; 69 no quorum; 2 any other error. */
#include "client.h"
#include "database.h"

#include <stdio.h>
#include <string.h>

#define TTL_MS          2000  /* of the lock */
#define WAIT_MS         20000 /* longest wait for the lock */
#define MARGIN_MS       100   /* validity that must be left for the write */
#define BUSY_TIMEOUT_MS 5000  /* longest wait of a statement for another writer */
#define EX_SOLD         1     /* exit status: sold to another buyer */
#define EX_REFUSED      3     /* exit status: rejected by the fencing token */

/* The arguments. */
struct sale {
    sqlite3 *db;
    const char *item, *buyer;
    bool stops; /* wait for a line on stdin right before the write */
};

/* Declares that fence records do not survive a restart of these servers. Omit this for servers with
 * ?durable=1. Returns REDLOCK_OK or an error. */
static int volatile_records(redlock_config_t *config)
{
    return redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE);
}

/* Returns 1 if the item is for sale, 0 if it is sold, -1 after an error. */
static int is_for_sale(const struct sale *sale)
{
    sqlite3_stmt *query = NULL;
    int free = -1;

    if (sqlite3_prepare_v2(sale->db, "SELECT buyer IS NULL FROM item WHERE id = ?1", -1, &query,
                           NULL) != SQLITE_OK ||
        sqlite3_bind_text(query, 1, sale->item, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_step(query) != SQLITE_ROW)
        example_trouble(sale->db, "reading the item");
    else
        free = sqlite3_column_int(query, 0);
    sqlite3_finalize(query);
    return free;
}

/* Writes the sale. The database compares row and fencing token in the same statement. Returns the
 * exit status. */
static int write_sale(const struct sale *sale, uint64_t fence)
{
    sqlite3_stmt *update = NULL;
    int status = EX_TROUBLE;

    if (sqlite3_prepare_v2(sale->db,
                           "UPDATE item SET buyer = ?1, fence = ?2 "
                           "WHERE id = ?3 AND buyer IS NULL AND fence < ?2",
                           -1, &update, NULL) != SQLITE_OK ||
        sqlite3_bind_text(update, 1, sale->buyer, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_int64(update, 2, (sqlite3_int64)fence) != SQLITE_OK ||
        sqlite3_bind_text(update, 3, sale->item, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_step(update) != SQLITE_DONE)
        example_trouble(sale->db, "writing the sale");
    else
        status = sqlite3_changes(sale->db) == 1 ? 0 : EX_REFUSED;
    sqlite3_finalize(update);
    return status;
}

/* Buys the item under the lock. Returns the exit status. */
static int buy(const struct sale *sale, const redlock_lock_t *lock)
{
    int free = is_for_sale(sale);

    if (free <= 0)
        return free < 0 ? EX_TROUBLE : EX_SOLD;
    /* ... payment, invoice ... */
    if (redlock_lock_check(lock, MARGIN_MS) != REDLOCK_OK) {
        puts("the lock is lost: nothing written");
        return EX_HELD;
    }
    puts("about to write");
    fflush(stdout);
    if (sale->stops && getchar() == EOF)
        return EX_TROUBLE;
    return write_sale(sale, redlock_lock_fence(lock));
}

/* Acquires the lock with a fencing token and buys the item. Returns the exit status. */
static int buy_under_lock(const struct sale *sale, redlock_t *rl)
{
    REDLOCK_SCOPED redlock_lock_t *lock = NULL; /* released at each return below */
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_report_t *report = NULL;
    char name[128];

    snprintf(name, sizeof name, "item:%s:buyer", sale->item); /* table:id:column */
    opts.wait_ms = WAIT_MS;
    opts.flags = REDLOCK_FLAG_FENCE;
    int rc = redlock_acquire(rl, name, &opts, &lock, &report);
    if (rc != REDLOCK_OK)
        return example_not_acquired(rc, report);
    redlock_report_free(report);
    int status = buy(sale, lock);
    if (status == 0)
        printf("%s: bought by %s\n", sale->item, sale->buyer);
    else if (status == EX_SOLD)
        printf("%s: sold to another buyer\n", sale->item);
    else if (status == EX_REFUSED)
        printf("%s: rejected: a later holder of the lock has written\n", sale->item);
    return status;
}

/* Opens the database, creates a client and buys the item. Returns the exit status. */
int main(int argc, char **argv)
{
    struct sale sale = {.stops = argc > 4 && strcmp(argv[4], "--stop-before-write") == 0};

    if (argc < 4) {
        fputs("usage: purchase DATABASE ITEM BUYER [--stop-before-write]; the servers come from "
              "REDLOCK_SERVERS\n",
              stderr);
        return EX_USAGE;
    }
    sale.item = argv[2];
    sale.buyer = argv[3];
    sale.db = example_database(argv[1], BUSY_TIMEOUT_MS);
    if (sale.db == NULL)
        return EX_TROUBLE;
    redlock_t *rl = example_connect(volatile_records);
    int status = rl == NULL ? EX_CONFIG : buy_under_lock(&sale, rl);
    if (rl != NULL)
        example_leave(rl);
    sqlite3_close(sale.db);
    return status;
}
