/* SPDX-License-Identifier: MIT
 * The admission of one server: decides whether its votes count, from what the server says about
 * itself and from what the client has observed over all connections. Pure: what was learned and the
 * time are arguments. All instants are on the boot clock of the client.
 *
 * A restarted server may have lost keys whose holders still rely on them. Its grants do not count
 * until every lock that it may have lost has expired: the quarantine. It lasts max_ttl with drift,
 * from the moment at which this client has read the reply that shows the restart. It must not begin
 * at the start of the tick, which may be before the restart. Neither the server's clock nor the
 * time of the restart matter. The boot clock alone is enough: if it stood still, the quarantine
 * would only last longer.
 *
 * At first contact the restart may be long ago. Then alone, the age of the server shortens the
 * quarantine. INFO shows the age in two ways:
 *   - uptime_in_seconds is the difference of two readings of the server's wall clock. If that clock
 *     was set forward in between, the server looks older than it is.
 *   - The processor time of the main thread is a lower bound of the age that no clock can change.
 *     But it proves little, because an idle server uses less than a thousandth of a processor.
 * So the uptime counts, unless rl_admission_rules.proven is set. If the processor time is too small
 * for such an uptime, the clock was set, and only the processor time counts. */
#ifndef RL_NODE_ADMISSION_H
#define RL_NODE_ADMISSION_H

#include "core/drift.h"
#include "node/info.h"

/* The reasons why a node is excluded. Each is one bit of a set; if several hold, the lowest bit is
 * reported. The first two last until the operator removes the reason. The others end by themselves,
 * after a quarantine. */
enum rl_exclusion {
    RL_EXCLUSION_NO_INFO = 1 << 0,    /* INFO does not show the run id of the server; never set
                                       * if rl_admission_rules.lenient */
    RL_EXCLUSION_EVICTING = 1 << 1,   /* the server may remove keys that have not expired */
    RL_EXCLUSION_CLOCK_STEP = 1 << 2, /* the server's clock has jumped: keys may have expired
                                       * early */
    RL_EXCLUSION_PROMOTED = 1 << 3,   /* the server was a replica and has the keys of another
                                       * server */
    RL_EXCLUSION_RESTARTED = 1 << 4   /* the server was restarted, or is not known yet: it may
                                       * have lost keys */
};
/* The set of exclusions that end by themselves. */
#define RL_EXCLUSIONS_TIMED                                                                        \
    (RL_EXCLUSION_CLOCK_STEP | RL_EXCLUSION_PROMOTED | RL_EXCLUSION_RESTARTED)
/* The set of exclusions with which the grant of a new lock does not count: all. */
#define RL_EXCLUSIONS_ACQUIRE (RL_EXCLUSIONS_EXTEND | RL_EXCLUSIONS_TIMED)
/* The set of exclusions with which the grant of an extension does not count. The other exclusions
 * do not matter for an extension: the grant shows that the lock's own key is still there. */
#define RL_EXCLUSIONS_EXTEND (RL_EXCLUSION_NO_INFO | RL_EXCLUSION_EVICTING)

/* The rules of admission, the same for all nodes of an engine, and the TTLs that the nodes have
 * shown. Owner: admission.c for the TTLs. The engine sets the rest once, in zeroed memory. */
struct rl_admission_rules {
    struct rl_drift drift;                  /* tolerated drift between two clocks */
    uint64_t max_ttl_ns;                    /* longest TTL that any client may use, as configured */
    uint64_t ttl_shown_ns[RL_NODES_MAX];    /* longest remaining TTL of a key that each node has
                                             * shown lately */
    uint64_t ttl_shown_at_ns[RL_NODES_MAX]; /* when each node showed that TTL; 0: never. After one
                                             * second any next TTL replaces the shown one */
    uint64_t ttl_seen_ns; /* longest TTL that a quorum of nodes has ever shown within one second; 0:
                           * none. If it exceeds max_ttl_ns, another client has a larger max_ttl.
                           * Fewer nodes do not count: their clocks may have been set back */
    uint64_t ttl_reported_ms[RL_NODES_MAX]; /* longest TTL that was logged for each node, in
                                             * milliseconds; 0: none */
    unsigned quorum;                        /* nodes that must grant a lock */
    bool lenient; /* a server that does not identify itself is eligible all the same */
    bool proven;  /* only the processor time shows the age of a server, not its uptime */
};

/* What is known of the server behind one node, over all connections. Owner: admission.c. An
 * exclusion is in `facts`, in `quarantine` or in `stepped`. */
