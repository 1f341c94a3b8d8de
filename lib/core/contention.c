/* SPDX-License-Identifier: MIT
 * Ranks the nodes of a resource, and remembers the contention for it. struct rl_contention is the
 * memory of one client for one resource.
 *
 * The rl_contention_note_*() functions record what has happened: an attempt was denied or won, a
 * server sent a notification, this client began to acquire or has released. The other functions
 * answer from that memory: which node an attempt asks first, whether it asks all nodes at once, and
 * how long the client waits. The ranking is the same for all clients, so contenders ask the same
 * preferred node first and do not split the votes. A node whose votes were often those of a
 * minority is skipped: the next node of the ranking is preferred instead, as long as contention is
 * recent.
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
/* A node is skipped when rl_contention.misses or rl_contention.stale has reached this number. */
#define PREFERRED_MISSES_MAX 3
/* The smoothing of rl_contention.contenders: the latest value has the weight 1 / CONTENDERS_SHARE.
 */
#define CONTENDERS_SHARE 4
/* The value of rl_contention.contenders that stands for one contender. */
#define CONTENDERS_UNIT 8u
/* Largest rl_contention.request_all_backoff: the probability is at least 1/32 of the usual one. */
#define REQUEST_ALL_BACKOFF_MAX 5
/* After this many notifications without a grant, the largest part of the delay is halved. */
#define DELAY_NOTIFICATIONS 32
#define PAUSE_MAX_NS        (16 * RL_MS) /* bound of the pause after a split vote */
/* What one split vote adds to rl_contention.splits. A denial without a split subtracts 1, so this
 * many denials cancel one split. */
#define SPLIT_WEIGHT 4u
/* Largest rl_contention.splits. With five splits, the bound of the pause is 32 round trips. */
#define SPLITS_MAX        (5 * SPLIT_WEIGHT)
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

/* Returns number + 1, at most UINT8_MAX. */
static uint8_t increment(uint8_t number)
{
    return (uint8_t)(number + (number < UINT8_MAX));
}

/* Returns whether contention is recent: other contenders were noticed, by a denial or a
 * notification, within the last RL_CONTENTION_RECENT_NS. */
bool rl_contention_is_recent(const struct rl_contention *contention, uint64_t now_ns)
{
    return contention->recent_until_ns > now_ns;
}

/* Makes contention recent, for RL_CONTENTION_RECENT_NS from `now_ns` on. */
static void note_contention(struct rl_contention *contention, uint64_t now_ns)
{
    contention->recent_until_ns = rl_add_sat(now_ns, RL_CONTENTION_RECENT_NS);
}

/* Adds the node of `first` to the skipped nodes, so that another one is preferred. If all nodes
 * would be skipped then, skips only this one. Starts the counts of misses and stale denials again.
 */
static void skip_preferred(struct rl_contention *contention, rl_nodes first)
{
    contention->skipped |= first;
    if (contention->skipped == rl_nodes_all(contention->nodes))
        contention->skipped = first;
    contention->misses = contention->stale = 0;
}

/* Notes an attempt that was denied. `split`: some node has granted the attempt. `first` is the node
 * that was asked first, if it did not deny; that is a miss, because the holder may have won without
 * that node. After PREFERRED_MISSES_MAX misses in a row of the same node, the node is skipped. 0:
 * the node asked first did deny. RL_CONTENTION_UNKNOWN: the attempt does not show whether it did;
 * the misses stay as they are. */
void rl_contention_note_denial(struct rl_contention *contention, bool split, rl_nodes first,
                               uint64_t now_ns)
{
    note_contention(contention, now_ns);
    contention->contended_in_a_row = 0;
    contention->has_split = contention->has_split || split;
    /* Two contenders that split the votes may also get plain denials in between, so a denial
     * cancels only a part of a split. */
    if (split)
        contention->splits = (uint8_t)rl_min_u64(contention->splits + SPLIT_WEIGHT, SPLITS_MAX);
    else if (contention->splits > 0)
        contention->splits--;
    if (first == RL_CONTENTION_UNKNOWN)
        return;
    contention->misses =
        first != 0 && first == contention->preferred ? increment(contention->misses) : first != 0;
    contention->preferred = first;
    if (contention->misses >= PREFERRED_MISSES_MAX)
        skip_preferred(contention, first);
}

/* Returns whether the preferred node is doubtful: one more miss in a row, and it is skipped. Then
 * the holder has probably won without that node. */
bool rl_contention_doubts_preferred(const struct rl_contention *contention)
{
    return contention->misses >= PREFERRED_MISSES_MAX - 1;
}

/* Notes whether the node of `first`, which was asked first, has granted an attempt that has won. A
 * grant sets the counts of misses and stale denials to 0. A denial is stale, because the key on
 * that node belongs to no holder. After PREFERRED_MISSES_MAX stale denials in a row, the node is
 * skipped. */
