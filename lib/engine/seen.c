/* SPDX-License-Identifier: MIT
 * Keeps what the nodes reply to an inspection or a verification. */
#include "engine/seen.h"

#include "core/line.h"
#include "engine/engine.h"
#include "engine/slot.h"
#include "platform/hash.h"
#include "redlock/redlock.h"

#include <string.h>

/* Frees the value that was seen on one node and wipes it, because it may be a token. Resets the
 * other fields of `seen`, except pttl_ms. */
static void free_seen(struct rl_engine *engine, struct rl_seen *seen)
{
    rl_free_wiped(engine->mem, seen->value, seen->len);
    seen->value = NULL;
    seen->len = 0;
    seen->present = seen->foreign_kind = seen->ours = false;
}

/* Notes in seen->ours whether the value in the reply to a verification's GET is the token of the
 * lock. The value is not stored. */
static void compare_value(const struct rl_lock *lock, struct rl_seen *seen,
                          const struct rl_reply *reply)
{
    struct rl_arg token = rl_claim_token(lock->claim);

    seen->ours = seen->present && reply->kind == RL_REPLY_BULK && reply->len == token.len &&
                 memcmp(reply->text, token.data, token.len) == 0;
}

/* Stores a copy of the value in the reply to an inspection's GET. A value that is not a string,
 * longer than a token can be, or that of a line is not stored; seen->foreign_kind notes that.
 * Returns false without memory. */
static bool save_value(struct rl_engine *engine, struct rl_seen *seen, const struct rl_reply *reply)
{
    struct rl_arg records;
    bool is_token = reply->kind == RL_REPLY_BULK && reply->len <= RL_BULK_MAX &&
                    !rl_line_open((struct rl_arg){reply->text, reply->len}, &records);

    seen->foreign_kind = seen->present && !is_token;
    if (!seen->present || seen->foreign_kind)
        return true;
    seen->value = rl_strdup_len(engine->mem, reply->text, reply->len);
    seen->len = reply->len;
    return seen->value != NULL;
}

/* Returns whether the reply says what the key of a line holds: its value, or that it is no text. */
static bool is_known(const struct rl_reply *reply)
{
    if (reply == NULL || reply->kind == RL_REPLY_BULK)
        return reply != NULL;
    return reply->kind == RL_REPLY_ERROR &&
           rl_wire_error_cause(reply->text, reply->len) == REDLOCK_CAUSE_WRONGTYPE;
}

/* Notes what a node has replied to LINE_LIST or LINE_PERMITS (`verb`), which is sent behind
 * LINE_LIST: if it is a line, stores a copy. Without memory, what the node has said is not known.
 */
RL_RARE void rl_seen_note_line(struct rl_engine *engine, struct rl_lock *lock, unsigned node,
                               enum rl_verb verb, const struct rl_reply *reply)
{
    struct rl_seen *seen = &lock->seen[node];
    struct rl_arg records;

    seen->knows_line = is_known(reply);
    if (!seen->knows_line || reply->kind != RL_REPLY_BULK ||
        !rl_line_open((struct rl_arg){reply->text, reply->len}, &records))
        return;
    rl_free(engine->mem, seen->line);
    seen->line = rl_strdup_len(engine->mem, reply->text, reply->len);
    seen->line_len = reply->len;
    seen->knows_line = seen->line != NULL;
    seen->of_permits = verb == RL_VERB_LINE_PERMITS;
}

/* Notes in lock->seen what a node has replied to an inspection or a verification, which sends two
 * requests to each node: GET for the value, then PTTL for the time to live. Returns false after the
 * reply to GET, because the node's vote is not complete. Returns true when it is complete, and then
 * changes `ballot` to the vote of both replies. A failure completes the vote. With several keys GET
 * is the only request. The ballot then has the verb GET in any case, because that is the verb of
 * the round. */
RL_RARE bool rl_seen_note_key(struct rl_engine *engine, struct rl_lock *lock,
                              struct rl_ballot *ballot, const struct rl_reply *reply)
{
    struct rl_seen *seen = &lock->seen[ballot->node];
    bool verify = lock->lease.terms->kind == RL_LEASE_VERIFY;

    if (ballot->vote == RL_VOTE_FAILED || ballot->vote == RL_VOTE_SUSPECT) {
        ballot->verb = RL_VERB_GET;
        return true;
    }
    if (ballot->verb == RL_VERB_GET) {
        seen->present = ballot->vote == RL_VOTE_GRANTED;
        seen->ours = seen->present;
        seen->pttl_ms = -1;
        if (lock->claim->more_keys != 0)
            return true;
        if (verify) {
            compare_value(lock, seen, reply);
        } else if (!save_value(engine, seen, reply)) {
            ballot->vote = RL_VOTE_FAILED;
            ballot->cause = REDLOCK_CAUSE_NO_MEMORY;
            return true;
        }
        return false;
    }
    seen->pttl_ms = reply->integer;
    if (seen->pttl_ms == -2)
        free_seen(engine, seen); /* expired between the two requests */
    ballot->verb = RL_VERB_GET;
    ballot->vote = (verify ? seen->ours : seen->present) ? RL_VOTE_GRANTED : RL_VOTE_DENIED;
    return true;
}

/* Returns what was seen on the most preferred node that has a line of this kind (`of_permits`) for
 * the resource `key`; NULL: there is none. */
static const struct rl_seen *most_preferred(const struct rl_engine *engine,
                                            const struct rl_lock *lock, bool of_permits,
                                            struct rl_arg key)
{
    const uint64_t hash = rl_hash_bytes(key.data, key.len);
    const struct rl_seen *found = NULL;
    uint64_t best = 0;

    for (unsigned i = 0; lock->seen != NULL && i < engine->count; i++) {
        const struct rl_seen *seen = &lock->seen[i];
        uint64_t score = rl_resource_score(engine, hash, i);
        if (seen->line == NULL || seen->of_permits != of_permits ||
            (found != NULL && score <= best))
            continue;
        found = seen;
        best = score;
    }
    return found;
}

/* Returns the line that an inspection has seen, as the value of its key; empty: there is none. If
 * the key is that of a semaphore's first slot, the line of the semaphore goes before its own. */
struct rl_arg rl_seen_line(const struct rl_engine *engine, const struct rl_lock *lock)
{
    char bytes[RL_SLOT_KEY_MAX];
    const struct rl_seen *found = NULL;
    struct rl_arg key = rl_claim_key(lock->claim), name;

    if (rl_slot_is_first(key, &name))
        found = most_preferred(engine, lock, true, rl_slot_resource_key(bytes, name));
    if (found == NULL)
        found = most_preferred(engine, lock, false, key);
    return found != NULL ? (struct rl_arg){found->line, found->line_len} : (struct rl_arg){NULL, 0};
}

/* Returns whether two nodes showed the same value; false if one of them showed none. */
bool rl_seen_same(const struct rl_seen *a, const struct rl_seen *b)
{
    return a->value != NULL && b->value != NULL && a->len == b->len &&
           memcmp(a->value, b->value, a->len) == 0;
}

/* Frees what an inspection or a verification has seen, and wipes the values. */
void rl_seen_free(struct rl_engine *engine, struct rl_lock *lock)
{
    if (lock->seen == NULL)
        return;
    for (unsigned i = 0; i < lock->lease.terms->nodes; i++) {
        free_seen(engine, &lock->seen[i]);
        rl_free(engine->mem, lock->seen[i].line);
    }
    rl_free(engine->mem, lock->seen);
    lock->seen = NULL;
}
