/* SPDX-License-Identifier: MIT
 * Judges what INFO, TIME and the TTLs of keys show about a server. */
#include "node/admission.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>

/* Least drift that is tolerated between two replies to TIME. ntpd slews each of the two clocks by
 * up to 500 ppm; that is no clock step, even if a smaller drift is configured for the validity. */
#define HEARTBEAT_PPM_MIN 1000u
/* Largest time that TIME may show (the year 2255), so that the arithmetic cannot overflow. */
#define TIME_US_MAX (UINT64_C(1) << 53)

/* Least part of a processor that a server can use over its uptime, in millionths. An idle server
 * uses at least several times more. A server that shows less has had its clock set forward. */
#define IDLE_PPM_MIN 20u
/* TTLs that nodes show within this time count as shown at the same time: in one round. */
#define SAME_TIME_NS RL_SECOND

/* Prepares the admission of a node whose server is not known yet. */
void rl_admission_init(struct rl_admission *admission, const struct rl_admission_rules *rules,
                       bool durable, bool fresh)
{
    *admission = (struct rl_admission){.rules = rules, .durable = durable, .fresh = fresh};
}

/* Returns the longest TTL in nanoseconds that at least a quorum of nodes reaches or exceeds with
 * what they have shown within SAME_TIME_NS; 0: none. */
static uint64_t shown_by_quorum_ns(const struct rl_admission_rules *rules, uint64_t now_ns)
{
    uint64_t most_ns = 0;

    for (unsigned i = 0; i < RL_NODES_MAX; i++) {
        unsigned count = 0;
        for (unsigned j = 0; j < RL_NODES_MAX; j++)
            count += rules->ttl_shown_ns[j] >= rules->ttl_shown_ns[i] &&
                     rl_sub_sat(now_ns, rules->ttl_shown_at_ns[j]) <= SAME_TIME_NS;
        if (count >= rules->quorum)
            most_ns = rl_max_u64(most_ns, rules->ttl_shown_ns[i]);
    }
    return most_ns;
}

/* Notes that a node has shown a key with this TTL left. Returns true if the TTL exceeds max_ttl.
 * Lengthens later quarantines if a quorum of nodes shows such a TTL. */
bool rl_admission_saw_ttl(struct rl_admission_rules *rules, unsigned node, int64_t ttl_ms,
                          uint64_t now_ns)
{
    uint64_t ttl_ns = ttl_ms <= 0 ? 0 : rl_min_u64((uint64_t)ttl_ms, REDLOCK_TTL_MS_MAX) * RL_MS;
    uint64_t *shown_ns = &rules->ttl_shown_ns[node];
    bool old = rl_sub_sat(now_ns, rules->ttl_shown_at_ns[node]) > SAME_TIME_NS;

    if (old || ttl_ns > *shown_ns) {
        *shown_ns = ttl_ns;
        rules->ttl_shown_at_ns[node] = now_ns;
        rules->ttl_seen_ns = rl_max_u64(rules->ttl_seen_ns, shown_by_quorum_ns(rules, now_ns));
    }
    return ttl_ns > rules->max_ttl_ns;
}

/* Returns true, and notes the TTL as logged, if no TTL as long was logged for this node before. */
bool rl_admission_reports_ttl(struct rl_admission_rules *rules, unsigned node, int64_t ttl_ms)
{
    if (ttl_ms <= 0 || (uint64_t)ttl_ms <= rules->ttl_reported_ms[node])
        return false;
    rules->ttl_reported_ms[node] = (uint64_t)ttl_ms;
    return true;
}

/* Returns how long a quarantine lasts, in nanoseconds: max_ttl, or the longest TTL that a quorum
 * has shown, whichever is longer, with drift. */
static uint64_t quarantine_ns(const struct rl_admission_rules *rules)
{
    uint64_t ttl_ns = rl_max_u64(rules->max_ttl_ns, rules->ttl_seen_ns);

    return rl_add_sat(ttl_ns, rl_drift_ns(ttl_ns, &rules->drift));
}

/* Adds an exclusion that does not end by itself to `facts` (`on` true), or removes it. */
static void set_exclusion(struct rl_admission *admission, enum rl_exclusion exclusion, bool on)
{
    if (on)
        admission->facts |= (uint32_t)exclusion;
    else
        admission->facts &= ~(uint32_t)exclusion;
}

/* Returns true if `info` shows the run id that is known already. */
static bool is_same_server(const struct rl_admission *admission, const struct rl_info *info)
{
    return admission->known && strcmp(admission->run_id, info->run_id) == 0;
}

