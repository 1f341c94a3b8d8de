/* SPDX-License-Identifier: MIT
 * The fence records of the nodes: reads them, and takes gaps into use again. A fence record is the
 * hash in which one server keeps the largest fencing tokens it has seen; below, these are called
 * numbers. This client reads the records before its first fenced vote (the vote on a request that
 * proposes a fencing token), and whenever a node refuses such a vote because of its record.
 *
 * A gap is a record that is missing or belongs to an earlier run of its server: numbers that the
 * node has granted may be lost. A gap is filled, and so taken into use,
 *
 *   - at once on all nodes, if all of them are empty and this client has never seen a record in
 *     use: the first start (first_start.h);
 *   - with the largest numbers of the other nodes, if a quorum of them is in use, and if this
 *     client has known the gap for fence_wait_ns: then no attempt that counted a vote from before
 *     the gap can still be in progress;
 *   - otherwise by an operator only (rl_records_init()).
 *
 * Two requests do this work: READ returns the whole record of a node, and SEED writes numbers to a
 * record and takes the record into use. The first client that reads a gap leaves a mark in it, a
 * random text, and the SEED that fills the gap must name that mark. So a record that is emptied
 * again during the wait is a new gap, and its wait starts anew.
 *
 * All functions but rl_records_start(), rl_records_init(), rl_records_changed() and
 * rl_records_wake_ns() require that the records were allocated. `node` and `index` are the index of
 * a node. */
#ifndef RL_ENGINE_RECORD_H
#define RL_ENGINE_RECORD_H

#include "core/wire_fence.h"
#include "node/node.h"

struct rl_engine;

/* What this client knows of one node's record. Owner: record.c and record_read.c; first_start.c
 * sets `first`, record_text.c sets `other`. `mark`, `run` and `since` describe the gap that was
 * seen last, and keep their values while the record is in use. */
struct rl_record {
    uint8_t state;                     /* enum rl_record_state */
    bool empty;                        /* the record had no number when it was read last */
    bool unchanged;                    /* the last two readings of the gap found the same gap: same
                                        * mark, same run of the server */
    bool first;                        /* the gap belongs to a first start that this client has
                                        * begun, and may be filled without a wait */
    char mark[RL_RECORD_MARK_LEN];     /* mark of the gap; not terminated */
    char run[48];                      /* run id of the server that has the gap; terminated. 48:
                                        * as in struct rl_info */
    struct rl_now since;               /* when this client saw the gap first; its wait of
                                        * fence_wait_ns begins then */
    char other[RL_FENCE_TEXT_MAX + 1]; /* FOREIGN: fingerprint in the record, printable */
};

/* The phases of the work on the records: which requests are in flight. */
enum rl_records_phase {
    RL_RECORDS_IDLE = 0,    /* there are none */
    RL_RECORDS_READING = 1, /* READ, to all nodes */
    RL_RECORDS_SEEDING = 2  /* SEED, to the gaps that are filled */
};

/* The fence records of all nodes of one engine, and the reading or filling that is in progress.
 * Made when a lock uses fences for the first time, or by rl_records_init(). Owner: record.c; `init`
 * and its times belong to record_init.c, and lock_send.c and engine.c raise `hints`.
 *
 * Invariants: `waiting` and `requested` are empty in phase IDLE, and no node is in both. */
struct rl_records {
    uint64_t hints[RL_FENCE_STRIPES];  /* largest number that this client has seen of each stripe
                                        * in votes; 0: none */
    uint64_t fences[RL_FENCE_STRIPES]; /* largest number of each stripe in the records of the last
                                        * reading; 0: none */
    struct rl_record nodes[RL_NODES_MAX]; /* by index of the node */
    uint8_t phase;                        /* enum rl_records_phase */
    bool known;          /* a reading has found a quorum in use, or the first readings have ended:
                          * attempts with fences may start. Stays true from then on */
    bool is_second_read; /* this reading is the second one of a first start */
    bool init;       /* an operator has asked to initialize the records, and that is in progress */
    bool init_done;  /* the last such request has ended */
    rl_nodes used;   /* nodes whose record this client has seen in use at any time; such a record
                      * that is empty now has lost its numbers */
    rl_nodes seeded; /* nodes that have taken their record into use since `init` was set */
    uint64_t read_until_ns; /* with `init`, boot clock: replies to READ are awaited until then */
    uint64_t init_until_ns; /* with `init`, boot clock: replies to SEED are awaited until then */
    unsigned reads_without_majority; /* readings in a row after which less than a quorum of records
                                      * was in use */
    uint32_t round;                  /* number of the READs or SEEDs in flight, counted from 1 */
    rl_nodes waiting;                /* READING: nodes that are connecting, and get READ then */
    rl_nodes requested;              /* nodes that have READ or SEED in flight */
    rl_nodes answered;  /* nodes that have replied to READ with their record, in the last reading */
    rl_nodes whole;     /* of `answered`: the record has no malformed number, so `fences` has all of
                         * its numbers */
    rl_nodes timed_out; /* nodes that were asked in this phase and have not replied in time; if also
                         * in `requested`: the late reply is still awaited (with `init` only) */
    rl_nodes ready;     /* nodes with a gap whose wait had ended before the last reading began: only
                         * the numbers read after the wait may fill a gap */
    uint64_t due_ns;    /* IDLE: boot time of the next reading; RL_NEVER: none is planned */
};

