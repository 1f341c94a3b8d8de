/* SPDX-License-Identifier: MIT
 * The script of the line on a fake server. test/sim/line.c, which sim_line compares with the script
 * on a real server, does the work. Lines are no keys here: fake_redis_keys() does not count them.
 */
#ifndef TEST_FAKE_LINE_H
#define TEST_FAKE_LINE_H

#include "fake_serve.h"

/* Executes EVAL or EVALSHA of the script of the line and adds the reply. Returns false for other
 * commands, for a connection that has not logged in, and if the server keeps no lines. */
bool fake_line_execute(struct fake_redis *fake, struct fake_connection *connection,
                       const struct fake_arg *argv, size_t argc, struct fake_bytes *reply);
/* Returns the number of waiters in all lines. */
size_t fake_line_count(const struct fake_redis *fake);
void fake_line_free(struct fake_redis *fake);

#endif
