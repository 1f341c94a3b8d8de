/* SPDX-License-Identifier: MIT
 * The failure detector of one node: measures round trips, and decides when the node is suspect
 * because its replies are late.
 *
 * Two limits apply to a request. After the node timeout the node becomes suspect: a vote SUSPECT is
 * reported for each request in flight, and a probe (PING) is sent. At the time limit of its reply
 * the vote of a request fails. With a configured node timeout both limits are that time. Otherwise
 * the time limit of a reply is 250 ms, and the node timeout is derived from round trips. */
#ifndef RL_NODE_FAILURE_DETECTOR_H
#define RL_NODE_FAILURE_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

struct rl_node;

/* What is measured of the replies of one node, and whether it is suspect. Owner:
 * failure_detector.c. All instants are on the boot clock. A node can be suspect only while its
 * connection is ready. srtt_ns, worst_ns, worst_at_ns and last_reply_ns survive connections; the
 * other fields belong to one connection. */
struct rl_detector {
    bool suspect;              /* a reply is late */
    bool probing;              /* the one probe of a suspect node is in flight */
    bool resent;               /* the requests in flight may not be in the order of their sent_ns */
    uint64_t suspect_since_ns; /* when the node became suspect; valid while `suspect` */
    uint64_t srtt_ns;          /* smoothed round trip, a mean of about eight; 0: not measured */
    uint64_t worst_ns;         /* longest recent round trip, heartbeats included; halved for each
                                * second that passes */
    uint64_t worst_at_ns;      /* when worst_ns was set, or when it was last due to be halved */
    uint64_t last_reply_ns;    /* when the last reply arrived */
};

/* Returns true while the node is suspect: no requests are sent to it, except undos, one probe, and
 * those of rl_node_request_suspect(). */
static inline bool rl_detector_is_suspect(const struct rl_detector *detector)
{
    return detector->suspect;
}

/* Returns the smoothed round trip in nanoseconds; 0: not measured. */
static inline uint64_t rl_detector_srtt_ns(const struct rl_detector *detector)
{
    return detector->srtt_ns;
}

/* Returns the smoothed round trip, or the longest recent one if that is shorter, in nanoseconds; 0:
 * not measured. The engine decides with it whether the node is slow. After a stop of the server the
 * smoothed one alone needs dozens of votes to fall, and waiters send few to a node that they avoid.
 */
static inline uint64_t rl_detector_shorter_trip_ns(const struct rl_detector *detector)
{
    return detector->worst_ns < detector->srtt_ns ? detector->worst_ns : detector->srtt_ns;
}

/* Returns when the last reply arrived on any connection (boot clock); 0: none has. */
static inline uint64_t rl_detector_last_reply_ns(const struct rl_detector *detector)
{
    return detector->last_reply_ns;
}

/* Forgets the probe and the order of the requests, because a new connection was opened. */
static inline void rl_detector_opened(struct rl_detector *detector)
{
    detector->probing = detector->resent = false;
}

/* Makes the node not suspect, because its connection is closed. */
static inline void rl_detector_closed(struct rl_detector *detector)
{
    detector->suspect = false;
}

/* Notes that a reply arrived. */
static inline void rl_detector_note_reply(struct rl_detector *detector, uint64_t now_ns)
{
    detector->last_reply_ns = now_ns;
}

/* Notes that the reply to the probe has come, so that another probe may be sent. */
static inline void rl_detector_note_probe(struct rl_detector *detector)
{
    detector->probing = false;
}

/* Notes that a request was sent again with its earlier start time: requests in flight are no longer
 * ordered by age. */
static inline void rl_detector_note_resent(struct rl_detector *detector)
{
    detector->resent = true;
}

/* Notes that no request is in flight any more. */
static inline void rl_detector_note_idle(struct rl_detector *detector)
{
    detector->resent = false;
}

/* Takes a round trip of `trip_ns` into account. A longer one than the time limit of a reply counts
 * as that limit: if this process or the server was stopped, delays derived from the whole time
 * would grow to minutes. */
void rl_detector_note_trip(struct rl_node *node, uint64_t trip_ns, uint64_t now_ns);

/* Takes the round trip of a heartbeat into account, for the longest recent one only. The smoothed
 * one is for votes: INFO takes a server longer. */
void rl_detector_note_heartbeat(struct rl_node *node, uint64_t trip_ns, uint64_t now_ns);

/* Has the next tick planned again, unless the planned one is early enough to find a late reply.
 * Called after requests were appended, and after replies have arrived. */
void rl_detector_replan(struct rl_node *node, uint64_t now_ns);

/* Does what is due: makes the node suspect, fails late votes, or closes the connection of a node
 * that stays suspect. */
void rl_detector_tick(struct rl_node *node, uint64_t now_ns);

/* Returns when rl_detector_tick() has something to do (boot clock); RL_NEVER: no reply is due. */
uint64_t rl_detector_wake_ns(struct rl_node *node);

/* Makes a suspect node not suspect if no reply is late any more, and reports that. Called for a
 * suspect node after each reply on a ready connection. */
void rl_detector_review(struct rl_node *node, uint64_t now_ns);

/* Returns the node timeout in nanoseconds: how long no reply may come while one is due. It is the
 * configured one, or one that is derived from the measured round trips. */
uint64_t rl_node_timeout_ns(const struct rl_node *node);

#endif
