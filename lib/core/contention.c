/* SPDX-License-Identifier: MIT
 * Ranks the nodes of a resource, and remembers the contention for it. */
#include "core/contention.h"

#include <string.h>

/* The client yields after this many acquisitions in a row. More than 100, so that for a client
 * without contenders fewer than one in a hundred acquisitions are delayed. */
#define IN_A_ROW_MAX 128
/* The client also yields when the row has lasted for ROW_MAX_NS, but not before ROW_TRIPS_MIN round
 * trips: a yield takes up to four of them, which must stay a small part of the time. */
#define ROW_MAX_NS              RL_SECOND
#define ROW_TRIPS_MIN           128
#define PREFERRED_MISSES_MAX    3  /* misses or stale denials in a row before a node is skipped */
#define CONTENDERS_SHARE        4  /* the latest value has the weight 1 / CONTENDERS_SHARE */
#define CONTENDERS_UNIT         8u /* rl_contention.contenders of one contender */
#define REQUEST_ALL_BACKOFF_MAX 5
/* After this many notifications without a grant, the variable part of the delay is halved. */
#define DELAY_NOTIFICATIONS 32
#define PAUSE_MAX_NS        (16 * RL_MS)
#define SPLIT_WEIGHT        4u /* denials without a split that cancel one split */
#define SPLITS_MAX          (5 * SPLIT_WEIGHT)
#define SLOTS_KNOWN         64           /* slots whose state is remembered: bits of a word */
#define ROUND_TRIP_MIN_NS   (50 * RL_US) /* assumed if the round trip is shorter or unknown */

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

bool rl_contention_is_recent(const struct rl_contention *contention, uint64_t now_ns)
{
    return contention->recent_until_ns > now_ns;
}

/* Makes contention recent. */
static void note_contention(struct rl_contention *contention, uint64_t now_ns)
{
    contention->recent_until_ns = rl_add_sat(now_ns, RL_CONTENTION_RECENT_NS);
}

/* Stops preferring the node. If all nodes would be skipped, skips only this one. */
static void skip_preferred(struct rl_contention *contention, rl_nodes first)
{
    contention->skipped |= first;
    if (contention->skipped == rl_nodes_all(contention->nodes))
        contention->skipped = first;
    contention->misses = contention->stale = 0;
}

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

bool rl_contention_doubts_preferred(const struct rl_contention *contention)
{
    return contention->misses >= PREFERRED_MISSES_MAX - 1;
}

void rl_contention_note_preferred(struct rl_contention *contention, rl_nodes first, bool granted)
{
    contention->stale = granted ? 0 : increment(contention->stale);
    if (granted)
        contention->misses = 0;
    else if (contention->stale >= PREFERRED_MISSES_MAX)
        skip_preferred(contention, first);
}

void rl_contention_note_notification(struct rl_contention *contention, uint64_t now_ns)
{
    note_contention(contention, now_ns);
    if (contention->notifications < UINT16_MAX)
        contention->notifications++;
}

void rl_contention_note_start(struct rl_contention *contention, uint64_t round_trip_ns,
                              uint64_t now_ns)
{
    uint64_t soon_ns = 2 * rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);

    if (contention->released_ns == 0 || rl_sub_sat(now_ns, contention->released_ns) > soon_ns)
        contention->in_a_row = 0;
    else
        contention->in_a_row = increment(contention->in_a_row);
    if (contention->in_a_row == 0)
        contention->row_ns = now_ns;
    if (!rl_contention_is_recent(contention, now_ns)) {
        contention->skipped = 0;
        contention->splits = 0;
        contention->has_split = false;
        contention->stale = 0;
    }
}

void rl_contention_note_grant(struct rl_contention *contention)
{
    uint32_t wakes = contention->notifications * CONTENDERS_UNIT;

    contention->splits = 0;
    contention->has_split = false;
    contention->notifications = 0;
    if (wakes == 0)
        return;
    if (contention->contenders == 0)
        contention->contenders = wakes;
    else if (wakes > contention->contenders)
        contention->contenders +=
            (wakes - contention->contenders + CONTENDERS_SHARE - 1) / CONTENDERS_SHARE;
    else
        contention->contenders -=
            (contention->contenders - wakes + CONTENDERS_SHARE - 1) / CONTENDERS_SHARE;
}

void rl_contention_note_contender(struct rl_contention *contention)
{
    contention->contended = true;
}

