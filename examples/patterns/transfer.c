/* SPDX-License-Identifier: MIT
 * transfer DATABASE FROM TO AMOUNT [TIMES]: moves money between two accounts that other processes
 * use as well.
 *
 * Both accounts are locked in one acquisition, all or nothing. So two transfers in opposite
 * directions cannot deadlock: neither holds one account while it waits for the other. The lock
 * excludes other processes; a transaction ensures that both balances are written, or none, even if
 * this process ends in between.
 *
 * The table: account(id TEXT PRIMARY KEY, balance INTEGER NOT NULL).
 *
 * Exit status: 0 moved; 1 the balance is too small; 64 wrong usage; 75 other clients held a lock
 * for the whole wait, or the lock was lost; 69 no quorum; 2 any other error. */
#include "client.h"
#include "database.h"

#include <stdio.h>

#define TTL_MS          10000 /* of the lock */
#define WAIT_MS         20000 /* longest wait for the lock */
#define MARGIN_MS       2000  /* validity that must be left for the writes */
#define BUSY_TIMEOUT_MS 1000  /* longest wait of a statement for another writer */
#define EX_TOO_LITTLE   1     /* exit status: the balance is too small */

/* The arguments. */
struct transfer {
    sqlite3 *db;
    const char *from, *to;
    sqlite3_int64 amount;
};

/* Reads the balance of an account. Returns 0, or EX_TROUBLE after a message. */
static int read_balance(const struct transfer *transfer, const char *id, sqlite3_int64 *ret)
{
    sqlite3_stmt *query = NULL;
    int status = 0;

    if (sqlite3_prepare_v2(transfer->db, "SELECT balance FROM account WHERE id = ?1", -1, &query,
                           NULL) != SQLITE_OK ||
        sqlite3_bind_text(query, 1, id, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_step(query) != SQLITE_ROW)
        status = example_trouble(transfer->db, id);
    else
        *ret = sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
    return status;
}

/* Writes the balance of an account. Returns 0, or EX_TROUBLE after a message. */
static int write_balance(const struct transfer *transfer, const char *id, sqlite3_int64 balance)
{
    sqlite3_stmt *update = NULL;
    int status = 0;

    if (sqlite3_prepare_v2(transfer->db, "UPDATE account SET balance = ?1 WHERE id = ?2", -1,
                           &update, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(update, 1, balance) != SQLITE_OK ||
        sqlite3_bind_text(update, 2, id, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_step(update) != SQLITE_DONE)
        status = example_trouble(transfer->db, id);
    sqlite3_finalize(update);
    return status;
}

/* Executes a statement without parameters. Returns 0, or EX_TROUBLE after a message. */
static int execute(const struct transfer *transfer, const char *text)
{
    return sqlite3_exec(transfer->db, text, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : example_trouble(transfer->db, text);
}

/* Writes both balances in one transaction. Returns 0 or EX_TROUBLE. */
static int write_both(const struct transfer *transfer, sqlite3_int64 from, sqlite3_int64 to)
{
    if (execute(transfer, "BEGIN IMMEDIATE") != 0)
        return EX_TROUBLE;
    if (write_balance(transfer, transfer->from, from) == 0 &&
        write_balance(transfer, transfer->to, to) == 0 && execute(transfer, "COMMIT") == 0)
        return 0;
    execute(transfer, "ROLLBACK");
    return EX_TROUBLE;
}

/* Moves the amount under the lock. Returns the exit status. */
static int move(const struct transfer *transfer, const redlock_lock_t *lock)
{
    sqlite3_int64 from, to;

    if (read_balance(transfer, transfer->from, &from) != 0 ||
        read_balance(transfer, transfer->to, &to) != 0)
        return EX_TROUBLE;
    if (from < transfer->amount)
        return EX_TOO_LITTLE;
    /* One check covers both resources: they are one lock with one deadline. */
    if (redlock_lock_check(lock, MARGIN_MS) != REDLOCK_OK) {
        fputs("too late: nothing was moved\n", stderr);
        return EX_HELD;
    }
    return write_both(transfer, from - transfer->amount, to + transfer->amount);
}

/* Acquires the lock of both accounts and moves the amount. Returns the exit status. */
static int move_under_lock(const struct transfer *transfer, redlock_t *rl)
{
    REDLOCK_SCOPED redlock_lock_t *lock = NULL;
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_report_t *report = NULL;
    char from[128], to[128];
    const char *const also[] = {to};

    snprintf(from, sizeof from, "account:%s", transfer->from);
    snprintf(to, sizeof to, "account:%s", transfer->to);
    opts.wait_ms = WAIT_MS;
    opts.also = also; /* in any order: no resource is held while another is waited for */
    opts.also_count = 1;
    int rc = redlock_acquire(rl, from, &opts, &lock, &report);
    if (rc != REDLOCK_OK)
        return example_not_acquired(rc, report);
    redlock_report_free(report);
    int status = move(transfer, lock);
    rc = redlock_release(lock, NULL);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "at the release: %s\n", redlock_strerror(rc));
    return status;
}

/* Moves the amount TIMES times, or until that fails. Returns the exit status. */
int main(int argc, char **argv)
{
    struct transfer transfer = {0};
    uint64_t amount = 0, times = 1;

    if (argc < 5 || !example_number(argv[4], INT32_MAX, &amount) || amount == 0 ||
        (argc > 5 && !example_number(argv[5], INT32_MAX, &times))) {
        fputs("usage: transfer DATABASE FROM TO AMOUNT [TIMES]; the servers come from "
              "REDLOCK_SERVERS\n",
              stderr);
        return EX_USAGE;
    }
    transfer.from = argv[2];
    transfer.to = argv[3];
    transfer.amount = (sqlite3_int64)amount;
    transfer.db = example_database(argv[1], BUSY_TIMEOUT_MS);
    if (transfer.db == NULL)
        return EX_TROUBLE;
    redlock_t *rl = example_connect(NULL);
    int status = rl == NULL ? EX_CONFIG : 0;
    for (; rl != NULL && times > 0 && status == 0; times--)
        status = move_under_lock(&transfer, rl);
    if (rl != NULL)
        example_leave(rl);
    sqlite3_close(transfer.db);
    return status;
}
