/* SPDX-License-Identifier: MIT
 * How a lock of several resources waits behind others of its own client. It begins when all of them
 * are free at once. If it kept those that are free until then, a caller that holds one of them and
 * wants a second one would wait for it, and it for him, for ever; if it kept none, it would never
 * have its turn where all are busy. So it does both by turns, each time for twice as long. */
#ifndef RL_CORE_RESERVATION_H
#define RL_CORE_RESERVATION_H

#include "core/types.h"

#define RL_RESERVATION_NS (300 * RL_MS)

static inline unsigned rl_reservation_phase(uint64_t waited_ns)
{
    return 63u - (unsigned)__builtin_clzll(waited_ns / RL_RESERVATION_NS + 1);
}

/* After so much waiting: it keeps what is free; else those behind it may pass. */
static inline bool rl_reservation_is_on(uint64_t waited_ns)
{
    return rl_reservation_phase(waited_ns) % 2 == 0;
}

/* How long until that changes. */
static inline uint64_t rl_reservation_left_ns(uint64_t waited_ns)
{
    unsigned turn = rl_reservation_phase(waited_ns);

    return ((UINT64_C(2) << turn) - 1) * RL_RESERVATION_NS - waited_ns;
}

#endif
