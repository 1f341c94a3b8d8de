/* SPDX-License-Identifier: MIT
 * Locks of one engine: queues and their memory, wait budgets of locks that start late, and the
 * commands for fenced locks, for locks on several keys and for permits.
 *
 * Uses engine_rig.h: two engines, called clients 0 and 1, on three correct servers, in virtual
 * time. rig_hold() acquires a lock, rig_call() passes a call of the user to it, and rig_pass()
 * advances time and runs the servers and both engines. */
#include "engine/lock_send.h"
#include "engine/slot.h"
#include "engine_rig.h"

#define LONG_NS (20 * RL_SECOND)

static struct rl_engine *engine; /* that of client 0 */

/* Fixture: opens both engines and waits until that of client 0 is ready. */
static void setup(void)
{
    rig_begin(NULL);
    engine = rig_engine(0);
    rig_pass(20 * RL_MS);
    ck_assert(rl_engine_is_ready(engine));
}

/* Limits the queue of a resource to one waiter. */
static void allow_one(struct rl_engine_params *params)
{
    params->queue_max = 1;
}

/* Opens the engines with short queues. */
static void setup_short_queues(void)
{
    rig_begin(allow_one);
    engine = rig_engine(0);
    rig_pass(20 * RL_MS);
}

/* Returns the parameters of a lock with a long TTL that waits without limit. */
static struct rl_lease_params waiting_params(void)
{
    struct rl_lease_params params = rig_params();

    params.terms.ttl_ns = LONG_NS;
    params.wait_ns = RL_NEVER;
    return params;
}

/* Starts a lock on the keys "a" and "b". */
static struct rig_lock *start_both(unsigned client, const struct rl_lease_params *params)
{
    static const char *const names[] = {"a", "b", NULL};

    return rig_start(client, params, names);
}

/* Returns true if the first client's unread bytes for the node contain these words. The servers
 * then read everything. */
static bool sends_words(unsigned node, const char *words)
{
    const struct world_conn *conn = &world.conns[0][node];

    rl_engine_flush(engine);
    bool found = memmem(conn->in, conn->in_len, words, strlen(words)) != NULL;
    world_serve_all();
    rig_turn(0);
    return found;
}

/* ---- late replies ---- */

/* The reply that says how many clients wait in the line comes when the lock is held and its next
 * round has begun: the client notes the others all the same. After a win with a bare majority that
 * is the rule. */
START_TEST(a_holder_learns_who_waits)
{
    const struct rl_lease_params params = waiting_params();
    const struct rl_reply reply = {.kind = RL_REPLY_BULK, .text = "0 - 2 -1 7 1 100", .len = 16};
    struct rl_ballot ballot = {.vote = RL_VOTE_GRANTED, .verb = RL_VERB_LINE_LEAVE, .rtt_us = 100};
    struct rig_lock *held = rig_hold(0, &params, "a");

    ballot.round = held->lock.lease.round.number - 1;
    rl_lock_vote(engine, &held->lock, &ballot, &reply);
    ck_assert(rl_contention_is_recent(held->lock.lease.contention, engine->view.now.boot_ns));
}
END_TEST

/* ---- queues ---- */

/* A lock on several keys is refused if the queue of any of them is full. */
START_TEST(a_full_queue_of_any_resource_refuses)
{
    const struct rl_lease_params params = waiting_params();

    (void)rig_hold(0, &params, _i == 0 ? "a" : "b");
    ck_assert_int_eq(rig_start_one(0, &params, _i == 0 ? "a" : "b")->status, REDLOCK_OK);
    ck_assert_int_eq(start_both(0, &params)->status, REDLOCK_EQUEUEFULL);
    ck_assert_uint_eq(engine->stats.queue_full, 1);
}
END_TEST

/* Two locks are released in one turn. A lock on both resources cannot begin, because another one is
 * before it in the first queue. A lock on the second resource then begins at once. */
