/* SPDX-License-Identifier: MIT
 * JSON output on top of Jansson.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <jansson.h>
#include <stdbool.h>

/* Makes a string of text_utf8(text): names of locks may hold any bytes. */
json_t *json_text(const char *text);

/* Returns the object on one line, with its line end and with unprintable characters escaped. Takes
 * `object`. To be freed. */
char *json_line(json_t *object);

/* The same to stdout. False if it could not be written. */
bool json_print(json_t *object);

#endif
