/* SPDX-License-Identifier: MIT
 * Opens the SQLite database of a pattern, and reports its errors. */
#include "database.h"

#include <stdio.h>

/* Prints the last error of the database on stderr. Returns EX_TROUBLE. */
int example_trouble(sqlite3 *db, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, db != NULL ? sqlite3_errmsg(db) : "no memory");
    return EX_TROUBLE;
}

/* Opens an existing database whose statements wait up to `busy_ms`. Returns NULL after a
 * message. */
sqlite3 *example_database(const char *path, int busy_ms)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(db, busy_ms) == SQLITE_OK)
        return db;
    example_trouble(db, path);
    sqlite3_close(db);
    return NULL;
}
