/* SPDX-License-Identifier: MIT
 * Reads the fence records and fills their gaps. A fence record is the hash in which one server
 * keeps its largest fencing tokens; a gap is a record that is not in use and may be taken into use.
 * record.h has the rules by which gaps are filled.
 *
 * The work goes in phases (rl_records.phase). READING: the request READ is sent to all nodes, and
 * each reply returns a node's whole record. SEEDING: the request SEED is sent to the nodes whose
 * gaps are filled; it writes the numbers of the other records and takes the record into use. IDLE:
 * no request is in flight, and the next reading is planned for due_ns. finish_phase() leads from
 * one phase to the next when no reply is awaited any more.
 *
 * `index` is the index of a node. The states RL_RECORD_* of a record: ADMITTED is in use for our
 * configuration; MISSING and OLD_RUN are gaps; UNKNOWN was not read; FOREIGN, CORRUPT and
 * UNATTESTED need the operator. */
#include "engine/record.h"

#include "core/cause.h"
#include "engine/engine.h"
#include "engine/first_start.h"
#include "engine/record_init.h"
#include "redlock/redlock.h"

#include <stdio.h>
#include <string.h>

/* Time between two readings, in nanoseconds, while less than a quorum of records is in use. It is
 * doubled after each such reading, READ_AGAIN_DOUBLED times at most. */
#define READ_AGAIN_NS      RL_SECOND
#define READ_AGAIN_DOUBLED 5
/* Time between two readings, in nanoseconds, while another client may be in the middle of a first
 * start. It is doubled before each of the READ_SOON_TIMES readings, to 20, 40, 80 and 160 ms.
 * Attempts with fences wait for these 300 ms. */
#define READ_SOON_NS    (10 * RL_MS)
#define READ_SOON_TIMES 4

/* Returns the state of a node's record. `node`: its index. */
enum rl_record_state rl_records_state(const struct rl_engine *engine, unsigned node)
{
    return engine->records->nodes[node].state;
}

/* Returns the nodes whose record is in one of these states. Bit i of `states` stands for state i.
 */
rl_nodes rl_records_in_states(const struct rl_engine *engine, unsigned states)
{
    rl_nodes set = 0;

    for (unsigned i = 0; i < engine->count; i++)
        set |= (states & 1u << engine->records->nodes[i].state) != 0 ? RL_NODE(i) : 0;
    return set;
}

/* Returns the nodes whose record is in use. */
static rl_nodes admitted(const struct rl_engine *engine)
{
    return rl_records_in_states(engine, 1u << RL_RECORD_ADMITTED);
}

/* Returns the nodes whose record is a gap: not in use, and may be filled. */
static rl_nodes gaps(const struct rl_engine *engine)
{
    return rl_records_in_states(engine, 1u << RL_RECORD_MISSING | 1u << RL_RECORD_OLD_RUN);
}

/* Sets the state of a node's record. A record that is in use now is remembered in `used`, and does
 * not belong to a first start any more. */
static void set_state(struct rl_engine *engine, unsigned index, uint8_t state)
{
    engine->records->nodes[index].state = state;
    if (state != RL_RECORD_ADMITTED)
        return;
    engine->records->used |= RL_NODE(index);
    engine->records->nodes[index].first = false;
}

/* Returns the nodes that are asked about their records. Suspect nodes are asked, too: a first start
 * must not leave out a node because the machine is busy. */
static rl_nodes reachable(const struct rl_engine *engine)
{
    return engine->view.up | engine->view.suspect;
}

/* Returns whether a quorum of records is in use now. */
static bool has_majority(const struct rl_engine *engine)
{
    return rl_nodes_count(admitted(engine)) >= engine->quorum;
}

/* Returns whether this client has seen a quorum of records in use, at any time. Before that, the
 * grants of attempts with fences do not count. */
bool rl_records_may_vote(const struct rl_engine *engine)
{
    return rl_nodes_count(engine->records->used) >= engine->quorum;
}

/* Returns whether the records that this client has seen in use and those that it could not read are
 * a quorum together. */
bool rl_records_are_unread(const struct rl_engine *engine)
{
    return rl_nodes_count(engine->records->used |
                          rl_records_in_states(engine, 1u << RL_RECORD_UNKNOWN)) >= engine->quorum;
}

/* Starts the attempts with fences that wait for the first reading. Later calls do nothing. */
static void start_deferred(struct rl_engine *engine)
{
    struct rl_records *records = engine->records;

    if (records->known)
        return;
    records->known = true;
    rl_lock_start_deferred(engine);
}