/* Returns true if the server has the same data as before: it was never promoted, or not since the
 * INFO that was judged last. A promotion moves the
 * replication id of the former master to replid2 and makes a new one. A server that has followed
 * the same master twice may show the same ids, so second_offset is compared, too. A server may
 * clear replid2 later; that is no promotion. */
static bool is_same_data(const struct rl_admission *admission, const struct rl_info *info)
{
    return !rl_info_was_promoted(info) || (strcmp(admission->replid, info->replid) == 0 &&
                                           strcmp(admission->replid2, info->replid2) == 0 &&
                                           admission->second_offset == info->second_offset);
}

/* Returns for how long the server has been running at least, in nanoseconds. That is the uptime;
 * but with `proven`, or if the server has used too little processor time for its uptime, it is the
 * processor time. admission.h gives the reasons. */
static uint64_t credible_age_ns(const struct rl_admission_rules *rules, const struct rl_info *info)
{
    uint64_t cpu_us = rl_add_sat(info->cpu_user_us, info->cpu_sys_us);
    uint64_t proven_ns = rl_min_u64(cpu_us, RL_NEVER / RL_US) * RL_US;
    /* Whole seconds; the last one may have just begun. */
    uint64_t uptime_s = rl_sub_sat(rl_min_u64(info->uptime_s, RL_NEVER / RL_SECOND), 1);
    bool has_no_cpu = cpu_us == 0; /* an old version, or another kind of server */
    bool is_implausible = !has_no_cpu && uptime_s > cpu_us / IDLE_PPM_MIN;

    proven_ns = rl_sub_sat(proven_ns, rl_drift_ns(proven_ns, &rules->drift));
    return rules->proven || is_implausible ? proven_ns : uptime_s * RL_SECOND;
}

/* Begins a quarantine after a restart (`restarted`) or a promotion, unless an attestation makes it
 * unnecessary; the last quarantine is then forgotten. Only a quarantine of a restart at first
 * contact is shortened by the age of the server. */
static void begin_quarantine(struct rl_admission *admission, const struct rl_info *info,
                             bool restarted, uint64_t now_ns)
{
    bool first = !admission->known;
    bool promoted = !is_same_data(admission, info);

    admission->quarantine = 0;
    admission->quarantine_since_ns = now_ns;
    admission->credit_ns = 0;
    if (admission->durable)
        return;
    if (promoted) {
        admission->quarantine =
            RL_EXCLUSION_PROMOTED; /* no credit: the uptime does not show the age of the data */
    } else if (restarted && !(first && admission->fresh)) {
        admission->quarantine = RL_EXCLUSION_RESTARTED;
        if (first)
            admission->credit_ns = credible_age_ns(admission->rules, info);
    }
}

/* Judges INFO that was read at `now_ns`. Returns true if `info` shows another run or a promotion;
 * a quarantine then begins, unless an attestation makes it unnecessary. */
bool rl_admission_greet(struct rl_admission *admission, const struct rl_info *info, uint64_t now_ns)
{
    bool is_unknown = !rl_info_is_identified(info);
    bool evicts = rl_info_evicts(info);

    set_exclusion(admission, RL_EXCLUSION_NO_INFO, is_unknown && !admission->rules->lenient);
    set_exclusion(admission, RL_EXCLUSION_EVICTING, evicts);
    admission->lacks_info = info->unknown;
    memcpy(admission->policy, info->policy, sizeof admission->policy);
    if (info->run_id[0] == '\0')
        return false; /* the server is not identified: keeps what is known */
    bool restarted = !is_same_server(admission, info);
    if (!restarted && is_same_data(admission, info))
        return false;
    begin_quarantine(admission, info, restarted, now_ns);
    if (restarted)
        admission->has_clock = false; /* the new run may be on another machine */
    admission->known = true;
    memcpy(admission->run_id, info->run_id, sizeof admission->run_id);
    memcpy(admission->replid, info->replid, sizeof admission->replid);
    memcpy(admission->replid2, info->replid2, sizeof admission->replid2);
    admission->second_offset = info->second_offset;
    return true;
}

/* Returns by how many microseconds the server's clock and ours may drift apart in `passed_ns`. */
static int64_t drift_us(const struct rl_admission *admission, uint64_t passed_ns)
{
    struct rl_drift drift = {.ppm = admission->rules->drift.ppm, .constant_us = 0};

    if (drift.ppm < HEARTBEAT_PPM_MIN)
        drift.ppm = HEARTBEAT_PPM_MIN;
    return (int64_t)(rl_drift_ns(passed_ns, &drift) / RL_US) + 1;
}

