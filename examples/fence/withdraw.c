/* SPDX-License-Identifier: MIT
 * withdraw DATABASE AMOUNT [--fence] [--stop-before-write]: withdraws money from an account that
 * other processes use as well. Reads the balance under a lock and writes the new balance.
 *
 * With --fence the lock has a fencing token. The database rejects a write whose token is not larger
 * than that of the last write: the lock may have been lost meanwhile, and the next holder may have
 * written. --stop-before-write waits for a line on stdin right before the write, the worst moment
 * for a process to be stopped. `run` shows both cases.
 *
 * The servers come from REDLOCK_SERVERS. Exit status: 0 withdrawn, 1 rejected by the database, 75
 * no lock, 2 any other error. */
#include <redlock/redlock.h>

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_MS          2000  /* of the lock */
#define WAIT_MS         20000 /* longest wait for the lock */
#define MARGIN_MS       100   /* validity that must be left for the write */
#define BUSY_TIMEOUT_MS 5000  /* longest wait of a statement for another writer */
#define EX_REFUSED      1     /* exit status: a later holder has written */
#define EX_TROUBLE      2     /* exit status: any other error */
#define EX_NO_LOCK      75    /* exit status: not acquired, or lost before the write */

/* The arguments. */
struct job {
    sqlite3 *db;
    sqlite3_int64 amount;
    bool fenced; /* --fence */
    bool stops;  /* --stop-before-write */
};

/* Creates a client for a list of servers. Returns NULL after a message if that fails. */
static redlock_t *connect_nodes(const char *servers)
{
    redlock_config_t *config = NULL;
    redlock_t *rl = NULL;
    int rc = redlock_config_new(&config, NULL);
    if (rc == REDLOCK_OK)
        rc = redlock_config_add_nodes(config, servers);
    /* The fence records of these servers do not survive a restart. Omit this for servers with
     * ?durable=1. */
    if (rc == REDLOCK_OK)
        rc = redlock_config_set_fence_records(config, REDLOCK_FENCE_RECORDS_VOLATILE);
    if (rc == REDLOCK_OK)
        rc = redlock_new(&rl, config);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "%s: %s\n", redlock_strerror(rc), redlock_config_error(config));
    redlock_config_free(config);
    return rl;
}

/* Prints the last error of the database. Returns EX_TROUBLE. */
static int trouble(sqlite3 *db, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, db != NULL ? sqlite3_errmsg(db) : "no memory");
    return EX_TROUBLE;
}

/* Reads the balance. Returns 0 or EX_TROUBLE. */
static int read_balance(sqlite3 *db, sqlite3_int64 *ret_balance)
{
    sqlite3_stmt *query = NULL;
    int status = EX_TROUBLE;

    if (sqlite3_prepare_v2(db, "SELECT balance FROM account", -1, &query, NULL) != SQLITE_OK ||
        sqlite3_step(query) != SQLITE_ROW) {
        trouble(db, "reading the balance");
    } else {
        *ret_balance = sqlite3_column_int64(query, 0);
        status = 0;
    }
    sqlite3_finalize(query);
    return status;
}

/* Writes the balance, and compares and stores the fencing token in the same statement. `fence` 0:
 * without a token. A program that writes more than once under one lock compares with "fence <= ?",
 * so that its own token passes again. Returns 0, EX_REFUSED or EX_TROUBLE. */
static int write_balance(sqlite3 *db, sqlite3_int64 balance, sqlite3_int64 fence)
{
    const char *text = fence != 0 ? "UPDATE account SET balance = ?1, fence = ?2 WHERE fence < ?2"
                                  : "UPDATE account SET balance = ?1";
    sqlite3_stmt *update = NULL;
    int status = EX_TROUBLE;

    if (sqlite3_prepare_v2(db, text, -1, &update, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(update, 1, balance) != SQLITE_OK ||
        (fence != 0 && sqlite3_bind_int64(update, 2, fence) != SQLITE_OK) ||
        sqlite3_step(update) != SQLITE_DONE)
        trouble(db, "writing the balance");
    else
        status = sqlite3_changes(db) == 1 ? 0 : EX_REFUSED;
    sqlite3_finalize(update);
    return status;
}

/* Withdraws the amount under the lock. Returns the exit status. */
static int withdraw(const struct job *job, const redlock_lock_t *lock)
{
    uint64_t fence = redlock_lock_fence(lock);
    sqlite3_int64 balance;

    if (read_balance(job->db, &balance) != 0)
        return EX_TROUBLE;
    printf("read %lld", (long long)balance);
    if (fence != 0)
        printf(", fence %llu", (unsigned long long)fence);
    putchar('\n');
    /* This check does not help a process that is stopped after it. */
    if (redlock_lock_check(lock, MARGIN_MS) != REDLOCK_OK) {
        puts("the lock is lost: nothing written");
        return EX_NO_LOCK;
    }
    puts("about to write");
    fflush(stdout);
    if (job->stops && getchar() == EOF)
        return EX_TROUBLE;
    int status = write_balance(job->db, balance - job->amount, (sqlite3_int64)fence);
    if (status == 0)
        printf("wrote %lld\n", (long long)(balance - job->amount));
    else if (status == EX_REFUSED)
        puts("rejected: a later holder has written");
    return status;
}

/* Acquires the lock, withdraws and releases it. Returns the exit status. */
static int under_lock(const struct job *job, redlock_t *rl)
{
    redlock_opts_t opts = redlock_opts(TTL_MS);
    redlock_report_t *report = NULL;
    redlock_lock_t *lock = NULL;

    opts.wait_ms = WAIT_MS;
    opts.validity_ms_min = TTL_MS * 3 / 4;
    opts.flags = job->fenced ? REDLOCK_FLAG_FENCE : 0;
    int rc = redlock_acquire(rl, "account", &opts, &lock, &report);
    if (rc != REDLOCK_OK)
        fprintf(stderr, "not acquired: %s\n", redlock_report_text(report));
    redlock_report_free(report);
    if (rc != REDLOCK_OK)
        return EX_NO_LOCK;
    int status = withdraw(job, lock);
    (void)redlock_release(lock, NULL); /* a lost lock need not be released */
    redlock_lock_free(lock);
    return status;
}

/* Opens the database, creates a client and withdraws once. Returns the exit status. */
int main(int argc, char **argv)
{
    struct job job = {0};
    const char *servers = getenv("REDLOCK_SERVERS");

    for (int i = 3; i < argc; i++) {
        job.fenced = job.fenced || strcmp(argv[i], "--fence") == 0;
        job.stops = job.stops || strcmp(argv[i], "--stop-before-write") == 0;
    }
    if (argc < 3 || servers == NULL) {
        fputs("usage: withdraw DATABASE AMOUNT [--fence] [--stop-before-write]; the servers come "
              "from REDLOCK_SERVERS\n",
              stderr);
        return EX_TROUBLE;
    }
    job.amount = strtoll(argv[2], NULL, 10);
    if (sqlite3_open_v2(argv[1], &job.db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(job.db, BUSY_TIMEOUT_MS) != SQLITE_OK) {
        trouble(job.db, argv[1]);
        sqlite3_close(job.db);
        return EX_TROUBLE;
    }
    redlock_t *rl = connect_nodes(servers);
    int status = rl == NULL ? EX_TROUBLE : under_lock(&job, rl);
    redlock_free(rl);
    sqlite3_close(job.db);
    return status;
}
