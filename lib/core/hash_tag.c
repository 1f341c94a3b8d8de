/* SPDX-License-Identifier: MIT
 * Finds the part of a resource's name that selects its shard. */
#include "core/hash_tag.h"

#include <string.h>

/* Returns the length in bytes of `name` without a suffix "{#digits}", the slot of a permit. Returns
 * its full length if there is no such suffix, or nothing before it. */
static size_t without_slot(struct rl_arg name)
{
    size_t at = name.len;

    if (at == 0 || name.data[at - 1] != '}')
        return name.len;
    at--;
    size_t end = at;
    while (at > 0 && name.data[at - 1] >= '0' && name.data[at - 1] <= '9')
        at--;
    bool slot = at < end && at > 2 && name.data[at - 1] == '#' && name.data[at - 2] == '{';
    return slot ? at - 2 : name.len;
}

/* Returns the hash tag of `name`: the text between its first braces, without the slot of a permit;
 * or the whole rest of `name`, if there is no such text. */
struct rl_arg rl_hash_tag(struct rl_arg name)
{
    name.len = without_slot(name);
    const char *open = memchr(name.data, '{', name.len);
    if (open == NULL)
        return name;
    const char *inside = open + 1;
    const char *close = memchr(inside, '}', (size_t)(name.data + name.len - inside));
    if (close == NULL || close == inside)
        return name;
    return (struct rl_arg){inside, (size_t)(close - inside)};
}
