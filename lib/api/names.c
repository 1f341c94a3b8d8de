/* SPDX-License-Identifier: MIT
 * Collects and checks the names of the resources of a call, and makes keys from them. */
#include "api/names.h"

#include "api/handle.h"
#include "api/report.h"
#include "engine/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Checks that `name` has 1 to RL_RESOURCE_MAX bytes and appends it to `names`. `what` says in a
 * refusal which argument it is. Returns REDLOCK_OK; or REDLOCK_EINVAL with a report in `refusal`
 * (may be NULL). */
static int add_name(struct redlock_client *rl, struct rl_names *names, const char *what,
                    const char *name, redlock_report_t **refusal)
{
    size_t len = name != NULL ? strnlen(name, RL_RESOURCE_MAX + 1) : 0;

    if (name == NULL || name[0] == '\0')
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "%s is empty: give the name of a resource", what);
    if (len > RL_RESOURCE_MAX)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "%s is longer than %d bytes: shorten or hash it", what,
                                RL_RESOURCE_MAX);
    names->list[names->count] = name;
    names->lens[names->count++] = (uint16_t)len;
    return REDLOCK_OK;
}

/* Compares the strings that `a` and `b` point to, for qsort(). */
static int by_bytes(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;

    return strcmp(*left, *right);
}

/* Checks that all `names` are different. Returns REDLOCK_OK; or REDLOCK_EINVAL with a report in
 * `refusal` (may be NULL). */
static int check_duplicates(struct redlock_client *rl, const struct rl_names *names,
                            redlock_report_t **refusal)
{
    const char *sorted[RL_KEYS_MAX];

    memcpy(sorted, names->list, names->count * sizeof sorted[0]);
    qsort(sorted, names->count, sizeof sorted[0], by_bytes);
    for (unsigned i = 1; i < names->count; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                    "'%.80s' is named twice: name each resource once", sorted[i]);
    }
    return REDLOCK_OK;
}

/* Checks `resource` and the `also_count` further names in `also`, and collects them in `ret`, in
 * this order. Returns REDLOCK_OK; or REDLOCK_EINVAL, with a report in `refusal` (may be NULL), if
 * there are too many, one is empty or too long, or two are equal. */
int rl_names_collect(struct redlock_client *rl, const char *resource, const char *const *also,
                     size_t also_count, struct rl_names *ret, redlock_report_t **refusal)
{
    ret->count = 0;
    int error = add_name(rl, ret, "resource", resource, refusal);
    if (error != REDLOCK_OK || also_count == 0)
        return error;
    if (also == NULL)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "%zu further resources, but no list of their names", also_count);
    if (also_count > RL_KEYS_MAX - 1)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "%zu further resources: give at most %d", also_count,
                                RL_KEYS_MAX - 1);
    while (ret->count <= also_count) {
        char what[48];
        snprintf(what, sizeof what, "further resource number %u", ret->count);
        error = add_name(rl, ret, what, also[ret->count - 1], refusal);
        if (error != REDLOCK_OK)
            return error;
    }
    return check_duplicates(rl, ret, refusal);
}

/* Returns whether `key` is the key of the resource `name` of `len` bytes: the configured prefix and
 * the name. */
static bool is_key_of(const struct redlock_client *rl, const char *name, size_t len,
                      struct rl_arg key)
{
    size_t prefix_len = rl->config->prefix_len;

    return key.len == prefix_len + len && memcmp(key.data, rl->config->prefix, prefix_len) == 0 &&
           memcmp(key.data + prefix_len, name, len) == 0;
}

/* Returns whether the key has the form of the key of a line. */
bool rl_names_is_line(struct rl_arg key)
{
    static const char suffix[] = RL_LINE_SUFFIX;
    const size_t len = sizeof suffix - 1;

    return key.len >= len && memcmp(key.data + key.len - len, suffix, len) == 0;
}

/* Checks that no name has a key of the form of a line's. Returns REDLOCK_OK; or REDLOCK_EINVAL with
 * a report in `refusal` (may be NULL). */
static int check_line(struct redlock_client *rl, const struct rl_names *names,
                      redlock_report_t **refusal)
{
    char key[RL_KEY_MAX];
    size_t prefix_len = rl->config->prefix_len;

    memcpy(key, rl->config->prefix, prefix_len);
    for (unsigned i = 0; i < names->count; i++) {
        memcpy(key + prefix_len, names->list[i], names->lens[i]);
        if (rl_names_is_line((struct rl_arg){key, prefix_len + names->lens[i]}))
            return rl_report_refuse(
                rl, refusal, REDLOCK_EINVAL,
                "'%.80s' is the key of a line on the servers, with " RL_LINE_SUFFIX
                " at its end; choose another name",
                names->list[i]);
    }
    return REDLOCK_OK;
}

