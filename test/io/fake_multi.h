/* SPDX-License-Identifier: MIT
 * The scripts of locks on several keys on a fake server. */
#ifndef TEST_FAKE_MANY_H
#define TEST_FAKE_MANY_H

#include "fake_store.h"

/* Returns the name of a script ("many-acquire", "many-heal", ...) by its text, or NULL if it is
 * none of them. */
const char *fake_many_name(struct fake_arg text);
/* Executes EVAL text count keys... token [ttl] in database 0 and adds the reply. Returns false if
 * the script is none of these. */
bool fake_many_execute(struct fake_store *store, uint64_t now_ms, const struct fake_arg *argv,
                       size_t argc, struct fake_bytes *reply);

#endif