void rl_contention_note_preferred(struct rl_contention *contention, rl_nodes first, bool granted)
{
    contention->stale = granted ? 0 : increment(contention->stale);
    if (granted)
        contention->misses = 0;
    else if (contention->stale >= PREFERRED_MISSES_MAX)
        skip_preferred(contention, first);
}

/* Notes a notification that the key has changed: contention is recent, and the number of
 * notifications since the last grant grows. */
void rl_contention_note_notification(struct rl_contention *contention, uint64_t now_ns)
{
    note_contention(contention, now_ns);
    if (contention->notifications < UINT16_MAX)
        contention->notifications++;
}

/* Notes the start of an acquisition, before its first attempt. Continues the series if the last
 * release of this client was at most two round trips ago; else begins a new one. If contention is
 * no longer recent, forgets the skipped nodes, the split votes and the stale denials. */
void rl_contention_note_start(struct rl_contention *contention, uint64_t round_trip_ns,
                              uint64_t now_ns)
{
    uint64_t soon_ns = 2 * rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);

    if (contention->released_ns == 0 || rl_sub_sat(now_ns, contention->released_ns) > soon_ns)
        contention->in_a_row = 0;
    else
        contention->in_a_row = increment(contention->in_a_row);
    if (contention->in_a_row == 0)
        contention->series_ns = now_ns;
    if (!rl_contention_is_recent(contention, now_ns)) {
        contention->skipped = 0;
        contention->splits = 0;
        contention->has_split = false;
        contention->stale = 0;
        contention->line.refused = 0;
    }
}

/* Notes that an attempt has won: forgets the split votes, and counts the notifications from 0
 * again. Adjusts the estimate of the number of contenders by the notifications since the last
 * grant: with c contenders that win equally often, a client gets about c of them. Without a
 * notification, the estimate stays as it is. */
void rl_contention_note_grant(struct rl_contention *contention)
{
    uint32_t latest = contention->notifications * CONTENDERS_UNIT; /* in the unit of `contenders` */

    contention->splits = 0;
    contention->has_split = false;
    contention->notifications = 0;
    if (latest == 0)
        return;
    if (contention->contenders == 0)
        contention->contenders = latest;
    else if (latest > contention->contenders)
        contention->contenders +=
            (latest - contention->contenders + CONTENDERS_SHARE - 1) / CONTENDERS_SHARE;
    else
        contention->contenders -=
            (contention->contenders - latest + CONTENDERS_SHARE - 1) / CONTENDERS_SHARE;
}

/* Notes that some node has denied an attempt that has won: there may be other contenders. Until the
 * client has yielded, `contended_in_a_row` is the limit of its series. */
void rl_contention_note_contender(struct rl_contention *contention)
{
    contention->contended = true;
}

/* Notes that this client sends a release. Sets `yield_until_ns` to two to four round trips from
 * now, in three cases: contention is recent; the series has reached its limit of acquisitions; or
 * it has reached its limit of time. The limit is SERIES_MAX acquisitions, or `contended_in_a_row`
 * since a node has denied an attempt that won. The yield ends at random within its last round trip.
 */
void rl_contention_note_release(struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random, uint64_t now_ns)
{
    uint64_t unit_ns = rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS); /* one round trip */
    bool recent = rl_contention_is_recent(contention, now_ns);
    uint32_t limit = contention->contended ? contention->contended_in_a_row : SERIES_MAX;

    uint64_t series_max_ns = rl_max_u64(SERIES_MAX_NS, SERIES_TRIPS_MIN * unit_ns);
    bool for_long =
        contention->in_a_row > 0 && rl_sub_sat(now_ns, contention->series_ns) >= series_max_ns;

    contention->released_ns = now_ns;
    if (!recent && contention->in_a_row < limit && !for_long)
        return;
    /* The key that caused the denial may be that of a client that has ended: yield less often. */
    if (!recent && contention->contended)
        contention->contended_in_a_row =
            contention->contended_in_a_row == 0
                ? 1
                : (uint8_t)rl_min_u64(2u * contention->contended_in_a_row, SERIES_MAX);
    contention->in_a_row = 0;
    contention->series_ns = now_ns;
    contention->contended = false;
    /* A waiter that is notified of this release reaches the preferred node after one and a half
     * round trips, and the other nodes after two and a half. If contention is recent, this client
     * asks the preferred node first, too. */
    contention->yield_until_ns = rl_add_sat(now_ns, (recent ? 2 : 3) * unit_ns + random % unit_ns);
}

/* Returns the square root of `value`, rounded down. */
static uint32_t square_root(uint64_t value)
{
    uint32_t root = 0;

    for (uint32_t bit = UINT32_C(1) << 31; bit != 0; bit >>= 1) {
        uint64_t next = root | bit;
        if (next * next <= value)
            root |= bit;
    }
    return root;
}

