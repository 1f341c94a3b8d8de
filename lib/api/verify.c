/* SPDX-License-Identifier: MIT
 * Ends a verification and applies its result to the verified lock. */
#include "api/verify.h"

#include "api/dispatch.h"
#include "api/handle.h"

/* Ends the verification `handle`, whose round has ended with `status`. After ELOST notes in the
 * engine which nodes have denied the verified lock, handle->subject, which may lose the lock at
 * once. The result is ELOST as well if the verified lock has reached its deadline or was released
 * meanwhile, unless the verification was cancelled or the client closed. Mutex held. */
void rl_verify_done(struct redlock_client *rl, struct redlock_lock *handle, int status)
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