/* Checks that no name has the key of the fence record as its key, and if `permits` is not 0, that
 * none of that many slots of the single name has; and that no name has the key of a line. Returns
 * REDLOCK_OK; or REDLOCK_EINVAL with a report in `refusal` (may be NULL). */
int rl_names_check_keys(struct redlock_client *rl, const struct rl_names *names, uint32_t permits,
                        redlock_report_t **refusal)
{
    static const char HINT[] = "the key of the fence record on the servers: choose another name, "
                               "or another fence key";
    const struct rl_arg record = {rl->config->fence_key, rl->config->fence_key_len};
    struct rl_arg semaphore;
    uint16_t slot;

    for (unsigned i = 0; permits == 0 && i < names->count; i++) {
        if (is_key_of(rl, names->list[i], names->lens[i], record))
            return rl_report_refuse(rl, refusal, REDLOCK_EINVAL, "'%.80s' is %s", names->list[i],
                                    HINT);
    }
    if (permits != 0 && rl_slot_of(record, &semaphore, &slot) && slot < permits &&
        is_key_of(rl, names->list[0], names->lens[0], semaphore))
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL, "slot %u of '%.80s' is %s",
                                (unsigned)slot, names->list[0], HINT);
    return check_line(rl, names, refusal);
}

/* Compares the keys that `a` and `b` point to byte by byte, for qsort(). Two keys of one lock are
 * never equal. */
static int by_key(const void *a, const void *b)
{
    const struct rl_arg *left = a, *right = b;
    int order = memcmp(left->data, right->data, left->len < right->len ? left->len : right->len);

    return order != 0 ? order : left->len < right->len ? -1 : 1;
}

/* Makes the keys of the handle's names, prefix and name, in ascending order. Returns false without
 * memory, which only several names need. rl_names_keys_done() frees the keys. */
bool rl_names_keys(const struct redlock_lock *handle, struct rl_keys *ret)
{
    const struct redlock_client *rl = handle->shard->rl;
    size_t prefix_len = rl->config->prefix_len;
    const char *name = handle->bytes;

    ret->count = handle->names;
    ret->allocated = NULL;
    char *to = ret->bytes;
    if (handle->names > 1)
        to = ret->allocated = rl_alloc(&rl->mem, handle->names * prefix_len + handle->names_len);
    if (to == NULL)
        return false;
    for (unsigned i = 0; i < handle->names; i++) {
        size_t len = handle->names > 1 ? strlen(name) : handle->names_len - 1u;
        memcpy(to, rl->config->prefix, prefix_len);
        memcpy(to + prefix_len, name, len);
        ret->list[i] = (struct rl_arg){to, prefix_len + len};
        to += prefix_len + len;
        name += len + 1;
    }
    if (handle->names > 1)
        qsort(ret->list, ret->count, sizeof ret->list[0], by_key);
    return true;
}

/* Frees the memory of keys that rl_names_keys() has made. */
void rl_names_keys_done(const struct redlock_lock *handle, struct rl_keys *keys)
{
    rl_free(&handle->shard->rl->mem, keys->allocated);
}

/* Returns the name that another client held when an attempt on several names failed; NULL if it is
 * not known which. The engine knows the place of its key, from 1 on, in the ascending order of the
 * keys; keys and names have the same order, because all keys begin with the same prefix. */
const char *rl_names_taken(const struct redlock_lock *handle)
{
    unsigned taken = rl_lock_taken(&handle->lock);

    for (unsigned i = 0; i < handle->names && taken != 0; i++) {
        const char *name = redlock_lock_resource(handle, i);
        unsigned smaller = 0;
        for (unsigned j = 0; j < handle->names; j++)
            smaller += strcmp(redlock_lock_resource(handle, j), name) < 0;
        if (smaller + 1 == taken)
            return name;
    }
    return NULL;
}

/* Public function: returns the name number `index` (from 0 on) of the lock's resources; NULL if
 * `handle` is NULL or there are fewer names. The handle owns the text. */
REDLOCK_API const char *redlock_lock_resource(const redlock_lock_t *handle, size_t index)
{
    if (handle == NULL || index >= handle->names)
        return NULL;
    const char *name = handle->bytes;
    for (; index > 0; index--)
        name += strlen(name) + 1;
    return name;
}
