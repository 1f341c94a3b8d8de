/* SPDX-License-Identifier: MIT
 * The fence records of the nodes. They are looked at before the first fenced vote of a client, and
 * whenever a node refuses a vote because of its record. A node that has none, or one of an earlier
 * run of its server, has forgotten numbers that were granted; it is taken into use again
 *
 *   - at once on all nodes, if all of them are empty, and this client has never seen a record in
 *     use: the first start (first_start.h);
 *   - with the largest numbers of the others, if a majority of the others is in use, and if so
 *     much time has passed since this client first saw the gap that no attempt which counted the
 *     node's forgotten vote can still be in progress;
 *   - else by an operator only (rl_records_init()).
 *
 * A mark that the first reader leaves in the gap, and that whoever fills it must name, shows that
 * it is still the same gap: a node that is emptied again while somebody waits starts anew. */
#ifndef RL_ENGINE_RECORD_H
#define RL_ENGINE_RECORD_H

#include "core/wire_fence.h"
#include "node/node.h"

struct rl_engine;

/* What is known of one node's record. */
struct rl_record {
    uint8_t state;                     /* enum rl_record_state */
    bool empty;                        /* no number in it either */
    bool unchanged;                    /* the last look found the gap of the look before it */
    bool first;                        /* a gap that our first start found and may fill */
    char mark[RL_RECORD_MARK_LEN];     /* of the gap, with ... */
    char run[48];                      /* ... the run of the server that has it ... */
    struct rl_now since;               /* ... and when we saw it first */
    char other[RL_FENCE_TEXT_MAX + 1]; /* FOREIGN: whose it is */
};

enum rl_records_phase { RL_RECORDS_IDLE = 0, RL_RECORDS_READING, RL_RECORDS_SEEDING };

struct rl_records {
    uint64_t hints[RL_FENCE_STRIPES];  /* largest number seen of each stripe */
    uint64_t fences[RL_FENCE_STRIPES]; /* largest number of the records read last */
    struct rl_record nodes[RL_NODES_MAX];
    uint8_t phase;    /* enum rl_records_phase */
    bool known;       /* fenced attempts may start: they will be granted or refused by the nodes */
    bool second_look; /* this look is a second one, right behind the first */
    rl_nodes used;    /* seen in use at some time: if they are empty now, they have forgotten */
    bool init, init_done;                  /* an operator asked for it; it is done */
    uint64_t read_until_ns, init_until_ns; /* he waits (boot clock) for all to be read; for it */
    rl_nodes seeded;                       /* did as he wants */
    unsigned reads_without_majority;       /* in a row that found too few records in use */
    uint32_t round;
    rl_nodes waiting;   /* connecting: to be asked when they are ready */
    rl_nodes requested; /* their answers are missing */
    rl_nodes answered;  /* READ, in this phase */
    rl_nodes timed_out; /* were asked in this phase, and have not answered in time */
    rl_nodes ready;     /* gaps whose wait was over before the others were read */
    uint64_t due_ns;    /* next look (boot clock); RL_NEVER: none */
};

/* Fences are used: makes the records if this is the first time, and starts to look. false: no
 * memory. */
bool rl_records_start(struct rl_engine *engine);
/* Takes the records of all nodes that answer into use, whatever they say now, with the largest
 * numbers found and the wall clock; those that are late are asked again for `wait_ns`. false: no
 * memory. */
bool rl_records_init(struct rl_engine *engine, uint64_t wait_ns);
/* Whether that is over, and how, as far as it has come: 0; ENOQUORUM: too few answered, nothing was
 * changed; EFENCE: too few did as they were told. */
bool rl_records_init_is_done(const struct rl_engine *engine, int *ret_status);

/* A majority was seen in use: what begins now may be granted. If not, a node that grants may be
 * one of a first start under way, forget that, and be taken for new. */
bool rl_records_may_vote(const struct rl_engine *engine);
/* There may be such a majority: nodes that have not told are enough for it. That is for the next
 * attempt to find out, and no matter of records. */
bool rl_records_are_unread(const struct rl_engine *engine);

/* An answer to READ or SEED. */
void rl_records_vote(struct rl_engine *engine, const struct rl_ballot *ballot,
                     const struct rl_reply *reply);
/* What an answer to a vote or a RAISE shows of the node's record. */
void rl_records_note(struct rl_engine *engine, const struct rl_ballot *ballot);
/* A node's connection came or went. */
void rl_records_changed(struct rl_engine *engine, struct rl_node *node);
/* Does what is due. */
void rl_records_tick(struct rl_engine *engine);
uint64_t rl_records_wake_ns(const struct rl_engine *engine);

/* Nodes whose record is in one of these states, a bit for each enum rl_record_state. */
rl_nodes rl_records_in(const struct rl_engine *engine, unsigned states);
/* How long a gap has to wait until it may be filled from the others. */
uint64_t rl_records_wait_left_ns(const struct rl_engine *engine, unsigned node);
/* record_read.c. Records shall survive restarts, and nobody says that this node's does: whatever it
 * holds. */
bool rl_record_is_unattested(const struct rl_engine *engine, unsigned index);
/* Whose record it is, by the fingerprint in it. */
enum rl_record_state rl_record_classify(const struct rl_engine *engine, unsigned index,
                                        struct rl_arg config);
/* The gap that we see: the one we know, or a new one, then the wait starts anew, and if it was to
 * be filled by a first start, it has been meanwhile. */
void rl_record_note_gap(const struct rl_engine *engine, unsigned index, struct rl_arg mark);
/* Returns the state of the node's record, an enum rl_record_state. */
enum rl_record_state rl_records_state(const struct rl_engine *engine, unsigned node);
/* record_text.c: why the node's record is not in use, for people. */
void rl_records_text(const struct rl_engine *engine, unsigned node, char *text, size_t size);
/* The fingerprint of another configuration, without the run of the server behind it. */
void rl_record_note_other(struct rl_record *record, struct rl_arg config);

#endif
