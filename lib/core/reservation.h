/* SPDX-License-Identifier: MIT
 * How a lock of several resources waits in the queues of its own client. The lock has one entry in
 * the queue of each of its resources. Its first attempt begins when all its resources are free and
 * each earlier entry in these queues may be passed. To reserve a resource is to keep later entries
 * waiting behind that of the lock, although the resource is free.
 *
 * If the lock always reserved the resources that are free, a caller that holds one of its resources
 * and waits for another would cause a deadlock. If the lock never reserved any, it might never
 * begin where all resources are busy. So the lock alternates. Its wait consists of phases 0, 1, 2
 * and so on. In the even phases it reserves; in the odd ones it lets later entries pass. Each phase
 * is twice as long as the one before, and phase 0 lasts for RL_RESERVATION_NS. The functions take
 * `waited_ns`, how long the lock has waited in its queues, in nanoseconds. */
#ifndef RL_CORE_RESERVATION_H
#define RL_CORE_RESERVATION_H

#include "core/types.h"

#define RL_RESERVATION_NS (300 * RL_MS) /* length of phase 0: 300 ms */

/* Returns the number of the phase in which a lock is that has waited for `waited_ns`: 0 or more. */
static inline unsigned rl_reservation_phase(uint64_t waited_ns)
{
    /* Phase p begins after 2^p - 1 times RL_RESERVATION_NS, so p is a logarithm to base 2. */
    return 63u - (unsigned)__builtin_clzll(waited_ns / RL_RESERVATION_NS + 1);
}

/* Returns whether a lock that has waited for `waited_ns` reserves those of its resources that are
 * free: true in phases 0, 2, 4 and so on. */
static inline bool rl_reservation_is_on(uint64_t waited_ns)
{
    return rl_reservation_phase(waited_ns) % 2 == 0;
}

/* Returns the time in nanoseconds until the phase ends in which a lock is that has waited for
 * `waited_ns`; always more than 0. */
static inline uint64_t rl_reservation_left_ns(uint64_t waited_ns)
{
    unsigned phase = rl_reservation_phase(waited_ns);

    return ((UINT64_C(2) << phase) - 1) * RL_RESERVATION_NS - waited_ns;
}

#endif
