/* SPDX-License-Identifier: MIT
 * Masks passwords in lists of addresses. The library decides whether a list is valid; nothing is
 * shown of a list that the library refuses.
 */
#include "mask.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "redlock/redlock.h"
#include "say.h"
#include "shards.h"

/* Returns true if the library accepts the list of addresses. */
static bool is_understood(const char *list)
{
    redlock_config_t *config = NULL;

    if (redlock_config_new(&config, NULL) != REDLOCK_OK)
        return false;
    bool understood = redlock_config_add_nodes(config, list) == REDLOCK_OK;
    redlock_config_free(config);
    return understood;
}

/* Writes the `len` bytes of one entry of a valid list to `out`, with the password masked. The login
 * is between the scheme and an '@'. A later '@' can only belong to the query, which is then masked
 * as well. */
static void write_entry(FILE *out, const char *entry, size_t len)
{
    const char *login_end = memrchr(entry, '@', len);
    const char *login = login_end ? memmem(entry, len, "://", 3) : NULL;

    if (login_end) {
        login = login ? login + 3 : entry;
        const char *colon = memchr(login, ':', (size_t)(entry + len - login));
        const char *password = colon && colon < login_end ? colon + 1 : login;
        fprintf(out, "%.*s***", (int)(password - entry), entry);
        len -= (size_t)(login_end - entry);
        entry = login_end;
    }
    fprintf(out, "%.*s", (int)len, entry);
}

/* Returns "***" if the word contains '@' or "://", as an address does; else the word. */
const char *mask_word(const char *word)
{
    return strchr(word, '@') || strstr(word, "://") ? "***" : word;
}

/* Returns a copy of the list with "***" for each password; "***" alone if the library refuses the
 * list. To be freed. */
char *mask_addresses(const char *list)
{
    const char *separators = shards_separators(list);
    char *shown = NULL;
    size_t size;

    if (*list && !is_understood(list))
        return text_copy("***");
    FILE *out = must(open_memstream(&shown, &size));
    while (*list) {
        size_t len = strcspn(list, separators);
        write_entry(out, list, len);
        list += len;
        len = strspn(list, separators);
        fprintf(out, "%.*s", (int)len, list);
        list += len;
    }
    fclose(out);
    return must(shown);
}
