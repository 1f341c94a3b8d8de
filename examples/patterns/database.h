/* SPDX-License-Identifier: MIT
 * The database of the patterns that have one. */
#ifndef EXAMPLE_DATABASE_H
#define EXAMPLE_DATABASE_H

#include <sqlite3.h>

#define EX_TROUBLE 2

/* Says on stderr what the database complains about; EX_TROUBLE. */
int example_trouble(sqlite3 *db, const char *what);

/* Waits up to `busy_ms` for other writers. NULL, and a line on stderr: it cannot be opened. */
sqlite3 *example_database(const char *path, int busy_ms);

#endif
