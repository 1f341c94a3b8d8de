/* SPDX-License-Identifier: MIT
 * Permits of a semaphore: checks the options, and returns the number and the name of a slot. */
#include "api/permit.h"

#include "api/handle.h"
#include "api/report.h"
#include "engine/slot.h"

#include <string.h>

static_assert(REDLOCK_PERMITS_MAX == RL_PERMITS_MAX, "one limit"); /* public and internal */

/* Checks that `permits` is 1 to RL_PERMITS_MAX, and that the name of the last slot,
 * `resource{#permits-1}`, is not too long. Returns REDLOCK_OK; or REDLOCK_EINVAL with a report in
 * `refusal` (may be NULL). */
static int check_permits(struct redlock_client *rl, const char *resource, uint32_t permits,
                         redlock_report_t **refusal)
{
    char bytes[RL_SLOT_KEY_MAX];
    size_t len = strlen(resource);

    if (permits == 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.permits is missing: give the number of permits of %.64s",
                                resource);
    if (permits > RL_PERMITS_MAX)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.permits is %u: a semaphore has at most %d permits",
                                (unsigned)permits, RL_PERMITS_MAX);
    size_t key_len = rl_slot_key(bytes, (struct rl_arg){resource, len}, permits - 1).len;
    if (key_len > RL_RESOURCE_MAX)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "resource is longer than %d bytes with {#%u} behind it: shorten or "
                                "hash it",
                                RL_RESOURCE_MAX, (unsigned)(permits - 1));
    return REDLOCK_OK;
}

/* Checks opts->kind; and for a permit of a semaphore its number of permits, and that the call
 * neither names further resources nor adopts a lock (`adopt`). Returns REDLOCK_OK; or
 * REDLOCK_EINVAL with a report in `refusal` (may be NULL). Mutex held. */
int rl_permit_check(struct redlock_client *rl, const char *resource, const redlock_opts_t *opts,
                    bool adopt, redlock_report_t **refusal)
{
    if (opts->kind != REDLOCK_KIND_EXCLUSIVE && opts->kind != REDLOCK_KIND_PERMIT)
        return rl_report_refuse(
            rl, refusal, REDLOCK_EINVAL,
            "opts.kind is %u: it must be REDLOCK_KIND_EXCLUSIVE or REDLOCK_KIND_PERMIT",
            (unsigned)opts->kind);
    if (opts->kind == REDLOCK_KIND_EXCLUSIVE && opts->permits != 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.permits is %u, but opts.kind is not REDLOCK_KIND_PERMIT",
                                (unsigned)opts->permits);
    if (opts->kind == REDLOCK_KIND_EXCLUSIVE)
        return REDLOCK_OK;
    if (opts->also_count != 0)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "opts.also is for exclusive locks: acquire permits one by one");
    if (adopt)
        return rl_report_refuse(rl, refusal, REDLOCK_EINVAL,
                                "a permit is adopted as the lock on its slot: give the name that "
                                "redlock_slot_name() returns, and leave opts.kind 0");
    return check_permits(rl, resource, opts->permits, refusal);
}

/* Public function: returns the slot of a permit, from 0 on; REDLOCK_EINVAL if `handle` is NULL or
 * no permit. */
REDLOCK_API int redlock_lock_slot(const redlock_lock_t *handle)
{
    if (handle == NULL || rl_lock_terms(&handle->lock)->permits == 0)
        return REDLOCK_EINVAL;
    return rl_lock_slot(&handle->lock);
}

/* Public function: writes the name of a slot, `resource{#slot}`, into ret_name, which has `size`
 * bytes. Returns REDLOCK_OK; or REDLOCK_EINVAL if an argument is NULL or out of range, or the name
 * is too long. */
REDLOCK_API int redlock_slot_name(char *ret_name, size_t size, const char *resource, uint32_t slot)
{
    char bytes[RL_SLOT_KEY_MAX];
    size_t len = resource != NULL ? strnlen(resource, RL_RESOURCE_MAX + 1) : 0;

    if (ret_name == NULL || len == 0 || len > RL_RESOURCE_MAX || slot >= RL_PERMITS_MAX)
        return REDLOCK_EINVAL;
    struct rl_arg key = rl_slot_key(bytes, (struct rl_arg){resource, len}, slot);
    if (key.len > RL_RESOURCE_MAX || key.len >= size)
        return REDLOCK_EINVAL;
    memcpy(ret_name, key.data, key.len);
    ret_name[key.len] = '\0';
    return REDLOCK_OK;
}
