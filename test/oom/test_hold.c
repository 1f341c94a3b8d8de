/* SPDX-License-Identifier: MIT
 * Memory runs out while a lock is held: extended, lost, released, released with a delay. Each case
 * is a scenario of rig.h: rig_sweep() runs prepare(), act() and judge() once for each allocation of
 * act(), which then fails, alone or with all later ones (rig.starve). A case proves that each call
 * ends with a status that a lack of memory explains; with .frugal it proves that act() does not
 * allocate. rig.lock is the lock that prepare() acquired; rig.hit is true if an allocation has
 * failed. */
#include <poll.h>

#include "rig.h"

#define SHORT_TTL_MS 1000 /* of a lock that is lost in a run in which it cannot be extended */
#define HEAL_MS      40   /* a heal without failures takes less than this */
#define BACK_MS      60   /* a reconnection without failures takes less than this */
#define KEEP_MS      30   /* delay of a delayed release */

static redlock_opts_t opts; /* of the lock */
static int lost_fd;         /* the lock's descriptor, readable after a loss */

/* Acquires the lock on all nodes. */
static void hold(void)
{
    opts = redlock_opts(RIG_TTL_MS);
    rig_hold_on_all("resource", &opts);
}

/* Extends the lock as call 0. */
static void extend(void)
{
    rig_extend(0, rig.lock, RIG_TTL_MS);
    rig_finish();
}

/* Checks that a failed extension leaves the lock on a majority with most of its validity. */
static void judge_extension(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    ck_assert_int_eq(redlock_lock_check(rig.lock, RIG_TTL_MS / 2), REDLOCK_OK);
    ck_assert_uint_ge(rig_count_held(), RIG_NODES / 2 + 1);
}

START_TEST(extending_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "extend", .prepare = hold, .act = extend, .judge = judge_extension});
}
END_TEST

/* Acquires the lock and removes the scripts from the servers. */
static void hold_without_scripts(void)
{
    hold();
    rig_command_all("SCRIPT FLUSH");
}

START_TEST(extending_without_memory_and_scripts)
{
    rig_sweep(&(struct scenario){.name = "extend after SCRIPT FLUSH",
                                 .prepare = hold_without_scripts,
                                 .act = extend,
                                 .judge = judge_extension});
}
END_TEST

/* Acquires the lock and removes its key from one server. */
static void hold_with_a_missing_key(void)
{
    hold();
    rig_command(0, "FLUSHALL");
}

/* Returns true if the key is back on the first server. */
static bool is_healed(void)
{
    rig_exempt(true);
    const bool there = cluster_integer(rig.cluster, 0, "EXISTS resource") == 1;
    rig_exempt(false);
    return there;
}

/* Extends the lock and waits for the heal. */
static void extend_and_heal(void)
{
    extend();
    rig_drive(is_healed, HEAL_MS);
}

/* Checks that the key is back unless something has failed. */
static void judge_heal(void)
{
    judge_extension();
    ck_assert_msg(rig.hit || rig_count_held() == RIG_NODES, "the gap is not healed");
}

START_TEST(healing_without_memory)
{
    rig_sweep(&(struct scenario){.name = "heal",
                                 .prepare = hold_with_a_missing_key,
                                 .act = extend_and_heal,
                                 .judge = judge_heal});
}
END_TEST

/* ---- extended automatically, without memory for longer than the lock is valid ---- */

static bool was_in_margin; /* the last turn of the loop has ended in the margin */
static bool was_reported;  /* each turn in the margin has ended with ENDANGERED reported */
static unsigned
    margin_turns; /* turns of the loop that began and ended in the margin, in all runs */

/* Acquires a lock that is extended automatically. If all later allocations fail, its TTL is short,
 * because it will be lost. If only one fails, its TTL is longer than any pause of the machine, and
 * the first extension is due soon: the lock is not lost then. */
static void hold_with_auto_extension(void)
{
    opts = redlock_opts(rig.starve ? SHORT_TTL_MS : RIG_TTL_MS);
    opts.wait_ms = RIG_TTL_MS; /* the machine may pause for longer than the short TTL */
    opts.flags = REDLOCK_FLAG_AUTO_EXTEND;
    opts.margin_ms = opts.ttl_ms / 2;
    opts.extend_at_ms = rig.starve ? 0 : RIG_TTL_MS / 100 * 98;
    was_in_margin = false;
    was_reported = true;
    rig_hold_on_all("resource", &opts);
}

/* Returns true after two extensions or the loss. Notes whether the turn of the loop before this
 * call has reported ENDANGERED, if it began and ended in the margin. */
static bool is_extended_or_lost(void)
{
    const uint64_t left_ms = redlock_lock_remaining_ms(rig.lock);
    const bool is_in_margin = left_ms > 0 && left_ms < opts.margin_ms;

    if (is_in_margin && was_in_margin) {
        margin_turns++;
        was_reported = was_reported && rig.events[REDLOCK_EVENT_ENDANGERED] > 0;
    }
    was_in_margin = is_in_margin;
    return rig.events[REDLOCK_EVENT_EXTENDED] >= 2 || rig.events[REDLOCK_EVENT_LOST] > 0;
}

