/* SPDX-License-Identifier: MIT
 * Splits lists of servers that name shards, such as "east=a,b,c;west=d,e,f". An entry is what
 * stands between two separators: an address, or "name=address" for the first server of a shard.
 */
#include "shards.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

/* Characters between the entries of a list that names shards, and characters of the name of a
 * shard. */
#define SEPARATORS " ,;\t\r\n"
#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* Returns the length of the "name=" at the beginning of an entry; 0 if there is none. */
static size_t head_len(const char *entry)
{
    size_t len = strspn(entry, NAME_BYTES);

    return len > 0 && entry[len] == '=' ? len + 1 : 0;
}

/* Returns true if the first entry of the list begins with "name=". */
bool shards_are_named(const char *list)
{
    return head_len(list + strspn(list, SEPARATORS)) > 0;
}

/* Returns the characters that separate the entries of this list: ';' is one only if the list names
 * shards. */
const char *shards_separators(const char *list)
{
    return shards_are_named(list) ? SEPARATORS : " ,\t\r\n"; /* a password may have a ';' */
}

/* Returns the addresses of the shard with this index, without its name, each followed by a comma;
 * all addresses if the list names no shards. To be freed; may contain passwords. */
char *shards_addresses(const char *list, size_t index)
{
    bool named = shards_are_named(list), begun = false;
    const char *separators = shards_separators(list);
    char *found = must(calloc(1, strlen(list) + 2)), *to = found;
    size_t shard = 0;

    for (const char *at = list; *at;) {
        size_t len = strcspn(at, separators);
        size_t head = named ? head_len(at) : 0;
        if (head > 0 && begun)
            shard++;
        begun = begun || head > 0;
        if (shard == index && len > head) {
            memcpy(to, at + head, len - head);
            to += len - head;
            *to++ = ',';
        }
        at += len + (at[len] != '\0');
    }
    return found;
}