/* Sends READ or SEED to one node, with a claim of its own. The token of the claim is a mark,
 * followed by `numbers`: what SEED writes, as text; "" for READ. READ sends a new random mark,
 * which the server stores if its record is a gap without a mark. SEED sends the mark of the gap as
 * it was read. If the request cannot be sent, the node is not added to `requested`. */
static void send_record_request(struct rl_engine *engine, unsigned index, enum rl_verb verb,
                                const char *numbers)
{
    struct rl_records *records = engine->records;
    struct rl_node *node = &engine->nodes[index];
    struct rl_record *record = &records->nodes[index];
    size_t len = strlen(numbers);
    struct rl_claim *claim =
        rl_claim_new(engine->mem, engine->params.fence_record, RL_RECORD_MARK_LEN + len);
    int cause = REDLOCK_CAUSE_NO_MEMORY;

    engine->common.cache.claim = NULL;
    if (claim != NULL) {
        char *words = claim->bytes + claim->token_at;
        memcpy(words, record->mark, RL_RECORD_MARK_LEN);
        for (size_t i = 0; verb == RL_VERB_READ && i < RL_RECORD_MARK_LEN; i++)
            words[i] = "0123456789abcdef"[rl_random_u64(&engine->random) >> 8 & 15];
        memcpy(words + RL_RECORD_MARK_LEN, numbers, len);
        claim->token_len = (uint32_t)(RL_RECORD_MARK_LEN + len);
        claim->owner = records;
        claim->is_record = true;
        claim->forced = records->init;
        cause =
            rl_node_request_suspect(node, claim, records->round, verb, engine->view.now.boot_ns);
        rl_claim_drop(claim);
    }
    if (cause == REDLOCK_CAUSE_NONE)
        records->requested |= RL_NODE(index);
}

/* Returns the time in nanoseconds until the node's gap has been known to this client for
 * fence_wait_ns, and may be filled from the other records; 0: it may be filled now. */
uint64_t rl_records_wait_left_ns(const struct rl_engine *engine, unsigned node)
{
    struct rl_now end = rl_later(engine->records->nodes[node].since, engine->params.fence_wait_ns);

    return rl_remaining_ns(end, engine->view.now);
}

/* Returns the gaps whose wait has ended. */
static rl_nodes ready_gaps(const struct rl_engine *engine)
{
    rl_nodes ready = 0;

    for (rl_nodes rest = gaps(engine); rest != 0; rest &= rest - 1) {
        unsigned i = (unsigned)__builtin_ctz(rest);
        ready |= rl_records_wait_left_ns(engine, i) == 0 ? RL_NODE(i) : 0;
    }
    return ready;
}

/* Leads to the next phase. Defined below, because finish_phase() and some functions here call each
 * other. */
static void finish_phase(struct rl_engine *engine);

/* Sends READ to these nodes, or has it sent as soon as they are connected (`waiting`). The record
 * of a node that cannot be reached becomes UNKNOWN. */
static void request_read(struct rl_engine *engine, rl_nodes nodes)
{
    struct rl_records *records = engine->records;

    records->timed_out = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        unsigned i = (unsigned)__builtin_ctz(nodes);
        if ((reachable(engine) & RL_NODE(i)) == 0)
            records->nodes[i].state = RL_RECORD_UNKNOWN;
        else if (rl_connection_is_ready(&engine->nodes[i].conn))
            send_record_request(engine, i, RL_VERB_READ, "");
        else
            records->waiting |= RL_NODE(i);
    }
}

/* Begins the phase READING: asks all nodes for their records, and forgets the numbers of the last
 * reading. Notes in `ready` which gaps have waited long enough before. */
static void begin_reading(struct rl_engine *engine)
{
    struct rl_records *records = engine->records;

    records->phase = RL_RECORDS_READING;
    records->round++;
    records->waiting = records->requested = records->answered = records->whole = 0;
    records->due_ns = RL_NEVER;
    records->ready = ready_gaps(engine);
    memset(records->fences, 0, sizeof records->fences);
    request_read(engine, rl_nodes_all(engine->count));
    finish_phase(engine);
}

/* Returns the numbers of `fences` that are not 0 as the text that SEED sends: "stripe:number",
 * separated by blanks. The caller frees the text. NULL: no memory. */