START_TEST(a_lock_that_cannot_begin_blocks_no_other_resource)
{
    const struct rl_lease_params params = waiting_params();
    struct rig_lock *first = rig_hold(0, &params, "a"), *second = rig_hold(0, &params, "b");
    const struct rig_lock *third = rig_start_one(0, &params, "a");
    const struct rig_lock *both = start_both(0, &params);
    const struct rig_lock *last = rig_start_one(0, &params, "b");

    rig_pass(10 * RL_SECOND);
    const uint64_t due_ns = both->lock.due_ns;
    rl_engine_refresh(engine);
    rl_lock_event(engine, &first->lock, RL_EVENT_RELEASE, 0, 0);
    rl_lock_event(engine, &second->lock, RL_EVENT_RELEASE, 0, 0);
    rl_engine_flush(engine);
    ck_assert_uint_eq(both->lock.due_ns, due_ns);
    ck_assert_int_eq(third->lock.lease.state, RL_STATE_ACQUIRING);
    ck_assert_int_eq(both->lock.lease.state, RL_STATE_QUEUED);
    ck_assert_int_eq(last->lock.lease.state, RL_STATE_ACQUIRING);
}
END_TEST

/* Starts a lock on the resource and cancels it at once. */
static void use_and_cancel(const char *name)
{
    static struct rig_lock lock;
    const struct rl_lease_params params = rig_params();
    const struct rl_arg key = {name, strlen(name)}, none = {NULL, 0};
    struct rl_storage storage = rl_storage_for(&params);

    memset(&lock, 0, sizeof lock);
    storage.at = lock.room;
    ck_assert_int_eq(rl_lock_start(engine, &lock.lock, &params, &storage, key, none), REDLOCK_OK);
    rl_lock_event(engine, &lock.lock, RL_EVENT_CANCEL, 0, REDLOCK_ECANCELED);
    ck_assert(!lock.lock.active);
    rig_take(0);
    rl_lock_dispose(engine, &lock.lock);
}

/* All locks have just left the queue of a resource, which is now the oldest idle one. The client
 * drops its state only after the turn that was planned for it. */
START_TEST(a_resource_is_not_forgotten_before_its_turn)
{
    const struct rl_lease_params params = waiting_params();
    const struct rl_arg key = {"a", 1};
    struct rig_lock *first = rig_hold(0, &params, "a"), *second = rig_start_one(0, &params, "a");
    char name[16];

    rl_engine_refresh(engine);
    rl_lock_event(engine, &first->lock, RL_EVENT_DETACH, 0, 0);
    rl_lock_event(engine, &second->lock, RL_EVENT_CANCEL, 0, REDLOCK_ECANCELED);
    ck_assert_ptr_nonnull(engine->resources.turns);
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "n%u", i);
        use_and_cancel(name);
    }
    ck_assert_ptr_nonnull(rl_resource_find(engine, key));
    rl_engine_flush(engine);
    ck_assert_ptr_null(engine->resources.turns);
    use_and_cancel("n300");
    ck_assert_ptr_null(rl_resource_find(engine, key));
}
END_TEST

/* ---- permits ---- */

/* Returns the parameters of a lock on one of `permits` slots. */
static struct rl_lease_params permit_params(unsigned permits)
{
    struct rl_lease_params params = waiting_params();

    params.terms.permits = (uint16_t)permits;
    return params;
}

/* A notification names one slot. The lock tries it without probing the others. */
START_TEST(a_notification_of_a_slot_starts_an_attempt_on_it)
{
    const struct rl_lease_params params = permit_params(2);

    (void)rig_hold(1, &params, "s");
    (void)rig_hold(1, &params, "s");
    struct rig_lock *item = rig_start_one(0, &params, "s");
    rig_pass(20 * RL_MS);
    while (item->lock.lease.state != RL_STATE_WAITING)
        rig_pass(RIG_STEP);
    item->lock.lease.wait.tracked = RL_NODE(0);
    item->lock.lease.permit->open = 0;
    rl_lock_wake(engine, 0, (struct rl_arg){"s{#1}", 5}, false);
    ck_assert(!item->lock.lease.permit->searching);
    ck_assert(item->lock.lease.permit->open != 0 || rl_lease_slot(&item->lock.lease) == 1);
}
END_TEST

