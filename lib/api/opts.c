/* SPDX-License-Identifier: MIT
 * The options of an acquisition: fills them for callers that cannot use the inline function of the
 * header, and ends the events of options with which nothing was started. */
#include "api/opts.h"
#include "platform/callback.h"

/* Public function: writes the default options with this TTL into *ret_opts, of which the caller has
 * `size` bytes. Returns REDLOCK_OK; or REDLOCK_EINVAL if ret_opts is NULL or `size` is too small
 * for the TTL. */
REDLOCK_API int redlock_opts_init(redlock_opts_t *ret_opts, size_t size, uint64_t ttl_ms)
{
    if (ret_opts == NULL || size < RL_OPTS_SIZE_MIN)
        return REDLOCK_EINVAL;
    memset(ret_opts, 0, size);
    ret_opts->size = size;
    ret_opts->ttl_ms = ttl_ms;
    return REDLOCK_OK;
}

/* Runs the event_end_fn of options whose call was refused, if they have one: no event follows.
 * Ignores NULL, and options too small to contain the field. The mutex is not held. */
void rl_opts_refused(const redlock_opts_t *opts)
{
    size_t size = offsetof(redlock_opts_t, event_end_fn) + sizeof opts->event_end_fn;

    if (opts != NULL && opts->size >= size && opts->event_end_fn != NULL)
        rl_call_event_end(opts->event_end_fn, opts->event_userdata);
}