static char *fences_text(const struct rl_engine *engine)
{
    char *text = rl_alloc(engine->mem, RL_RECORD_TEXT_MAX);
    size_t at = 0;

    for (unsigned i = 0; text != NULL && i < RL_FENCE_STRIPES; i++) {
        uint64_t number = engine->records->fences[i];
        if (number == 0)
            continue;
        int len = snprintf(text + at, RL_RECORD_TEXT_MAX - at, "%s%u:%llu", at == 0 ? "" : " ", i,
                           (unsigned long long)number);
        at += (size_t)len;
    }
    return text;
}

/* Sends SEED with the numbers of the last reading to those of these nodes that are connected and
 * whose server was not restarted since that reading. For an operator's initialization, sends it
 * after a restart, too. Without memory for the text, sends nothing. */
static void send_seed_requests(struct rl_engine *engine, rl_nodes nodes)
{
    struct rl_records *records = engine->records;
    char *text = fences_text(engine);

    records->timed_out = 0;
    for (nodes &= reachable(engine); text != NULL && nodes != 0; nodes &= nodes - 1) {
        unsigned i = (unsigned)__builtin_ctz(nodes);
        /* After a restart the gap may be another one with the same mark, restored from a file. */
        bool same_run = strcmp(rl_eligibility_run_id(&engine->nodes[i].eligibility),
                               records->nodes[i].run) == 0;
        if (rl_connection_is_ready(&engine->nodes[i].conn) && (same_run || records->init))
            send_record_request(engine, i, RL_VERB_SEED, text);
    }
    rl_free(engine->mem, text);
}

/* Begins the phase SEEDING: fills the gaps of these nodes. */
static void begin_seeding(struct rl_engine *engine, rl_nodes nodes)
{
    engine->records->phase = RL_RECORDS_SEEDING;
    engine->records->round++;
    send_seed_requests(engine, nodes);
    finish_phase(engine);
}

/* Returns the nodes whose gaps are to be filled after a reading: those that an operator's
 * initialization or a first start chooses. Otherwise, if a quorum of records that were read is in
 * use, the gaps that have waited long enough. The rest of an interrupted first start may be filled
 * in any case. */
static rl_nodes choose_nodes_to_seed(struct rl_engine *engine)
{
    struct rl_records *records = engine->records;

    if (records->init)
        return rl_record_init_choose(engine);
    if (rl_first_start_begin(engine))
        return rl_nodes_all(engine->count);
    /* `fences` has all numbers of the records in `whole`. A quorum of these must be in use. A vote
     * can show that another record is in use, too, but not what its other registers contain. */
    rl_nodes read = admitted(engine) & records->whole;
    rl_nodes ready = records->ready & ready_gaps(engine) & records->answered;
    return (rl_nodes_count(read) >= engine->quorum ? ready : 0) | rl_first_start_unchanged(engine);
}

/* Returns whether the next reading follows within milliseconds, because another client may be in
 * the middle of a first start. It does not after READ_SOON_TIMES readings in a row. */
static bool reads_again_soon(const struct rl_engine *engine)
{
    return rl_first_start_is_elsewhere(engine) &&
           engine->records->reads_without_majority <= READ_SOON_TIMES;
}

/* Sets the boot time of the next reading: after an interval while less than a quorum of records is
 * in use, and when the wait of a gap ends. Without either, no reading is planned (RL_NEVER). */
static void plan_next_read(struct rl_engine *engine)
{
    struct rl_records *records = engine->records;
    uint64_t left_ns = RL_NEVER;

    records->reads_without_majority =
        has_majority(engine) ? 0 : records->reads_without_majority + 1;
    if (reads_again_soon(engine))
        left_ns = READ_SOON_NS << records->reads_without_majority;
    else if (records->reads_without_majority != 0)
        left_ns =
            READ_AGAIN_NS << rl_min_u64(records->reads_without_majority - 1, READ_AGAIN_DOUBLED);
    for (rl_nodes rest = gaps(engine); rest != 0; rest &= rest - 1) {
        unsigned i = (unsigned)__builtin_ctz(rest);
        uint64_t wait_ns = records->nodes[i].first ? 0 : rl_records_wait_left_ns(engine, i);
        left_ns = rl_min_u64(left_ns, wait_ns != 0 ? wait_ns : READ_AGAIN_NS);
    }
    /* Adds up to an eighth at random, so that not all clients read at once: a server needs a while
     * to list all its numbers. The clients that come later see in a vote that the gap is filled. */
    if (left_ns != RL_NEVER)
        left_ns += engine->view.random % (left_ns / 8 + 1);
    records->due_ns =
        left_ns == RL_NEVER ? RL_NEVER : rl_add_sat(engine->view.now.boot_ns, left_ns);
}