/* The client itself releases a permit. The first lock in the queue is notified once. */
START_TEST(a_release_by_the_client_notifies_once)
{
    const struct rl_lease_params params = permit_params(2);
    struct rl_resource *resource;
    char key[RL_SLOT_KEY_MAX];

    struct rig_lock *first = rig_hold(0, &params, "s");
    (void)rig_hold(1, &params, "s");
    const struct rig_lock *item = rig_start_one(0, &params, "s");
    rig_pass(100 * RL_MS);
    ck_assert(!rig_holds(item));
    resource = rl_resource_find(engine, rl_slot_resource_key(key, (struct rl_arg){"s", 1}));
    ck_assert_ptr_eq(resource->front, &item->lock);
    rl_engine_refresh(engine);
    rl_lock_event(engine, &first->lock, RL_EVENT_RELEASE, 0, 0);
    ck_assert(resource->released);
    rl_engine_flush(engine);
    ck_assert(!resource->released);
    rig_pass(200 * RL_MS);
    ck_assert(rig_holds(item));
}
END_TEST

/* A permit expires before its confirmation. The lock waits again, first in its client's queue. */
START_TEST(an_unconfirmed_permit_waits_in_front_again)
{
    struct rl_lease_params params = permit_params(2);
    char key[RL_SLOT_KEY_MAX];

    params.confirms = true;
    struct rig_lock *item = rig_start_one(0, &params, "s");
    const struct rl_resource *resource =
        rl_resource_find(engine, rl_slot_resource_key(key, (struct rl_arg){"s", 1}));
    world_serve_all();
    rl_engine_refresh(engine);
    world_deliver(0, SIZE_MAX);
    ck_assert(rl_lease_is_held(&item->lock.lease));
    ck_assert_ptr_null(resource->front);
    world.now_ns += LONG_NS;
    rl_engine_refresh(engine);
    rl_lock_event(engine, &item->lock, RL_EVENT_CONFIRM, 0, 0);
    ck_assert_int_eq(item->lock.lease.state, RL_STATE_WAITING);
    ck_assert_ptr_eq(resource->front, &item->lock);
}
END_TEST

/* A probe of one slot is replaced by that of another slot. The reply to the first may come when the
 * lock does not exist any more. */
START_TEST(the_reply_to_a_replaced_probe_is_ignored)
{
    const struct rl_lease_params params = permit_params(200);
    const struct rl_effects fx = {.probe = RL_NODE(0), .slots = 1};
    struct rig_lock *item = rig_start_one(0, &params, "s");

    rl_slot_probe(engine, &item->lock, &fx);
    const struct rl_claim *first = item->lock.probes[0];
    ck_assert_ptr_eq(first->owner, &item->lock);
    item->lock.lease.permit->start = (uint16_t)(item->lock.lease.permit->start + 64) % 200;
    rl_slot_probe(engine, &item->lock, &fx);
    ck_assert_ptr_ne(item->lock.probes[0], first);
    ck_assert_uint_ne(item->lock.probes[0]->slot, first->slot);
    ck_assert_ptr_null(first->owner);
}
END_TEST

/* A lock probes 64 slots together. The claims of the probes are freed with it, which rig_end()
 * checks. */
