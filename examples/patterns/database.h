/* SPDX-License-Identifier: MIT
 * The SQLite database that some patterns use. */
#ifndef EXAMPLE_DATABASE_H
#define EXAMPLE_DATABASE_H

#include <sqlite3.h>

#define EX_TROUBLE 2 /* exit status: the database, or an unexpected error */

/* Prints the last error of the database on stderr. `db` NULL: out of memory. Returns EX_TROUBLE. */
int example_trouble(sqlite3 *db, const char *what);

/* Opens an existing database, whose statements wait up to `busy_ms` for other writers. Returns NULL
 * after a message on stderr. */
sqlite3 *example_database(const char *path, int busy_ms);

#endif
