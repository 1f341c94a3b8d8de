/* SPDX-License-Identifier: MIT
 * The shop of the demo in SQLite. */
#include "shop.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#define BUSY_TIMEOUT_MS 10000 /* longest wait of a statement for another writer */

/* An open database. */
struct shop {
    sqlite3 *db;
    sqlite3_stmt *read_stock, *begin, *write_stock, *record, *commit; /* prepared statements */
};

/* Prints the last error of the database. Returns -1. */
static int complain(const struct shop *shop, const char *what)
{
    fprintf(stderr, "demo-worker: %s: %s\n", what, sqlite3_errmsg(shop->db));
    return -1;
}

/* Prepares a statement. Returns 0 or -1. */
static int prepare(struct shop *shop, const char *sql, sqlite3_stmt **ret_statement)
{
    int rc = sqlite3_prepare_v2(shop->db, sql, -1, ret_statement, NULL);
    return rc == SQLITE_OK ? 0 : complain(shop, sql);
}

/* Executes a statement that returns no rows. Returns 0 or -1. */
static int run(struct shop *shop, sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    if (rc != SQLITE_DONE) {
        complain(shop, sqlite3_sql(statement));
        sqlite3_reset(statement);
        return -1;
    }
    sqlite3_reset(statement);
    return 0;
}

/* Opens the database and prepares all statements. Returns NULL after a message on stderr. */
struct shop *shop_open(const char *path)
{
    struct shop *shop = calloc(1, sizeof *shop);
    if (!shop) {
        fputs("demo-worker: out of memory\n", stderr);
        return NULL;
    }
    if (sqlite3_open_v2(path, &shop->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        complain(shop, path);
        goto fail;
    }
    sqlite3_busy_timeout(shop->db, BUSY_TIMEOUT_MS);
    /* The demo can lose its last sales in a power cut. Waiting for the disk would only hide the
     * race that the demo shows. */
    if (sqlite3_exec(shop->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL) != SQLITE_OK) {
        complain(shop, "PRAGMA synchronous");
        goto fail;
    }
    if (prepare(shop, "SELECT stock FROM item", &shop->read_stock) < 0 ||
        prepare(shop, "BEGIN IMMEDIATE", &shop->begin) < 0 ||
        prepare(shop, "UPDATE item SET stock = ?1", &shop->write_stock) < 0 ||
        prepare(shop,
                "INSERT INTO sale (worker, stock_seen, from_ns, sold_ns) VALUES (?1, ?2, ?3, ?4)",
                &shop->record) < 0 ||
        prepare(shop, "COMMIT", &shop->commit) < 0)
        goto fail;
    return shop;
fail:
    shop_close(shop);
    return NULL;
}

/* Closes the database; NULL does nothing. */
void shop_close(struct shop *shop)
{
    if (!shop)
        return;
    sqlite3_finalize(shop->read_stock);
    sqlite3_finalize(shop->begin);
    sqlite3_finalize(shop->write_stock);
    sqlite3_finalize(shop->record);
    sqlite3_finalize(shop->commit);
    sqlite3_close(shop->db);
    free(shop);
}

/* Reads the stock in a transaction of its own. Returns 0, or -1 after a message. */
int shop_read_stock(struct shop *shop, int64_t *ret_stock)
{
    int rc = sqlite3_step(shop->read_stock);
    if (rc == SQLITE_ROW)
        *ret_stock = sqlite3_column_int64(shop->read_stock, 0);
    else
        complain(shop, "reading the stock");
    sqlite3_reset(shop->read_stock);
    return rc == SQLITE_ROW ? 0 : -1;
}

/* Writes the new stock and the row of the sale in one transaction. Returns 0, or -1 after a
 * message. */
int shop_sell(struct shop *shop, const struct sale *sale)
{
    if (run(shop, shop->begin) < 0)
        return -1;
    sqlite3_bind_int64(shop->write_stock, 1, sale->stock_seen - 1);
    sqlite3_bind_int(shop->record, 1, sale->worker);
    sqlite3_bind_int64(shop->record, 2, sale->stock_seen);
    sqlite3_bind_int64(shop->record, 3, sale->from_ns);
    sqlite3_bind_int64(shop->record, 4, sale->sold_ns);
    if (run(shop, shop->write_stock) < 0 || run(shop, shop->record) < 0 ||
        run(shop, shop->commit) < 0) {
        sqlite3_exec(shop->db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    return 0;
}