/* For an operator's initialization: sends the request of the phase again to those nodes that have
 * not replied in time. Returns whether replies are awaited now. */
static bool request_again(struct rl_engine *engine)
{
    struct rl_records *records = engine->records;
    rl_nodes late = rl_record_init_timed_out(engine);

    if (late == 0)
        return false;
    if (records->phase == RL_RECORDS_READING)
        request_read(engine, late);
    else
        send_seed_requests(engine, late);
    return (records->requested | records->waiting) != 0;
}

/* Ends the phase if no reply is awaited any more. After a reading, goes on with SEED, or with the
 * second reading of a first start. Otherwise becomes IDLE and plans the next reading. Also starts
 * the locks that wait for the records to be read: once a quorum is in use, or when this work is
 * done. */
static void finish_phase(struct rl_engine *engine)
{
    struct rl_records *records = engine->records;
    rl_nodes seed = 0;

    if (records->phase == RL_RECORDS_READING && has_majority(engine))
        start_deferred(engine); /* a quorum of records suffices: the other replies may come later */
    if (records->phase == RL_RECORDS_IDLE || (records->requested | records->waiting) != 0)
        return;
    if (records->init && request_again(engine))
        return;
    if (records->phase == RL_RECORDS_READING)
        seed = choose_nodes_to_seed(engine);
    if (seed != 0) {
        begin_seeding(engine, seed);
        return;
    }
    if (records->phase == RL_RECORDS_READING && !records->init && !records->is_second_read &&
        rl_first_start_is_near(engine)) {
        records->is_second_read = true;
        begin_reading(engine);
        return;
    }
    records->phase = RL_RECORDS_IDLE;
    records->is_second_read = false;
    records->init_done |= records->init;
    records->init = false;
    plan_next_read(engine);
    if (!reads_again_soon(engine))
        start_deferred(engine);
}

/* Allocates the records and begins the first reading, unless the engine has them already. Returns
 * false without memory. */
bool rl_records_start(struct rl_engine *engine)
{
    if (engine->records != NULL)
        return true;
    engine->records = rl_alloc(engine->mem, sizeof *engine->records);
    if (engine->records == NULL)
        return false;
    begin_reading(engine);
    return true;
}

/* Begins an operator's initialization of the records, which may take `wait_ns` nanoseconds: a
 * reading, then SEED to all nodes that have replied. Returns false without memory. */
bool rl_records_init(struct rl_engine *engine, uint64_t wait_ns)
{
    if (engine->records == NULL)
        engine->records = rl_alloc(engine->mem, sizeof *engine->records);
    if (engine->records == NULL)
        return false;
    rl_record_init_begin(engine, wait_ns);
    begin_reading(engine);
    return true;
}

/* Takes the record in the reply to READ: sets the state of the node's record, adds its numbers to
 * `fences`, where the largest of each stripe counts, and notes which gap it is. A record with a
 * malformed number is CORRUPT and not in use, unless it belongs to another configuration. */
static void take_record(struct rl_engine *engine, unsigned index, const struct rl_reply *reply)
{
    struct rl_records *records = engine->records;
    struct rl_record *record = &records->nodes[index];
    struct rl_record_text text = {0};
    unsigned stripe;
    uint64_t number;
    size_t at = 0;

    (void)rl_wire_record_parse(reply, &text); /* succeeds: a READ is granted only if it does */
    uint8_t state = (uint8_t)rl_record_classify(engine, index, text.config);
    record->empty = text.fences.len == 0;
    while (rl_wire_record_next(text.fences, &at, &stripe, &number))
        records->fences[stripe] = rl_max_u64(records->fences[stripe], number);
    bool broken = at < text.fences.len;
    if (state == RL_RECORD_FOREIGN)
        rl_record_note_other(record, text.config);
    else if (broken)
        state = RL_RECORD_CORRUPT;
    set_state(engine, index, state);
    if ((gaps(engine) & RL_NODE(index)) != 0)
        rl_record_note_gap(engine, index, text.mark);
    records->answered |= RL_NODE(index);
    records->whole |= broken ? 0 : RL_NODE(index);
}

/* Notes that a node has granted SEED: its record is in use from now on. */
static void note_seeded(struct rl_engine *engine, unsigned index)
{
    set_state(engine, index, RL_RECORD_ADMITTED);
    engine->records->seeded |= RL_NODE(index);
}

/* Takes the vote on a READ or SEED of the present phase. A READ that was not granted sets the state
 * that the vote shows. A node that was late stays in `requested` while an initialization still
 * waits for it. `reply`: what the vote follows from; NULL: there is none. */