/* Returns the larger number. */
static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Returns the smaller number. */
static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Judges a reply to TIME, which shows `time_us` since 1970. The request was sent at `sent_ns` or
 * earlier, the reply read at `received_ns` or later. Returns true if the server's clock has jumped
 * since the last reply. The quarantine of a clock step begins then.
 *
 * Each reply shows an interval that contains the clock offset: the longer the round trip, the
 * wider. The earlier interval is widened by the drift since then. If the two overlap, the offset is
 * in the overlap. If they do not, the clock has jumped. A slow reply therefore cannot cause a false
 * alarm. */
bool rl_admission_time(struct rl_admission *admission, uint64_t time_us, uint64_t sent_ns,
                       uint64_t received_ns)
{
    if (time_us > TIME_US_MAX || received_ns < sent_ns)
        return false;
    int64_t low = (int64_t)time_us - (int64_t)(received_ns / RL_US) - 1;
    int64_t high = (int64_t)time_us - (int64_t)(sent_ns / RL_US) + 1;
    int64_t moved = 0;

    if (admission->has_clock) {
        int64_t slack = (int64_t)admission->rules->drift.constant_us;
        int64_t drift = drift_us(admission, rl_sub_sat(received_ns, admission->clock_ns));
        int64_t old_low = admission->offset_low_us - drift;
        int64_t old_high = admission->offset_high_us + drift;
        if (low > old_high + slack)
            moved = low - old_high;
        else if (high < old_low - slack)
            moved = high - old_low;
        else if (larger(low, old_low) <= smaller(high, old_high)) {
            low = larger(low, old_low);
            high = smaller(high, old_high);
        }
    }
    if (time_us != admission->server_us)
        admission->stands = false;
    else if (moved < 0)
        admission->stands = true;
    admission->server_us = time_us;
    admission->has_clock = true;
    admission->offset_low_us = low;
    admission->offset_high_us = high;
    admission->clock_ns = received_ns;
    if (moved == 0)
        return false;
    admission->stepped = true;
    admission->stepped_ns = received_ns;
    admission->step_us = moved;
    return true;
}

/* Returns when the last quarantine of a restart or promotion ends or has ended (boot clock); 0:
 * there was none, or it has no length. */
static uint64_t quarantine_end_ns(const struct rl_admission *admission)
{
    uint64_t wait_ns = rl_sub_sat(quarantine_ns(admission->rules), admission->credit_ns);

    /* The caller's time may be before quarantine_since_ns: a quarantine of no length must be none.
     */
    return admission->quarantine == 0 || wait_ns == 0
               ? 0
               : rl_add_sat(admission->quarantine_since_ns, wait_ns);
}

/* Returns when the quarantine of the last clock step ends or has ended (boot clock); 0: there was
 * no clock step. */
static uint64_t step_end_ns(const struct rl_admission *admission)
{
    uint64_t wait_ns = quarantine_ns(admission->rules);

    return admission->stepped ? rl_add_sat(admission->stepped_ns, wait_ns) : 0;
}

/* Returns the set of exclusions at `now_ns`: the lasting ones, and those whose quarantine has not
 * ended. 0: the node is eligible. */
uint32_t rl_admission_exclusions(const struct rl_admission *admission, uint64_t now_ns)
{
    uint32_t exclusions = admission->facts;

    if (quarantine_end_ns(admission) > now_ns)
        exclusions |= admission->quarantine;
    if (step_end_ns(admission) > now_ns)
        exclusions |= RL_EXCLUSION_CLOCK_STEP;
    return exclusions;
}

/* Returns when the first of `exclusions` ends by itself (boot clock); RL_NEVER: none does. */
uint64_t rl_admission_due_ns(const struct rl_admission *admission, uint32_t exclusions)
{
    uint64_t due_ns = RL_NEVER;

    if (exclusions & (RL_EXCLUSION_RESTARTED | RL_EXCLUSION_PROMOTED))
        due_ns = quarantine_end_ns(admission);
    if (exclusions & RL_EXCLUSION_CLOCK_STEP)
        due_ns = rl_min_u64(due_ns, step_end_ns(admission));
    return due_ns;
}

/* Returns the enum redlock_cause of the lowest exclusion. The table has one cause for each bit of
 * enum rl_exclusion, in its order. */
uint8_t rl_admission_cause(uint32_t exclusions)
{
    static const uint8_t causes[] = {
        REDLOCK_CAUSE_NO_INFO,  REDLOCK_CAUSE_EVICTING,  REDLOCK_CAUSE_CLOCK_STEP,
        REDLOCK_CAUSE_PROMOTED, REDLOCK_CAUSE_RESTARTED,
    };

    return exclusions == 0 ? REDLOCK_CAUSE_NONE : causes[__builtin_ctz(exclusions)];
}

/* Returns the nanoseconds until all `exclusions` have ended; 0: there are none, or the operator
 * must remove one. */