START_TEST(the_claims_of_many_probes_are_freed)
{
    const struct rl_lease_params params = permit_params(64);
    char key[16];

    for (unsigned i = 0; i < 64; i++) {
        snprintf(key, sizeof key, "s{#%u}", i);
        for (unsigned node = 0; node < NODES; node++)
            fake_store_put(&world.nodes[node].store, world.now_ns / RL_MS, key, "foreign", 0);
    }
    struct rig_lock *item = rig_start_one(0, &params, "s");
    rig_pass(500 * RL_MS);
    unsigned claims = 0;
    for (unsigned i = 0; i < 64 && item->lock.probes != NULL; i++)
        claims += item->lock.probes[i] != NULL;
    ck_assert_uint_eq(claims, 64);
    rig_call(item, RL_EVENT_CANCEL, 0);
    ck_assert_ptr_null(item->lock.probes);
}
END_TEST

/* ---- several keys ---- */

/* The probe has the key that the lock waits for now, not the one before. */
START_TEST(a_node_is_asked_about_the_awaited_key)
{
    const struct rl_lease_params params = waiting_params();
    const struct rl_effects fx = {.probe = RL_NODE(0)};

    (void)rig_hold(1, &params, "a");
    (void)rig_hold(1, &params, "b");
    struct rig_lock *item = start_both(0, &params);
    rig_pass(20 * RL_MS);
    for (unsigned i = 0; i < 4; i++) {
        item->lock.lease.wait.key = (uint8_t)(i & 1);
        rl_engine_refresh(engine);
        rl_lock_send_probe(engine, &item->lock, &fx);
        ck_assert(sends_words(0, i % 2 == 0 ? "PTTL\r\n$1\r\na\r\n" : "PTTL\r\n$1\r\nb\r\n"));
    }
}
END_TEST

/* A notification names a key of the lock that it does not wait for. */
START_TEST(a_notification_of_another_key_is_ignored)
{
    const struct rl_lease_params params = waiting_params();

    (void)rig_hold(1, &params, "a");
    (void)rig_hold(1, &params, "b");
    struct rig_lock *item = start_both(0, &params);
    rig_pass(20 * RL_MS);
    while (item->lock.lease.state != RL_STATE_WAITING)
        rig_pass(RIG_STEP);
    struct rl_wait *wait = &item->lock.lease.wait;
    wait->key = 0;
    wait->tracked = RL_NODE(0);
    wait->free = false;
    rl_lock_wake(engine, 0, (struct rl_arg){"b", 1}, false);
    ck_assert_int_eq(item->lock.lease.state, RL_STATE_WAITING);
    ck_assert(!wait->free);
    rl_lock_wake(engine, 0, (struct rl_arg){"a", 1}, false);
    ck_assert(wait->free || item->lock.lease.state == RL_STATE_ACQUIRING);
}
END_TEST

/* ---- fenced locks ---- */

/* Returns the parameters of a fenced lock. */
static struct rl_lease_params fenced_params(uint64_t wait_ns)
{
    struct rl_lease_params params = waiting_params();

    params.terms.fence = true;
    params.wait_ns = wait_ns;
    return params;
}

/* Takes the fence records into use. */
static void use_records(void)
{
    const struct rl_lease_params params = fenced_params(5 * RL_SECOND);
    struct rig_lock *item = rig_start_one(0, &params, "first");

    for (unsigned i = 0; i < 5000 && !rig_holds(item); i++)
        rig_pass(RIG_STEP);
    ck_assert(rig_holds(item));
    rig_call(item, RL_EVENT_RELEASE, 0);
    rig_pass(5 * RL_MS);
    ck_assert(rl_records_may_vote(engine));
}

/* The time until the records are known counts for the wait budget. A budget of 0 and an unlimited
 * one stay as they are. */
START_TEST(waiting_for_the_records_counts_for_the_budget)
{
    static const uint64_t waits_ns[] = {0, 100 * RL_MS, 300 * RL_MS, RL_NEVER};
    static const uint64_t left_ns[] = {0, 1, 100 * RL_MS, RL_NEVER};
    const struct rl_lease_params params = fenced_params(waits_ns[_i]);

    use_records();
    engine->records->known = false;
    struct rig_lock *item = rig_start_one(0, &params, "late");
    rig_pass(200 * RL_MS);
    ck_assert_int_eq(item->lock.lease.state, RL_STATE_NEW);
    engine->records->known = true;
    rl_engine_refresh(engine);
    rl_lock_start_deferred(engine);
    ck_assert_int_eq(item->lock.lease.state, RL_STATE_ACQUIRING);
    ck_assert_uint_eq(item->lock.lease.wait_ns, left_ns[_i]);
    rl_engine_flush(engine);
}
END_TEST