void rl_records_vote(struct rl_engine *engine, const struct rl_ballot *ballot,
                     const struct rl_reply *reply)
{
    struct rl_records *records = engine->records;
    struct rl_record *record = &records->nodes[ballot->node];
    rl_nodes bit = RL_NODE(ballot->node);

    if (ballot->round != records->round || (records->requested & bit) == 0 ||
        ballot->vote == RL_VOTE_SUSPECT)
        return; /* SUSPECT is no reply: the node stays in `requested`, and its reply is awaited */
    records->timed_out &= ~bit;
    if (ballot->vote == RL_VOTE_FAILED && rl_cause_of(ballot->cause)->unanswered)
        records->timed_out |= bit;
    if (rl_record_init_waits(engine, ballot->node))
        return;
    records->requested &= ~bit;
    if (ballot->vote == RL_VOTE_GRANTED && ballot->verb == RL_VERB_READ)
        take_record(engine, ballot->node, reply);
    else if (ballot->vote == RL_VOTE_GRANTED)
        note_seeded(engine, ballot->node);
    else if (ballot->verb == RL_VERB_READ)
        record->state = ballot->record;
    finish_phase(engine);
}

/* Notes the state of a node's record that the reply to a lock's fenced request shows. If that is a
 * change, plans a reading at once when the record is not in use any more, or drops the planned one
 * when no gap is left. */
void rl_records_note(struct rl_engine *engine, const struct rl_ballot *ballot)
{
    struct rl_records *records = engine->records;
    struct rl_record *record = &records->nodes[ballot->node];
    uint8_t state = ballot->record;

    if (state != RL_RECORD_UNKNOWN && rl_record_is_unattested(engine, ballot->node))
        state = RL_RECORD_UNATTESTED;
    if (state == RL_RECORD_UNKNOWN || record->state == state)
        return;
    set_state(engine, ballot->node, state);
    if (records->phase != RL_RECORDS_IDLE)
        return;
    if (state != RL_RECORD_ADMITTED)
        records->due_ns = engine->view.now.boot_ns;
    else if (gaps(engine) == 0 && has_majority(engine))
        records->due_ns = RL_NEVER; /* another client has filled the last gap */
}

/* Notes that the connection of a node has changed. Sends READ to a node that has waited for its
 * connection. Gives up on a node that cannot be reached. Plans a reading at once if the node
 * belongs to a first start that was interrupted. */
void rl_records_changed(struct rl_engine *engine, struct rl_node *node)
{
    struct rl_records *records = engine->records;
    rl_nodes bit = RL_NODE(node->index);

    if (records == NULL)
        return;
    bool unfinished = records->nodes[node->index].first && (admitted(engine) & bit) == 0;
    if (unfinished && records->phase == RL_RECORDS_IDLE && rl_connection_is_ready(&node->conn))
        records->due_ns = engine->view.now.boot_ns; /* continues the first start */
    if ((records->requested & records->timed_out & bit) != 0 &&
        !rl_connection_is_ready(&node->conn)) {
        records->requested &= ~bit; /* its late reply cannot come any more */
        finish_phase(engine);
        return;
    }
    if ((records->waiting & bit) == 0)
        return;
    if ((reachable(engine) & bit) == 0)
        records->nodes[node->index].state = RL_RECORD_UNKNOWN;
    else if (!rl_connection_is_ready(&node->conn))
        return;
    else
        send_record_request(engine, node->index, RL_VERB_READ, "");
    records->waiting &= ~bit;
    finish_phase(engine);
}

/* Does what is due: begins the planned reading, or ends the wait for nodes that are late in an
 * initialization. */
void rl_records_tick(struct rl_engine *engine)
{
    struct rl_records *records = engine->records;

    if (rl_records_wake_ns(engine) > engine->view.now.boot_ns)
        return;
    if (records->phase == RL_RECORDS_IDLE) {
        begin_reading(engine);
        return;
    }
    records->requested &= ~records->timed_out;
    finish_phase(engine);
}

/* Returns the boot time at which rl_records_tick() has something to do; RL_NEVER: nothing is
 * planned, or there are no records. */
uint64_t rl_records_wake_ns(const struct rl_engine *engine)
{
    const struct rl_records *records = engine->records;

    if (records == NULL)
        return RL_NEVER;
    if (records->phase == RL_RECORDS_IDLE)
        return records->due_ns;
    return (records->requested & records->timed_out) != 0 ? rl_record_init_limit_ns(engine)
                                                          : RL_NEVER;
}