uint64_t rl_admission_quarantine_left_ns(const struct rl_admission *admission, uint32_t exclusions,
                                         uint64_t now_ns)
{
    uint64_t left = 0;

    bool stands = (exclusions & RL_EXCLUSION_CLOCK_STEP) != 0 && admission->stands;

    if ((exclusions & ~(uint32_t)RL_EXCLUSIONS_TIMED) != 0 || stands)
        return 0;
    if (exclusions & (RL_EXCLUSION_RESTARTED | RL_EXCLUSION_PROMOTED))
        left = rl_sub_sat(quarantine_end_ns(admission), now_ns);
    if (exclusions & RL_EXCLUSION_CLOCK_STEP)
        left = rl_max_u64(left, rl_sub_sat(step_end_ns(admission), now_ns));
    return left;
}

/* A duration in words, returned by value. */
struct span {
    char text[24]; /* such as "26 s" */
};

/* Returns the duration `ns` in words: in whole seconds, or in milliseconds below one second. Rounds
 * up if `up`, else down. */
static struct span span_text(uint64_t ns, bool up)
{
    struct span span;
    uint64_t unit = ns < RL_SECOND ? RL_MS : RL_SECOND;

    snprintf(span.text, sizeof span.text, "%llu %s",
             (unsigned long long)(ns / unit + (up && ns % unit != 0)),
             unit == RL_SECOND ? "s" : "ms");
    return span;
}

/* Writes why the quarantine of a restart or promotion holds into `text` of `size` bytes: what has
 * happened (`what`), how long ago, and that it ends in `left_ns`. */
static void quarantine_text(const struct rl_admission *admission, const char *what,
                            uint64_t left_ns, uint64_t now_ns, char *text, size_t size)
{
    uint64_t since_ns =
        rl_add_sat(rl_sub_sat(now_ns, admission->quarantine_since_ns), admission->credit_ns);
    struct span ago = span_text(since_ns, false);
    struct span left = span_text(left_ns, true);

    snprintf(text, size, "%s %s ago, votes again in %s", what, ago.text, left.text);
}

/* Writes why the quarantine of a clock step holds into `text` of `size` bytes: by how much the
 * clock has jumped, how long ago, and that the quarantine ends in `left_ns`. */
static void step_text(const struct rl_admission *admission, uint64_t left_ns, uint64_t now_ns,
                      char *text, size_t size)
{
    int64_t by_us = admission->step_us;
    uint64_t by_ns = (uint64_t)(by_us < 0 ? -by_us : by_us) * RL_US;
    struct span by = span_text(by_ns, false);
    struct span ago = span_text(rl_sub_sat(now_ns, admission->stepped_ns), false);
    struct span left = span_text(left_ns, true);

    snprintf(text, size, "its clock jumped %s %s %s ago, votes again in %s", by.text,
             by_us < 0 ? "back" : "ahead", ago.text, left.text);
}

/* Writes why the lowest of `exclusions` holds into `text` of `size` bytes; "": there is none. */
void rl_admission_text(const struct rl_admission *admission, uint32_t exclusions, uint64_t now_ns,
                       char *text, size_t size)
{
    uint64_t left_ns =
        rl_admission_quarantine_left_ns(admission, exclusions & RL_EXCLUSIONS_TIMED, now_ns);

    switch (exclusions & -exclusions) {
    case 0:
        text[0] = '\0';
        break;
    case RL_EXCLUSION_NO_INFO:
        snprintf(text, size, "%s",
                 admission->lacks_info
                     ? "does not know INFO: it is a proxy, or the command was renamed"
                     : "does not report its identity: allow INFO to this user, or use lenient "
                       "admission");
        break;
    case RL_EXCLUSION_EVICTING:
        snprintf(text, size, "evicts keys (maxmemory-policy %s): set it to noeviction",
                 admission->policy);
        break;
    case RL_EXCLUSION_CLOCK_STEP:
        if (admission->stands)
            snprintf(text, size, "its clock stands still, so keys do not expire: restart it");
        else
            step_text(admission, left_ns, now_ns, text, size);
        break;
    case RL_EXCLUSION_PROMOTED:
        quarantine_text(admission, "has another server's data, first seen", left_ns, now_ns, text,
                        size);
        break;
    default:
        quarantine_text(admission, "restarted", left_ns, now_ns, text, size);
        break;
    }
}

/* Stores the server's wall clock minus ours in `*ret_us`, from the middle of the offset's interval.
 * Returns false if no reply to TIME was judged. */
bool rl_admission_offset_us(const struct rl_admission *admission, int64_t wall_offset_us,
                            int64_t *ret_us)
{
    if (!admission->has_clock)
        return false;
    *ret_us = (admission->offset_low_us + admission->offset_high_us) / 2 - wall_offset_us;
    return true;
}