/* Returns whether the attempt after a notification asks all nodes at once, at random. Always false
 * without an estimate of contenders, after a split vote since the last grant, and if a node is
 * doubtful or skipped. c is the estimated number of contenders, n the number of notifications since
 * this client's last grant, at most 2c. The probability is (n/c)^2 / c^(3/4), halved for each unit
 * of `request_all_backoff`. So a client that has waited for as long as usual (n = c) has the
 * probability 1 in c^(3/4). It is not 1 in c, because a client estimates c by its own grants: one
 * that happens to win would estimate fewer contenders, and win even more often. If c is 1, the
 * probability is 3 in 4, halved in the same way. */
bool rl_contention_requests_all(const struct rl_contention *contention, uint64_t random)
{
    uint64_t contenders = contention->contenders;

    /* A doubtful or skipped node may not grant, so asking all nodes at once wins less often. */
    if (contenders == 0 || contention->has_split || contention->skipped != 0 ||
        contention->misses != 0)
        return false;
    /* This client seems to be the only contender: the probability is 3 in 4. If the client always
     * asked all nodes at once, it would not notice others. */
    if (contenders == CONTENDERS_UNIT)
        return random % (UINT64_C(4) << contention->request_all_backoff) < 3;
    /* c^(3/4) in the unit of `contenders`, that is, times CONTENDERS_UNIT. */
    uint64_t root = square_root(contenders * square_root(contenders * CONTENDERS_UNIT));
    /* n in the same unit. */
    uint64_t patience = rl_min_u64(CONTENDERS_UNIT * contention->notifications, 2 * contenders);
    uint64_t range = root * contenders * contenders << contention->request_all_backoff;
    return random % range < CONTENDERS_UNIT * patience * patience;
}

/* Notes whether an attempt that asked all nodes at once has won. A failure halves the probability
 * of further ones, a success doubles it again. */
void rl_contention_note_request_all(struct rl_contention *contention, bool won)
{
    if (!won && contention->request_all_backoff < REQUEST_ALL_BACKOFF_MAX)
        contention->request_all_backoff++;
    else if (won && contention->request_all_backoff > 0)
        contention->request_all_backoff--;
}

/* Returns the delay in nanoseconds of an attempt after a notification that asks the preferred node
 * first: 9/16 of a round trip, falling towards 1/16 with each notification, plus a random part of
 * less than 1/16. 0: there is no estimate of contenders and at most one notification so far.
 *
 * The delay depends on the number of notifications alone, not on the estimate of contenders, which
 * is too low in clients that win often. After a second notification the delay is never 0:
 * otherwise, among clients that have waited for long, the one with the longest round trip would be
 * the last each time. */
uint64_t rl_contention_delay_ns(const struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random)
{
    uint64_t unit_ns = rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);

    if (contention->contenders == 0 && contention->notifications <= 1)
        return 0;
    return unit_ns / 16 + random % (unit_ns / 16) +
           unit_ns * DELAY_NOTIFICATIONS / 2 / (DELAY_NOTIFICATIONS + contention->notifications);
}

/* Returns the number of split votes since the last grant, rounded up after the later denials
 * without a split were subtracted; 0 to 5. */
unsigned rl_contention_splits(const struct rl_contention *contention)
{
    return (contention->splits + SPLIT_WEIGHT - 1) / SPLIT_WEIGHT;
}

/* Returns the random pause in nanoseconds after an attempt that has split the votes: less than one
 * round trip, doubled for each split vote, and less than PAUSE_MAX_NS. 0 without a split vote. */
uint64_t rl_contention_pause_ns(const struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random)
{
    uint64_t most_ns = rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);

    if (contention->splits == 0)
        return 0;
    for (uint32_t i = 0; i < rl_contention_splits(contention) && most_ns < PAUSE_MAX_NS; i++)
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

/* Notes that other clients wait in the line of the resource: contention is recent. */
void rl_contention_note_line(struct rl_contention *contention, uint64_t now_ns)
{
    note_contention(contention, now_ns);
}

/* Returns the first node of the ranking that is in `candidates`, skipped or not, as a set of one
 * node; 0: `candidates` is empty. */
rl_nodes rl_contention_first(const struct rl_contention *contention, rl_nodes candidates)
{
    for (unsigned i = 0; i < contention->nodes; i++) {
        if ((candidates & RL_NODE(contention->order[i])) != 0)
            return RL_NODE(contention->order[i]);
    }
    return 0;
}

/* Returns the first node of the ranking that is in `candidates` and not skipped, as a set of one
 * node. If all candidates are skipped, returns the first of those. 0: `candidates` is empty. */
rl_nodes rl_contention_preferred(const struct rl_contention *contention, rl_nodes candidates)
{
    if ((candidates & ~contention->skipped) != 0)
        candidates &= ~contention->skipped;
    return rl_contention_first(contention, candidates);
}
