/* SPDX-License-Identifier: MIT
 * JSON output on top of Jansson.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <jansson.h>
#include <stdbool.h>

/* A string value; bytes that are not UTF-8 (lock names may hold any) become U+FFFD. */
json_t *json_text(const char *text);

/* The object on one line with its line end; takes `object`, to be freed. */
char *json_line(json_t *object);

/* The same to stdout. False if it could not be written. */
bool json_print(json_t *object);

#endif
