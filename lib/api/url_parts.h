/* SPDX-License-Identifier: MIT
 * What url.c and url_query.c share. Only they include this. */
#ifndef RL_API_URL_PARTS_H
#define RL_API_URL_PARTS_H

#include "api/url.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of the list; not terminated by a NUL. */
struct piece {
    const char *at;
    size_t len;
};

/* The state of parsing one list. On the stack of rl_url_parse_list(). */
struct parse {
    const struct rl_mem *mem;  /* for the specs and their strings */
    const char *list;          /* the whole list */
    struct piece entry;        /* the entry that is being parsed */
    unsigned number;           /* of the entry in the list, from 1 */
    struct rl_node_spec *spec; /* receives the entry */
    char *error;               /* receives the reason of a refusal */
    size_t error_size;         /* bytes of `error`, with the NUL */
};

/* The functions are in url.c. Those that return an int return 0; or REDLOCK_EINVAL or
 * REDLOCK_ENOMEM after they have written the reason to parse->error. */

/* Refuses the entry, for a reason in the form of printf(). Returns REDLOCK_EINVAL. The format's
 * arguments must not be parts of the entry, which may be secret. */
int rl_url_refuse(const struct parse *parse, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Splits `whole` at the first byte that is in `any`. *head ends before that byte, *tail begins with
 * it. If there is none, *tail is empty. */
void rl_url_split(struct piece whole, const char *any, struct piece *head, struct piece *tail);
/* Returns the piece without its first `bytes` bytes; it has at least that many. */
struct piece rl_url_skip(struct piece piece, size_t bytes);
/* Returns whether the piece is the same as `word`, regardless of case. */
bool rl_url_is_word(struct piece piece, const char *word);
/* Parses decimal digits to *ret. Returns false if the piece is empty, has another byte, or is above
 * `max`. */
bool rl_url_number(struct piece piece, uint64_t max, uint64_t *ret);
/* Percent-decodes `from` to `out`, which has max + 1 bytes, and adds a NUL. `what` names the part
 * of the address in a refusal. `lowest` is the smallest byte that is allowed in it. */
int rl_url_decode(const struct parse *parse, const char *what, struct piece from, unsigned lowest,
                  char *out, size_t max);
/* Decodes `from` into a new string of at most `max` bytes in *ret, which the spec owns. */
int rl_url_text(const struct parse *parse, const char *what, struct piece from, unsigned lowest,
                size_t max, char **ret);
/* Parses the number of a database into the spec. */
int rl_url_db(const struct parse *parse, struct piece digits);

/* url_query.c: parses the parameters after the '?', which '&' separates, into the spec. */
int rl_url_query(const struct parse *parse, struct piece query);

#endif
