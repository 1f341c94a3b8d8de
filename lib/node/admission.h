/* SPDX-License-Identifier: MIT
 * May this node's votes be counted? What is known of one node over all its connections: which
 * server was there when, what speaks against it, and until when. Pure: facts and time are
 * arguments.
 *
 * A server that was restarted may have lost keys whose holders still rely on them, so its grants
 * do not count until every lock it may have forgotten has expired. All waits are measured on our
 * own boot clock, from the moment at which this client learned of the fact, and are max_ttl
 * lengthened by drift: the server's clock and the time at which it really happened do not matter.
 *
 * The boot clock alone is enough for them. A guard must not end before those do who may still rely
 * on what was forgotten, and their time passes while we are stopped or suspended, as the server's
 * does: a clock that stood still then would only make us wait for longer. Somebody whose own clocks
 * all stood still is not helped by any wait of ours. What must not be is a guard that begins before
 * the keys were lost: it begins when the answer that tells of it has been read, not when its tick
 * began.
 *
 * Only at the first contact, when we cannot know how long a server has been there, its own
 * account of its age shortens the wait. Two parts of INFO tell it:
 *
 *   - uptime_in_seconds is the difference of two readings of its wall clock. If that was set ahead
 *     in between, the server looks older than it is.
 *   - the processor time of its main thread is a proof: one thread cannot have used more of it than
 *     time has passed, and no clock that is set changes it. But a server that has nothing to do
 *     uses a thousandth of a processor, or less, so it proves little of a long life.
 *
 * So uptime is believed (unless `proven` is asked for), but not if it is out of all proportion to
 * the processor time: then the clock was set, and only the proof counts. */
#ifndef RL_NODE_ADMISSION_H
#define RL_NODE_ADMISSION_H

#include "core/drift.h"
#include "node/info.h"

/* What speaks against counting a node; several may at once. Bars that need not be mended come to
 * an end by themselves. */
enum rl_exclusion {
    RL_EXCLUSION_NO_INFO = 1 << 0,    /* it may not be asked who it is; strict only */
    RL_EXCLUSION_EVICTING = 1 << 1,   /* removes keys for want of memory */
    RL_EXCLUSION_CLOCK_STEP = 1 << 2, /* its clock jumped: keys may have expired early; ends */
    RL_EXCLUSION_PROMOTED = 1 << 3,   /* has the data of another master, from some time; ends */
    RL_EXCLUSION_RESTARTED = 1 << 4   /* may have lost keys; ends */
};
#define RL_EXCLUSIONS_TIMED                                                                        \
    (RL_EXCLUSION_CLOCK_STEP | RL_EXCLUSION_PROMOTED | RL_EXCLUSION_RESTARTED)
/* Grants of a new lock do not count ... */
#define RL_EXCLUSIONS_ACQUIRE (RL_EXCLUSIONS_EXTEND | RL_EXCLUSIONS_TIMED)
/* ... but that our key is still there is evidence, whatever was forgotten before it was set. */
#define RL_EXCLUSIONS_EXTEND (RL_EXCLUSION_NO_INFO | RL_EXCLUSION_EVICTING)

/* The same for all nodes of a client. */
struct rl_admission_rules {
    struct rl_drift drift;
    uint64_t max_ttl_ns;
    /* The time to live that a key lately showed on each node, and when; the longest that as many as
     * a lock needs ever showed at the same time: somebody's max_ttl is larger. Clocks that are set
     * back, one here and another one there, do not come together. */
    uint64_t ttl_shown_ns[RL_NODES_MAX], ttl_shown_at_ns[RL_NODES_MAX];
    uint64_t ttl_seen_ns;
    uint64_t ttl_reported_ms[RL_NODES_MAX]; /* what the user has been told of */
    unsigned quorum;
    bool lenient; /* a node that does not tell who it is may vote all the same */
    bool proven;  /* what a server says of its age counts only as far as it proves it */
};

struct rl_admission {
    const struct rl_admission_rules *rules;
    bool durable; /* attested: never loses keys over a restart; no guard */
    bool fresh;   /* attested: no lock was there before we came; no guard at first contact */
    bool known;   /* a server was seen: run_id and what follows are its */
    char run_id[48];
    char replid[48];
    char replid2[48];
    int64_t second_offset;
    char policy[24];     /* evicting: which */
    uint32_t facts;      /* enum rl_exclusion: those without an end */
    uint32_t quarantine; /* RL_EXCLUSION_RESTARTED or PROMOTED, over or not; 0: there was none */
    uint64_t quarantine_since_ns; /* since when, on our boot clock */
    uint64_t credit_ns;           /* age that the server had by then, as far as it is believed */
    bool has_clock;               /* offset_low_us to offset_high_us hold at clock_ns */
    bool stepped;                 /* it stepped at stepped_ns, over or not */
    int64_t offset_low_us;        /* its clock minus our boot clock lies between these */
    int64_t offset_high_us;
    uint64_t clock_ns;
    uint64_t stepped_ns;
    int64_t step_us; /* by how much at least; > 0: forward */
};

void rl_admission_init(struct rl_admission *admission, const struct rl_admission_rules *rules,
                       bool durable, bool fresh);

/* INFO of the server behind a new connection, or once more of the same. true: it is not the server
 * that was there before, or its data are not; what is bound to it is to be looked at again. */
bool rl_admission_greet(struct rl_admission *admission, const struct rl_info *info,
                        uint64_t now_ns);

/* TIME said `time_us`; it was asked at `sent_ns` and answered at `received_ns` (boot clock; sent
 * may be too early, received too late, not the other way round). true: the clock has stepped. */
bool rl_admission_time(struct rl_admission *admission, uint64_t time_us, uint64_t sent_ns,
                       uint64_t received_ns);

/* A node showed a key that lives for so long: somebody has a larger max_ttl, or its clock was set
 * back. Guards grow to what a majority shows at the same time, up to a day: a key that lives longer
 * is no lock. true: it exceeds max_ttl. */
bool rl_admission_saw_ttl(struct rl_admission_rules *rules, unsigned node, int64_t ttl_ms,
                          uint64_t now_ns);
/* Is it worth a word? A key is told of once: it gets shorter from then on. */
bool rl_admission_reports_ttl(struct rl_admission_rules *rules, unsigned node, int64_t ttl_ms);

/* enum rl_exclusion: all that hold now. */
uint32_t rl_admission_exclusions(const struct rl_admission *admission, uint64_t now_ns);

/* When the first of `exclusions` ends by itself; RL_NEVER: none does. */
uint64_t rl_admission_due_ns(const struct rl_admission *admission, uint32_t exclusions);

/* The cause (enum redlock_cause) of the first of `exclusions`; NONE if there is none. */
uint8_t rl_admission_cause(uint32_t exclusions);

/* Time until `exclusions` are over; 0: there are none, or one of them has to be mended. */
uint64_t rl_admission_quarantine_left_ns(const struct rl_admission *admission, uint32_t exclusions,
                                         uint64_t now_ns);

/* Why the first of `exclusions` holds: "restarted 4 s ago, votes again in 26 s". Empty if there are
 * none.
 */
void rl_admission_text(const struct rl_admission *admission, uint32_t exclusions, uint64_t now_ns,
                       char *text, size_t size);

/* Its clock minus our wall clock, given that this is `wall_offset_us` ahead of our boot clock;
 * false: never asked. */
bool rl_admission_offset_us(const struct rl_admission *admission, int64_t wall_offset_us,
                            int64_t *ret_us);

#endif