/* Allocates the records and begins to read them, if that was not done before. Returns false without
 * memory. */
bool rl_records_start(struct rl_engine *engine);
/* Begins to take the records of all nodes that reply into use, whatever they contain, with the
 * largest of the numbers found and the wall clock. Nodes that are late are asked again until
 * `wait_ns` has passed. For an operator. Returns false without memory. */
bool rl_records_init(struct rl_engine *engine, uint64_t wait_ns);
/* Returns whether the work of rl_records_init() has ended. Sets `*ret_status` in any case, to the
 * result that the work has if it ends now: REDLOCK_OK; ENOQUORUM: fewer than a quorum of nodes have
 * replied, and nothing was changed; EFENCE: fewer than a quorum have taken their records into use.
 */
bool rl_records_init_is_done(const struct rl_engine *engine, int *ret_status);

/* Returns whether this client has seen a quorum of records in use. Grants of an attempt that began
 * before do not count: a node that grants during a first start may lose its record, and the same
 * first start would take it into use as if it had never granted. */
bool rl_records_may_vote(const struct rl_engine *engine);
/* Returns whether the records that this client has seen in use and those that it could not read
 * are a quorum together. Then an attempt whose votes may not count fails for lack of replies
 * (ENOQUORUM), not because of the records (EFENCE). */
bool rl_records_are_unread(const struct rl_engine *engine);

/* Takes the vote on a READ or SEED; `reply` is the reply itself, NULL if there is none. */
void rl_records_vote(struct rl_engine *engine, const struct rl_ballot *ballot,
                     const struct rl_reply *reply);
/* Notes what the reply to a fenced request shows of the node's record; a RAISE is one, too. */
void rl_records_note(struct rl_engine *engine, const struct rl_ballot *ballot);
/* Notes that the connection of a node has changed. Does nothing if there are no records. */
void rl_records_changed(struct rl_engine *engine, struct rl_node *node);
/* Does what is due at rl_records_wake_ns(). */
void rl_records_tick(struct rl_engine *engine);
/* Returns the boot time at which rl_records_tick() has something to do; RL_NEVER: never. */
uint64_t rl_records_wake_ns(const struct rl_engine *engine);

/* Returns the state of the node's record. */
enum rl_record_state rl_records_state(const struct rl_engine *engine, unsigned node);
/* Returns the nodes whose record is in one of these states; bit i of `states` stands for state i of
 * enum rl_record_state. */
rl_nodes rl_records_in_states(const struct rl_engine *engine, unsigned states);
/* Returns the time in nanoseconds until the node's gap may be filled from the other records; 0: it
 * may be filled now. */
uint64_t rl_records_wait_left_ns(const struct rl_engine *engine, unsigned node);

/* ---- record_read.c ---- */

/* Returns whether the records must be durable and the operator does not attest that this node's is.
 */
bool rl_record_is_unattested(const struct rl_engine *engine, unsigned index);
/* Returns the state of the node's record that follows from `config`, the fingerprint that was read
 * from it; empty: the record has none. */
enum rl_record_state rl_record_classify(const struct rl_engine *engine, unsigned index,
                                        struct rl_arg config);
/* Notes that the node has a gap with this mark. If it is not the gap that was seen before, its wait
 * starts anew, and it does not belong to a first start that was begun before. */
void rl_record_note_gap(const struct rl_engine *engine, unsigned index, struct rl_arg mark);

/* ---- record_text.c ---- */

/* Writes to `text`, of `size` bytes, why fenced votes of the node do not count: in English, for
 * messages. */
void rl_records_text(const struct rl_engine *engine, unsigned node, char *text, size_t size);
/* Stores the fingerprint `config` of another configuration in record->other, without the run id
 * after it. */
void rl_record_note_other(struct rl_record *record, struct rl_arg config);

#endif
