/* SPDX-License-Identifier: MIT
 * Ends a verification and applies its result to the verified lock. */
#include "api/verify.h"

#include "api/dispatch.h"
#include "api/handle.h"

void rl_verify_done(struct redlock *rl, struct redlock_lock *handle, int status)
{
    struct redlock_lock *subject = handle->subject;
    struct rl_lock *held = &subject->lock;

    if (status == REDLOCK_ELOST && rl_lock_is_held(held))
        rl_dispatch_note_absent(subject, rl_lock_round(&handle->lock)->denied);
    bool ended_early = status == REDLOCK_ECANCELED || status == REDLOCK_ECLOSED;
    if (!ended_early && redlock_lock_check(subject, 0) == REDLOCK_ELOST)
        status = REDLOCK_ELOST;
    rl_dispatch_done(rl, handle, status);
}