void rl_contention_note_release(struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random, uint64_t now_ns)
{
    uint64_t unit_ns = rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);
    bool recent = rl_contention_is_recent(contention, now_ns);
    uint32_t limit = contention->contended ? contention->contended_in_a_row : IN_A_ROW_MAX;

    uint64_t row_max_ns = rl_max_u64(ROW_MAX_NS, ROW_TRIPS_MIN * unit_ns);
    bool for_long =
        contention->in_a_row > 0 && rl_sub_sat(now_ns, contention->row_ns) >= row_max_ns;

    contention->released_ns = now_ns;
    if (!recent && contention->in_a_row < limit && !for_long)
        return;
    /* The key that caused the denial may be that of a client that has ended: yield less often. */
    if (!recent && contention->contended)
        contention->contended_in_a_row =
            contention->contended_in_a_row == 0
                ? 1
                : (uint8_t)rl_min_u64(2u * contention->contended_in_a_row, IN_A_ROW_MAX);
    contention->in_a_row = 0;
    contention->row_ns = now_ns;
    contention->contended = false;
    /* A waiter that is notified of this release reaches the preferred node after one and a half
     * round trips, and the other nodes after two and a half. If contention is recent, this client
     * asks the preferred node first, too. */
    contention->yield_until_ns = rl_add_sat(now_ns, (recent ? 2 : 3) * unit_ns + random % unit_ns);
}

/* Returns the square root, rounded down. */
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

/* With c contenders, the probability is 1 in c^(3/4), and higher the more notifications this client
 * has had since its last grant. It is not 1 in c, because a client estimates c by its own grants:
 * one that happens to win would estimate fewer contenders, and win even more often. */
bool rl_contention_requests_all(const struct rl_contention *contention, uint64_t random)
{
    uint64_t contenders = contention->contenders;

    /* A doubtful or skipped node may not grant, so asking all nodes at once wins less often. */
    if (contenders == 0 || contention->has_split || contention->skipped != 0 ||
        contention->misses != 0)
        return false;
    /* It seems to be the only contender. If it always asked all nodes, it would not notice others.
     */
    if (contenders == CONTENDERS_UNIT)
        return random % (UINT64_C(4) << contention->request_all_backoff) < 3;
    uint64_t root = square_root(contenders * square_root(contenders * CONTENDERS_UNIT));
    uint64_t patience = rl_min_u64(CONTENDERS_UNIT * contention->notifications, 2 * contenders);
    uint64_t range = root * contenders * contenders << contention->request_all_backoff;
    return random % range < CONTENDERS_UNIT * patience * patience;
}

void rl_contention_note_request_all(struct rl_contention *contention, bool won)
{
    if (!won && contention->request_all_backoff < REQUEST_ALL_BACKOFF_MAX)
        contention->request_all_backoff++;
    else if (won && contention->request_all_backoff > 0)
        contention->request_all_backoff--;
}

/* The delay depends on the number of notifications alone, not on the estimate of contenders, which
 * is too low in clients that win often. It never becomes 0: otherwise, among clients that have
 * waited for long, the one with the longest round trip would be the last each time. */
uint64_t rl_contention_delay_ns(const struct rl_contention *contention, uint64_t round_trip_ns,
                                uint64_t random)
{
    uint64_t unit_ns = rl_max_u64(round_trip_ns, ROUND_TRIP_MIN_NS);

    if (contention->contenders == 0 && contention->notifications <= 1)
        return 0;
    return unit_ns / 16 + random % (unit_ns / 16) +
           unit_ns * DELAY_NOTIFICATIONS / 2 / (DELAY_NOTIFICATIONS + contention->notifications);
}

unsigned rl_contention_splits(const struct rl_contention *contention)
{
    return (contention->splits + SPLIT_WEIGHT - 1) / SPLIT_WEIGHT;
}

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

/* Returns the number of the n-th bit, modulo their count, that is 1 in `set`, which is not 0. */
static unsigned nth(uint64_t set, uint64_t n)
{
    for (n %= (unsigned)__builtin_popcountll(set); n > 0; n--)
        set &= set - 1;
    return (unsigned)__builtin_ctzll(set);
}

unsigned rl_contention_slot(struct rl_contention *contention, unsigned count, uint64_t random,
                            uint64_t now_ns)
{
    uint64_t all = count < SLOTS_KNOWN ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
    uint64_t left = contention->slots_released & all, free = all & ~contention->slots_held;

    if (left != 0 && !rl_contention_is_recent(contention, now_ns)) {
        unsigned slot = nth(left, random);
        contention->slots_released &= ~(UINT64_C(1) << slot);
        return slot;
    }
    if (count > SLOTS_KNOWN || free == 0)
        return (unsigned)(random % count);
    return nth(free, random);
}

void rl_contention_slot_held(struct rl_contention *contention, unsigned slot, bool held)
{
    if (slot >= SLOTS_KNOWN)
        return;
    uint64_t bit = UINT64_C(1) << slot;
    contention->slots_held = held ? contention->slots_held | bit : contention->slots_held & ~bit;
    contention->slots_released =
        held ? contention->slots_released & ~bit : contention->slots_released | bit;
}

rl_nodes rl_contention_preferred(const struct rl_contention *contention, rl_nodes candidates)
{
    if ((candidates & ~contention->skipped) != 0)
        candidates &= ~contention->skipped;
    for (unsigned i = 0; i < contention->nodes; i++) {
        if ((candidates & RL_NODE(contention->order[i])) != 0)
            return RL_NODE(contention->order[i]);
    }
    return 0;
}
