/* SPDX-License-Identifier: MIT
 * Makes and prints JSON, on top of Jansson.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <jansson.h>
#include <stdbool.h>

/* Returns a JSON string of text_utf8(text), because names of locks may contain any bytes. */
json_t *json_text(const char *text);

/* Returns the object as one line, with its line end and with unprintable characters escaped.
 * Takes ownership of `object`. To be freed. */
char *json_line(json_t *object);

/* Prints json_line(object) to stdout. Takes ownership of `object`. Returns false if it could not
 * be written. */
bool json_print(json_t *object);

#endif