struct rl_admission {
    const struct rl_admission_rules *rules; /* borrowed */
    bool durable;                           /* attested: loses no key in a restart; no quarantine of
                                             * a restart or a promotion */
    bool fresh; /* attested: held no lock at first contact; no quarantine at first contact, unless
                 * INFO shows a promotion */
    bool known; /* a server has identified itself: the next four fields are what it said last */
    char run_id[48];       /* as in struct rl_info */
    char replid[48];       /* as in struct rl_info */
    char replid2[48];      /* as in struct rl_info */
    int64_t second_offset; /* as in struct rl_info */
    char policy[24];       /* maxmemory_policy that INFO showed last; empty: unknown */
    bool lacks_info;       /* the server does not know INFO: no right of the user is missing */
    uint32_t facts;        /* enum rl_exclusion: those that do not end by themselves */
    uint32_t quarantine; /* why the last quarantine of a restart or promotion began, which may have
                          * ended: RL_EXCLUSION_RESTARTED or _PROMOTED; 0: there was none */
    uint64_t quarantine_since_ns; /* when that quarantine began; valid if `quarantine` is not 0 */
    uint64_t credit_ns;    /* age of the server when the quarantine began, by which the quarantine
                            * is shortened; 0 except at first contact */
    bool has_clock;        /* offset_low_us, offset_high_us and clock_ns are valid */
    bool stepped;          /* stepped_ns and step_us are valid; the quarantine may have ended */
    int64_t offset_low_us; /* least possible difference between the server's wall clock and our boot
                            * clock (server minus ours) at clock_ns, in microseconds */
    int64_t offset_high_us; /* largest possible such difference, in microseconds */
    uint64_t clock_ns;      /* when the last reply to TIME was read */
    uint64_t stepped_ns;    /* when the last clock step was noticed */
    int64_t step_us; /* by how many microseconds the server's clock has jumped at least; negative:
                        back */
    uint64_t server_us; /* what the last reply to TIME showed */
    bool stands; /* the server's clock has shown the same time for longer than drift explains: its
                    keys do not expire, and no quarantine ends it */
};

/* Prepares the admission of a node whose server is not known yet. `rules` must outlive `admission`.
 * `durable` and `fresh` are what the operator attests: see the fields. */
void rl_admission_init(struct rl_admission *admission, const struct rl_admission_rules *rules,
                       bool durable, bool fresh);

/* Judges INFO of a new connection or of a heartbeat, which was read at `now_ns`. Sets or removes
 * the exclusions that the operator must remove. Returns true if INFO shows another run or a
 * promotion; a quarantine then begins, unless an attestation makes it unnecessary. */
bool rl_admission_greet(struct rl_admission *admission, const struct rl_info *info,
                        uint64_t now_ns);

/* Judges a reply to TIME, which shows `time_us` microseconds since 1970. `sent_ns` is when the
 * request was sent or earlier, `received_ns` is when the reply was read or later. Returns true if
 * the server's clock has jumped since the last reply; the quarantine of a clock step then begins.
 */
bool rl_admission_time(struct rl_admission *admission, uint64_t time_us, uint64_t sent_ns,
                       uint64_t received_ns);

/* Notes that the node with index `node` has shown a key with `ttl_ms` milliseconds left (0 or less:
 * no such key). If a quorum of nodes shows more than max_ttl within one second, another client has
 * a larger max_ttl: quarantines then last for the TTL shown, at most the largest TTL of a lock.
 * Returns true if this TTL exceeds max_ttl. */
bool rl_admission_saw_ttl(struct rl_admission_rules *rules, unsigned node, int64_t ttl_ms,
                          uint64_t now_ns);
/* Returns true if a TTL of `ttl_ms` milliseconds, which exceeds max_ttl, is to be logged: no TTL as
 * long was logged for the node with index `node` before. Notes it as logged. */
bool rl_admission_reports_ttl(struct rl_admission_rules *rules, unsigned node, int64_t ttl_ms);

/* Returns the set of all exclusions (enum rl_exclusion) at `now_ns`; 0: the node is eligible. */
uint32_t rl_admission_exclusions(const struct rl_admission *admission, uint64_t now_ns);

/* Returns when the first of `exclusions` ends by itself; RL_NEVER: none does. */
uint64_t rl_admission_due_ns(const struct rl_admission *admission, uint32_t exclusions);

/* Returns enum redlock_cause of the lowest of `exclusions`; REDLOCK_CAUSE_NONE if there is none. */
uint8_t rl_admission_cause(uint32_t exclusions);

/* Returns the time in nanoseconds until all `exclusions` have ended; 0: there are none, or the
 * operator must remove one. */
uint64_t rl_admission_quarantine_left_ns(const struct rl_admission *admission, uint32_t exclusions,
                                         uint64_t now_ns);

/* Writes why the lowest of `exclusions` holds, such as "restarted 4 s ago, votes again in 26 s".
 * Writes an empty text if there is none. `size`: bytes of `text`. */
void rl_admission_text(const struct rl_admission *admission, uint32_t exclusions, uint64_t now_ns,
                       char *text, size_t size);

/* Stores the server's wall clock minus ours, in microseconds, in `*ret_us`. `wall_offset_us`: our
 * wall clock minus our boot clock. Returns false, and stores nothing, if no reply to TIME was
 * judged. */
bool rl_admission_offset_us(const struct rl_admission *admission, int64_t wall_offset_us,
                            int64_t *ret_us);

#endif
