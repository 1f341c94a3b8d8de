/* SPDX-License-Identifier: MIT
 * Ranks the nodes of a resource, and remembers the contention for it. struct rl_contention is the
 * memory of one client for one resource.
 *
 * The rl_contention_note_*() functions record what has happened: an attempt was denied or won, a
 * server sent a notification, this client began to acquire or has released. The other functions
 * answer from that memory: which node an attempt asks first, and how long the client waits. The
 * ranking is the same for all clients, so contenders ask the same preferred node first and do not
 * split the votes.
 *
 * A series is a number of acquisitions in a row that this client begins right after its own
 * releases, so that no other contender gets a chance. To yield is to let the others begin first,
 * after a release. `round_trip_ns` is the usual round trip of the servers, `random` a random word,
 * and `now_ns` the boot clock, in nanoseconds. */
#include "core/contention.h"

#include <string.h>

/* The client yields after a series of this many acquisitions. More than 100, so that for a client
 * without contenders fewer than one in a hundred acquisitions are delayed. */
#define SERIES_MAX 128
/* The client also yields when the series has lasted for SERIES_MAX_NS, but not before
 * SERIES_TRIPS_MIN round trips: a yield takes up to four of them, which must stay a small part of
 * the time. */
#define SERIES_MAX_NS    RL_SECOND
#define SERIES_TRIPS_MIN 128
#define PAUSE_MAX_NS     (16 * RL_MS) /* bound of the pause after a split vote */
/* Largest rl_contention.splits: the bound of the pause is then 32 round trips. */
#define SPLITS_MAX        5
#define SLOTS_KNOWN       64           /* slots whose state is remembered: bits of a word */
#define ROUND_TRIP_MIN_NS (50 * RL_US) /* assumed if the round trip is shorter or unknown (0) */

/* Initializes the memory, with nothing noted, and writes the ranking to `order`: the nodes 0 to
 * `nodes` - 1, by falling score. `order` and `scores` have `nodes` elements. The memory keeps using
 * `order`. */
void rl_contention_init(struct rl_contention *contention, uint8_t *order, unsigned nodes,
                        const uint64_t *scores)
{
    RL_ASSERT(nodes >= 1 && nodes <= RL_NODES_MAX);
    memset(contention, 0, sizeof *contention);
    contention->order = order;
    contention->nodes = (uint8_t)nodes;
    for (unsigned i = 0; i < nodes; i++) {
        unsigned at = i;
        for (; at > 0 && scores[order[at - 1]] < scores[i]; at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
}

/* Returns whether contention is recent: other contenders were noticed, by a denial or a
 * notification, within the last RL_CONTENTION_RECENT_NS. */
bool rl_contention_is_recent(const struct rl_contention *contention, uint64_t now_ns)
{
    return contention->recent_until_ns > now_ns;
}

/* Notes other contenders: contention is recent for RL_CONTENTION_RECENT_NS from `now_ns` on. */
void rl_contention_note(struct rl_contention *contention, uint64_t now_ns)
{
    contention->recent_until_ns = rl_add_sat(now_ns, RL_CONTENTION_RECENT_NS);
}

/* Notes an attempt that was denied. `split`: some node has granted the attempt. */
void rl_contention_note_denial(struct rl_contention *contention, bool split, uint64_t now_ns)
{
    rl_contention_note(contention, now_ns);
    if (split && contention->splits < SPLITS_MAX)
        contention->splits++;
}

/* Notes the start of an acquisition, before its first attempt. Continues the series if the last
 * release of this client was at most two round trips ago; else begins a new one. If contention is
 * no longer recent, forgets the split votes. */
void rl_contention_note_start(struct rl_contention *contention, uint64_t round_trip_ns,
                              uint64_t now_ns)
{
    uint64_t soon_ns = 2 * rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);

    if (contention->released_ns == 0 || rl_sub_sat(now_ns, contention->released_ns) > soon_ns)
        contention->in_a_row = 0;
    else if (contention->in_a_row < UINT8_MAX)
        contention->in_a_row++;
    if (contention->in_a_row == 0)
        contention->series_ns = now_ns;
    if (!rl_contention_is_recent(contention, now_ns))
        contention->splits = 0;
}

/* Returns whether the acquisition that begins is the 1st, 8th or 64th of the series after the first
 * one. A client whose requests always arrive right after its own releases is never denied, and
 * notices only in that way that others wait. */
bool rl_contention_counts_waiters(const struct rl_contention *contention)
{
    unsigned n = contention->in_a_row;

    return n == 1 || n == 8 || n == 64;
}

/* Notes that an attempt has won: forgets the split votes. */
void rl_contention_note_grant(struct rl_contention *contention)
{
    contention->splits = 0;
}

/* Notes that this client sends a release. Sets `yield_until_ns` to two to four round trips from
 * now, in three cases: contention is recent; the series has SERIES_MAX acquisitions; or it has
 * reached its limit of time. The yield ends at random within its last round trip. */
void rl_contention_note_release(struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random, uint64_t now_ns)
{
    uint64_t unit_ns = rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS); /* one round trip */
    bool recent = rl_contention_is_recent(contention, now_ns);
    uint64_t series_max_ns = rl_max_u64(SERIES_MAX_NS, SERIES_TRIPS_MIN * unit_ns);
    bool for_long =
        contention->in_a_row > 0 && rl_sub_sat(now_ns, contention->series_ns) >= series_max_ns;

    contention->released_ns = now_ns;
    if (!recent && contention->in_a_row < SERIES_MAX && !for_long)
        return;
    contention->in_a_row = 0;
    contention->series_ns = now_ns;
    /* A waiter that is notified of this release and begins after the longest random delay reaches
     * the preferred node after two and a half round trips, and the other nodes after three and a
     * half. A request of this client arrives half a round trip after it is sent. If contention is
     * recent, this client asks the preferred node first, too. */
    contention->yield_until_ns = rl_add_sat(now_ns, (recent ? 2 : 3) * unit_ns + random % unit_ns);
}