/* Waits for two extensions or the loss. */
static void wait_for_extensions(void)
{
    lost_fd = redlock_lock_fd(rig.lock);
    if (!rig_drive(is_extended_or_lost, 5000))
        rig_die("neither extended nor lost");
}

/* Checks that a loss is reported everywhere, and that one failure does not cause it. A loop that
 * stands still for the whole margin reports the loss only. */
static void judge_auto_extension(void)
{
    struct pollfd ready = {.fd = lost_fd, .events = POLLIN};

    ck_assert_int_ge(lost_fd, 0);
    const bool lost = rig.events[REDLOCK_EVENT_LOST] > 0;
    ck_assert_int_eq(poll(&ready, 1, 0), lost);
    ck_assert_int_eq(redlock_lock_check(rig.lock, 0), lost ? REDLOCK_ELOST : REDLOCK_OK);
    ck_assert_msg(was_reported, "a turn in the margin has not reported ENDANGERED");
    if (!rig.starve)
        ck_assert_msg(!lost, "one failed allocation has lost the lock");
    if (!lost)
        return;
    ck_assert_uint_eq(rig.events[REDLOCK_EVENT_LOST], 1);
    ck_assert_uint_le(rig.events[REDLOCK_EVENT_ENDANGERED], 1);
    redlock_lock_free(rig.lock);
    rig.lock = NULL;
}

START_TEST(extending_automatically_without_memory)
{
    margin_turns = 0;
    rig_sweep(&(struct scenario){.name = "extended by itself",
                                 .prepare = hold_with_auto_extension,
                                 .act = wait_for_extensions,
                                 .judge = judge_auto_extension});
    ck_assert_msg(margin_turns > 0, "the loop has never turned in the margin of a lost lock");
}
END_TEST

/* ---- released ---- */

/* Releases the lock. */
static void release(void)
{
    rig_release(0, rig.lock);
    rig_finish();
}

/* Checks that the lock counts as lost for the caller, with any status of the call. The rig checks
 * that its keys disappear. */
static void judge_release(void)
{
    RIG_EXPECT(0, REDLOCK_OK, REDLOCK_ENOMEM, REDLOCK_ENOQUORUM);
    ck_assert_int_eq(redlock_lock_check(rig.lock, 0), REDLOCK_ELOST);
    redlock_lock_free(rig.lock);
    rig.lock = NULL;
}

START_TEST(releasing_without_memory)
{
    rig_sweep(&(struct scenario){.name = "release",
                                 .prepare = hold,
                                 .act = release,
                                 .judge = judge_release,
                                 .frugal = true});
}
END_TEST

START_TEST(releasing_without_memory_and_scripts)
{
    rig_sweep(&(struct scenario){.name = "release after SCRIPT FLUSH",
                                 .prepare = hold_without_scripts,
                                 .act = release,
                                 .judge = judge_release});
}
END_TEST

/* Returns true if two nodes were connected again. */
static bool are_connected_again(void)
{
    return rig.events[REDLOCK_EVENT_NODE_UP] >= 2;
}

/* Ends two connections and releases the lock. */
static void release_after_reconnect(void)
{
    rig_command(3, "CLIENT KILL TYPE normal");
    rig_command(4, "CLIENT KILL TYPE normal");
    release();
    rig_drive(are_connected_again, BACK_MS);
}

START_TEST(releasing_without_memory_after_a_disconnect)
{
    rig_sweep(&(struct scenario){.name = "release over a lost connection",
                                 .prepare = hold,
                                 .act = release_after_reconnect,
                                 .judge = judge_release});
}
END_TEST

/* Releases the lock with a delay. */
static void release_with_a_delay(void)
{
    rig.call[0].borrows = true;
    rig_started(0, redlock_release_after_start(rig.lock, KEEP_MS, rig_done, &rig.call[0]));
    rig_finish();
}

START_TEST(releasing_with_a_delay_without_memory)
{
    rig_sweep(&(struct scenario){.name = "release_after",
                                 .prepare = hold,
                                 .act = release_with_a_delay,
                                 .judge = judge_release});
}
END_TEST

/* Frees the handle of the held lock and turns the loop for 3 ms. */
static void free_handle(void)
{
    redlock_lock_free(rig.lock);
    rig.lock = NULL;
    rig_drive(rig_never, 3);
}

START_TEST(freeing_a_handle_without_memory)
{
    rig_sweep(&(struct scenario){
        .name = "lock freed", .prepare = hold, .act = free_handle, .frugal = true});
}
END_TEST

static Suite *hold_suite(void)
{
    Suite *suite = suite_create("oom_hold");
    TCase *tcase = tcase_create("hold");
    rig_add_fixtures(tcase);
    tcase_add_test(tcase, extending_without_memory);
    tcase_add_test(tcase, extending_without_memory_and_scripts);
    tcase_add_test(tcase, healing_without_memory);
    tcase_add_test(tcase, extending_automatically_without_memory);
    tcase_add_test(tcase, releasing_without_memory);
    tcase_add_test(tcase, releasing_without_memory_and_scripts);
    tcase_add_test(tcase, releasing_without_memory_after_a_disconnect);
    tcase_add_test(tcase, releasing_with_a_delay_without_memory);
    tcase_add_test(tcase, freeing_a_handle_without_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return rig_main(hold_suite());
}