/* No majority of records is known to be in use. A grant does not count then, because a first start
 * may be under way. The status depends on whether the other records were read. */
START_TEST(grants_without_a_majority_of_records_do_not_count)
{
    const bool unread = _i == 0;
    const struct rl_lease_params params = fenced_params(0);

    use_records();
    engine->records->used = RL_NODE(0);
    for (unsigned i = 1; i < NODES; i++)
        engine->records->nodes[i].state = unread ? RL_RECORD_UNKNOWN : RL_RECORD_MISSING;
    struct rig_lock *item = rig_start_one(0, &params, "early");
    ck_assert(item->lock.claim->too_early);
    ck_assert_int_eq(item->lock.claim->unread, unread);
    rig_pass(10 * RL_MS);
    ck_assert(!rig_holds(item));
    ck_assert_int_eq(item->status, unread ? REDLOCK_ENOQUORUM : REDLOCK_EFENCE);
}
END_TEST

/* No request of the attempt can be sent. The votes count after all requests were tried, so the
 * attempt fails once, and the lock waits for the next one. */
START_TEST(unsendable_requests_fail_the_attempt_once)
{
    struct rl_lease_params params = waiting_params();

    for (unsigned i = 0; i < NODES; i++)
        engine->nodes[i].detector.suspect = true;
    rl_engine_refresh(engine);
    struct rig_lock *item = rig_start_one(0, &params, "a");
    ck_assert_uint_eq(item->lock.lease.state, RL_STATE_WAITING);
    ck_assert_uint_eq(item->lock.lease.round.number, 1);
    ck_assert_uint_eq(rl_nodes_count(item->lock.lease.round.failed), 2); /* two of three decide */
    ck_assert_uint_eq(engine->stats.attempts, 1);
    ck_assert((item->flags & RL_FX_DONE) == 0);
    for (unsigned i = 0; i < NODES; i++)
        engine->nodes[i].detector.suspect = false;
    rig_pass(RL_SECOND);
    ck_assert(rig_holds(item));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_locks");
    TCase *tcase = tcase_create("locks");
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(tcase, setup, rig_end);
    tcase_add_test(tcase, a_lock_that_cannot_begin_blocks_no_other_resource);
    tcase_add_test(tcase, a_holder_learns_who_waits);
    tcase_add_test(tcase, a_resource_is_not_forgotten_before_its_turn);
    tcase_add_test(tcase, a_notification_of_a_slot_starts_an_attempt_on_it);
    tcase_add_test(tcase, a_release_by_the_client_notifies_once);
    tcase_add_test(tcase, the_claims_of_many_probes_are_freed);
    tcase_add_test(tcase, a_node_is_asked_about_the_awaited_key);
    tcase_add_test(tcase, a_notification_of_another_key_is_ignored);
    tcase_add_test(tcase, an_unconfirmed_permit_waits_in_front_again);
    tcase_add_test(tcase, the_reply_to_a_replaced_probe_is_ignored);
    tcase_add_loop_test(tcase, waiting_for_the_records_counts_for_the_budget, 0, 4);
    tcase_add_loop_test(tcase, grants_without_a_majority_of_records_do_not_count, 0, 2);
    tcase_add_test(tcase, unsendable_requests_fail_the_attempt_once);
    TCase *short_queues = tcase_create("short queues");
    suite_add_tcase(suite, short_queues);
    tcase_add_checked_fixture(short_queues, setup_short_queues, rig_end);
    tcase_add_loop_test(short_queues, a_full_queue_of_any_resource_refuses, 0, 2);
    return suite_run(suite);
}