/* Returns the random delay in nanoseconds of an attempt after a notification that all waiters have
 * got: less than one round trip. */
uint64_t rl_contention_delay_ns(uint64_t round_trip_ns, uint64_t random)
{
    return random % rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);
}

/* Returns the random pause in nanoseconds after an attempt that has split the votes: less than one
 * round trip, doubled for each split vote since the last grant, and less than PAUSE_MAX_NS. 0
 * without a split vote. */
uint64_t rl_contention_pause_ns(const struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random)
{
    uint64_t most_ns = rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);

    if (contention->splits == 0)
        return 0;
    for (uint32_t i = 0; i < contention->splits && most_ns < PAUSE_MAX_NS; i++)
        most_ns *= 2;
    return random % rl_min_u64(most_ns, PAUSE_MAX_NS);
}

/* Returns the position of one of the bits that are 1 in `set`, which is not 0. The bits are counted
 * from 0 on, the lowest first, and `n` is taken modulo their number. */
static unsigned nth_bit(uint64_t set, uint64_t n)
{
    for (n %= (unsigned)__builtin_popcountll(set); n > 0; n--)
        set &= set - 1;
    return (unsigned)__builtin_ctzll(set);
}

/* Returns the slot, 0 to `count` - 1, at which a search for a permit begins; `count` > 0 is the
 * number of permits. If contention is not recent and this client has released slots: one of these,
 * which then no longer counts as released. Else a random one of the slots that this client does not
 * hold. If the memory does not know all slots, because there are more than SLOTS_KNOWN, or if this
 * client holds all: any random slot. */
unsigned rl_contention_slot(struct rl_contention *contention, unsigned count, uint64_t random,
                            uint64_t now_ns)
{
    uint64_t all = count < SLOTS_KNOWN ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
    uint64_t left = contention->slots_released & all, free = all & ~contention->slots_held;

    if (left != 0 && !rl_contention_is_recent(contention, now_ns)) {
        unsigned slot = nth_bit(left, random);
        contention->slots_released &= ~(UINT64_C(1) << slot);
        return slot;
    }
    if (count > SLOTS_KNOWN || free == 0)
        return (unsigned)(random % count);
    return nth_bit(free, random);
}

/* Notes that this client has acquired (`held`) or released (not `held`) the slot. Ignores slots
 * from SLOTS_KNOWN on. */
void rl_contention_slot_held(struct rl_contention *contention, unsigned slot, bool held)
{
    if (slot >= SLOTS_KNOWN)
        return;
    uint64_t bit = UINT64_C(1) << slot;
    contention->slots_held = held ? contention->slots_held | bit : contention->slots_held & ~bit;
    contention->slots_released =
        held ? contention->slots_released & ~bit : contention->slots_released | bit;
}

/* Returns the first node of the ranking that is in `candidates`, as a set of one node. 0:
 * `candidates` is empty. */
rl_nodes rl_contention_preferred(const struct rl_contention *contention, rl_nodes candidates)
{
    for (unsigned i = 0; i < contention->nodes; i++) {
        if ((candidates & RL_NODE(contention->order[i])) != 0)
            return RL_NODE(contention->order[i]);
    }
    return 0;
}
