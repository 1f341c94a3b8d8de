/* SPDX-License-Identifier: MIT
 *
 * redlock.h: the public interface of libredlock, a Redlock client for C. It is the only header to
 * include; error.h, config.h, report.h and stats.h beside it are its parts.
 *
 * A lock is taken by sending `SET key token NX PX ttl` to N independent Redis masters and counting
 * the grants inside a validity window that is shortened by clock drift. What that promises and what
 * it does not is in docs/guarantees.md; how to build it into a program is in docs/embedding.md.
 *
 * For all of it
 *  - Results are 0 (REDLOCK_OK) or a negative enum redlock_error. An int may always be EINVAL (a
 *    handle or pointer is NULL, a value is out of range), ENOMEM or EFORKED. Contracts name what
 *    else is possible, without the prefix REDLOCK_. Calls that reach for nodes may also return
 *    ECLOSED: redlock_shutdown() or redlock_free() has begun.
 *  - Handles are opaque. Structs start with `size`, grow only at their end, and a field of 0 always
 *    means "default". Out-structs are passed with their size: the bytes both sides know are copied,
 *    the rest is zeroed.
 *  - ret_x is written on success only and may not be NULL; ret_report may be NULL and is always
 *    written: a report that the caller frees, or NULL (no memory).
 *  - Why a call was refused with EINVAL is in its report; where there is none (NULL was passed, or
 *    the call only starts something), it is a line of the log at REDLOCK_LOG_ERROR.
 *  - redlock_<verb>() asks the nodes; redlock_<object>_<noun>() is local and never blocks.
 *  - Strings are NUL-terminated bytes; what is passed in is copied. Times end in their unit (_ms).
 *  - The free functions take NULL. After fork() every handle of the parent is dead in the child:
 *    calls return EFORKED and send nothing; the free functions release memory and descriptors
 *    without a byte on the wire.
 *  - Functions of the caller (callbacks, bodies, log, allocator) return normally. A C++ exception
 *    that leaves one ends the program with std::terminate(); pthread_exit(), a cancellation or
 *    longjmp() must not leave one.
 *  - Everything is here since 0.1.0, unless its contract names a later version.
 *
 * Marks: who may call it, from where
 *  [any thread]  In every mode from any thread, also in a callback. Never blocks.
 *  [builder]     Never blocks; one thread at a time for a configuration.
 *  [blocks]      Threaded and hybrid mode, from any thread. In embedded mode EMODE, in a callback
 *                of that client EDEADLK.
 *  [starts]      Never blocks, also in a callback. From any thread; in embedded mode one thread at
 *                a time for a client and all that belongs to it.
 */
#ifndef REDLOCK_REDLOCK_H
#define REDLOCK_REDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "redlock/config.h"
#include "redlock/error.h"
#include "redlock/report.h"
#include "redlock/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Client */

/* Makes a client and starts to connect; returns before any node has answered. `config` stays the
 * caller's and is copied. EINVAL: no nodes, or drift eats up max_ttl_ms; ESYS: no descriptors or
 * no thread; ELIBRARY: the process has loaded another version of hiredis first, which has taken the
 * calls of this library over. The reason is in redlock_config_error(config). The client is freed by
 * redlock_free(). [builder] */
REDLOCK_API REDLOCK_NODISCARD int redlock_new(redlock_t **ret_rl, redlock_config_t *config);

/* Waits until a majority of nodes, of each set, is connected and may vote; not needed before other
 * calls. wait_ms (as every budget): at most INT64_MAX, or REDLOCK_WAIT_FOREVER. At its end:
 * ENOQUORUM, EAUTH or EEXCLUDED, as most nodes say; at once: EDUPLICATE (two addresses are one
 * server), ECLOSED. [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_wait_ready(redlock_t *rl, uint64_t wait_ms);

/* An operator's decision: takes the fence records of all nodes that answer into use, whatever they
 * say, with the largest numbers that any of them has, and not below the time of day. For a majority
 * of records that were lost, and after a change of what all clients must agree on (nodes, max_ttl,
 * prefix, kind of records, sets). The first start needs it only if not all nodes answer or not all
 * are empty. Not while fenced locks are being taken: a number granted in this moment may be missed.
 * Nodes that are late are asked again until wait_ms is over, for half of it to be read; those that
 * are known to be down are not waited for. ENOQUORUM: too few nodes answered in wait_ms, nothing
 * was changed; EFENCE: too few obeyed; EDUPLICATE. With several sets it is about all of them, and
 * the error that of one; the others may have been changed. [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_init_fence_records(redlock_t *rl, uint64_t wait_ms);

/* Ends what waits (ECLOSED), releases what is held, and sends the deletes that are still owed;
 * nothing new can be started. ENOQUORUM: not all of it was done in budget_ms; nodes that are known
 * to be down are not waited for, nor deletes of keys that have expired meanwhile. ENOMEM: it was,
 * but for deletes that there was no memory to keep: their keys stay until they expire
 * (redlock_stats_t.undo_dropped says how many). Free the client afterwards. [blocks] */
REDLOCK_API int redlock_shutdown(redlock_t *rl, uint64_t budget_ms);

/* Ends what waits (ECLOSED), sends what can be sent without waiting, closes, and runs the
 * callbacks that are due, on the calling thread. Locks, reports and cancels may be freed later.
 * EDEADLK in a callback: nothing happened. No other thread may be in a call on the client or begin
 * one. */
REDLOCK_API int redlock_free(redlock_t *rl);

/* Embedded and hybrid mode: the descriptor to poll for reading; the same for the client's life;
 * not to be read from or closed. EMODE in threaded mode. [any thread] */
REDLOCK_API int redlock_get_fd(redlock_t *rl);

/* Embedded and hybrid mode: does what is due and runs callbacks; to be called when the descriptor
 * is readable, harmless otherwise. Never blocks, but the callbacks take their time. EMODE in
 * threaded mode, EDEADLK in a callback. One thread at a time. */
REDLOCK_API int redlock_process(redlock_t *rl);

/* Options of one acquisition */

enum redlock_flags {
    REDLOCK_FLAG_AUTO_EXTEND = 1u << 0,
    REDLOCK_FLAG_FENCE = 1u << 1 /* the lock carries a number: redlock_lock_fence() */
};

/* What is acquired.
 *
 * A permit of a semaphore: at most opts.permits of them are held at once under one name. Each has a
 * slot, 0..permits - 1, and a slot is an ordinary lock with the key `name{#slot}`: what is said
 * here of locks is true of each slot, and foreign clients that set these keys are seen. Waiting
 * locks of one client queue under the name, and the next one asks as soon as the one before it
 * holds.
 *
 * All clients should give the same number. If they do not, a slot still never has two holders, but
 * as many permits are held as the largest number says, and who gives a smaller one competes for the
 * first slots only. */
enum redlock_kind {
    REDLOCK_KIND_EXCLUSIVE = 0, /* one holder of the resource */
    REDLOCK_KIND_PERMIT = 2     /* 1 is kept */
};
#define REDLOCK_PERMITS_MAX 1024

/* The tag differs from the function's name: C++ warns of a function that hides a struct. */
typedef struct redlock_options {
    size_t size;               /* set by redlock_opts() and redlock_opts_init() */
    uint64_t ttl_ms;           /* required: REDLOCK_TTL_MS_MIN..max_ttl_ms of the client */
    uint64_t wait_ms;          /* 0: one attempt, past the queue of this client. At most INT64_MAX,
                                * or REDLOCK_WAIT_FOREVER. When over: the
                                * cause of the last attempt that was decided, or ENOQUORUM;
                                * ECONTENDED if it was still in the queue */
    uint64_t validity_ms_min;  /* grants with less left are given back; 0: 1 ms */
    uint32_t flags;            /* enum redlock_flags; an unknown bit is EINVAL */
    uint32_t extends_max;      /* automatic extensions; 0: no limit */
    uint64_t extend_at_ms;     /* auto-extension starts with so much left; 0: 2/3 to 3/4 */
    uint64_t hold_ms_max;      /* lost at this age, more than validity_ms_min and at most
                                * INT64_MAX; 0: no limit */
    uint64_t margin_ms;        /* ENDANGERED this long before the deadline; 0: a tenth of the TTL */
    redlock_cancel_t *cancel;  /* may be NULL; referenced until the operation ends */
    redlock_event_fn event_fn; /* events of this lock; may be NULL */
    void *event_userdata;
    uint64_t fence;          /* adopt: the giver's redlock_lock_fence(); acquire: 0 */
    const char *const *also; /* further resources, taken and held together with the first: all or */
    size_t also_count;       /* none; in any order, each named once, not with REDLOCK_FLAG_FENCE */
    uint32_t kind;     /* enum redlock_kind; adopt: 0, also for a slot, see redlock_slot_name() */
    uint32_t permits;  /* REDLOCK_KIND_PERMIT: 1..REDLOCK_PERMITS_MAX; else 0 */
    const char *token; /* acquire: the token to use; NULL: a random one. Adopt: NULL. Since 0.2.0;
                        * the rules are at redlock_acquire() */
    redlock_event_end_fn event_end_fn; /* runs when event_fn and event_userdata are not used any
                                        * more; may be NULL; see below. Since 0.2.0 */
} redlock_opts_t;

/* opts.event_end_fn runs exactly once for each call that it is given to (acquire, adopt, with, and
 * their starting forms), whatever the call returns, and also without an event_fn. No event function
 * of the lock runs then or afterwards, so what event_userdata points to may be freed in it. When:
 *  - the call was refused before anything was started (EINVAL, ENOMEM, EFORKED, ...): before it
 *    returns, on the calling thread;
 *  - the acquisition fails or is cancelled: after its last event (REDLOCK_EVENT_WAITING) and after
 *    the function of the starting call; a blocking call may have returned before;
 *  - the lock ends: after REDLOCK_EVENT_RELEASED, after REDLOCK_EVENT_LOST, or after
 *    redlock_lock_detach(); the handle may be freed before or after;
 *  - the handle of a held lock is freed: soon, without waiting for the servers;
 *  - at the latest before redlock_free() returns, also for locks whose handles are freed later. A
 *    shutdown ends locks as a release does.
 * It runs where callbacks run (enum redlock_mode): in threaded mode on the library's thread, in the
 * others in redlock_process(); for what is left, on the thread that calls redlock_free(). The
 * client is not locked meanwhile. In a forked child it does not run for locks from before the fork:
 * no callback does, and the child may free its copy of the userdata after redlock_free(). It does
 * not run if opts is NULL, or if opts.size is too small for it. */

/* The defaults with a TTL; the caller sets what is to differ. [any thread] */
static inline redlock_opts_t redlock_opts(uint64_t ttl_ms)
{
    redlock_opts_t opts;
    memset(&opts, 0, sizeof opts);
    opts.size = sizeof opts;
    opts.ttl_ms = ttl_ms;
    return opts;
}
/* Writes the same defaults into *ret_opts, for callers that cannot use an inline function: bindings
 * of other languages. size: bytes of the caller's own redlock_opts_t; a struct that is smaller or
 * larger than the library's is allowed. All `size` bytes are written, none beyond. ttl_ms: as
 * opts.ttl_ms, checked by the call that the options are given to. *ret_opts stays the caller's;
 * nothing in it has to be freed. EINVAL: ret_opts is NULL, or size is too small for `size` and
 * `ttl_ms`; nothing was written. Since 0.2.0. [any thread] */
REDLOCK_API int redlock_opts_init(redlock_opts_t *ret_opts, size_t size, uint64_t ttl_ms);

/* A switch for calls of `rl` (opts.cancel and the `cancel` of the starting calls). [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_cancel_new(redlock_cancel_t **ret_cancel, redlock_t *rl);
/* Ends all calls that were given it with ECANCELED, and those that will be; for good. NULL: no-op.
 * Also in signal handlers. What an attempt has set is taken back. [any thread] */
REDLOCK_API void redlock_cancel_trigger(redlock_cancel_t *cancel);
/* Cancels nothing; not while a signal handler or another thread may trigger it. Allowed after
 * redlock_free(). [any thread] */
REDLOCK_API void redlock_cancel_free(redlock_cancel_t *cancel);

/* Blocking calls */

/* Takes the lock on `resource` (1..REDLOCK_RESOURCE_LEN_MAX bytes). Returns at the decision of a
 * majority; without one tries again, with random delays, until opts.wait_ms is over. On success
 * the caller owns *ret_lock: redlock_release(), then redlock_lock_free(). On failure nothing is
 * held, and what was set is deleted in the background. ECONTENDED: held by another client;
 * of a semaphore: all permits are.
 * With opts.also it is one lock of several resources: each server grants all of them or none in one
 * step, and whatever is done to the lock is done to all of them. While it waits it keeps none from
 * anybody else, so nobody waits for each other for ever, in whichever order they are named; where
 * they are busy all the time it may wait for long. It is held as long as all of them are. EINVAL:
 * they belong to more than one set of nodes (redlock_config_add_shard()).
 * opts.token is for callers that must know the token before the lock is taken: 1..1024 bytes of any
 * value but 0, copied. It must be new: never used before for this resource, in whichever process,
 * whether or not that acquisition succeeded. A server may still have to execute what was sent for
 * the earlier one, and would delete the later lock. 128 random bits make such a token. The client
 * enforces what of this it can see. The call makes one attempt, so opts.wait_ms must be 0, and the
 * next attempt needs another token. The token must not be that of another lock of this client, of a
 * request that a server has not answered, or of a pending undo. It is not for REDLOCK_KIND_PERMIT,
 * which tries several keys. Else EINVAL, and nothing was sent. The label of
 * redlock_config_set_owner() is not added to it. Since 0.2.0. EFENCE: the fence records of too many
 * nodes cannot be used (the report says why). ENOQUORUM: too few answered. ETOOSLOW: less than
 * opts.validity_ms_min was left. EEXCLUDED: too many replicas, loading or cluster nodes. At once,
 * without waiting: EINVAL (the report says why), EAUTH: too many refused the user; EDUPLICATE: two
 * addresses are one server; ECANCELED. [blocks]
 */
REDLOCK_API REDLOCK_NODISCARD int redlock_acquire(redlock_t *rl, const char *resource,
                                                  const redlock_opts_t *opts,
                                                  redlock_lock_t **ret_lock,
                                                  redlock_report_t **ret_report);

/* Gives the lock a new deadline; never an earlier one: where more than ttl_ms is left of the
 * validity, the servers are asked for that much. ttl_ms: REDLOCK_TTL_MS_MIN..max_ttl_ms; 0: that of
 * the acquisition. ELOST: it is not ours any more. EBUSY: another call runs on it. ENOQUORUM,
 * EEXCLUDED, EAUTH: too few votes; the old deadline stands. [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_extend(redlock_lock_t *lock, uint64_t ttl_ms,
                                                 redlock_report_t **ret_report);

/* Ends extensions, deletes the key everywhere. Returns when a majority is known not to have it; the
 * rest is done in the background. From then on the lock is not held, whatever the nodes say; the
 * handle is still to be freed. ELOST: it was not ours any more. ENOQUORUM, EEXCLUDED, EAUTH: too
 * few confirmed; it is repeated on nodes that come back. EBUSY: another call runs on it; nothing
 * happened. After redlock_lock_retain() it takes back one of these, at once and with OK, and the
 * lock stays held (the report tells of its last round). [blocks] */
REDLOCK_API int redlock_release(redlock_lock_t *lock, redlock_report_t **ret_report);
/* The same, but the key stays for delay_ms (0..max_ttl_ms), held by nobody. Where the lock stays
 * held, as it was retained, delay_ms means nothing. [blocks] */
REDLOCK_API int redlock_release_after(redlock_lock_t *lock, uint64_t delay_ms,
                                      redlock_report_t **ret_report);

/* For code that needs the lock and may run inside code that has it: one more release is needed.
 * What ends the lock otherwise (loss, detach, freeing the handle, shutdown) ends it for all its
 * users. ELOST: it is not held, or being released: acquire it. EINVAL: retained 2^32 - 1 times,
 * somebody does not release. [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_lock_retain(redlock_lock_t *lock);

/* Takes over a lock that somebody else acquired, by its token (at most 1024 bytes): an extension
 * with opts.ttl_ms, repeated within opts.wait_ms. Held from the success on. ELOST: not held with
 * this token; else as redlock_acquire(). [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_adopt(redlock_t *rl, const char *resource,
                                                const char *token, const redlock_opts_t *opts,
                                                redlock_lock_t **ret_lock,
                                                redlock_report_t **ret_report);
/* Lets go of the lock without releasing it: no more extensions, the deadline is now, freeing the
 * handle deletes nothing. For giving the token away. ELOST, EBUSY. [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_lock_detach(redlock_lock_t *lock);
/* Releases by token what is not held here. ELOST, ENOQUORUM, ... as redlock_release(). [blocks] */
REDLOCK_API int redlock_release_token(redlock_t *rl, const char *resource, const char *token,
                                      redlock_report_t **ret_report);
/* The same for a lock of several resources (count: 1..REDLOCK_RESOURCES_MAX). ELOST: a majority did
 * not have all of them with this token; those that it had are released all the same. [blocks] */
REDLOCK_API int redlock_release_token_all(redlock_t *rl, const char *const *resources, size_t count,
                                          const char *token, redlock_report_t **ret_report);

/* Asks the servers whether they still have the lock, and changes nothing there: no key lives longer
 * for it, and neither does the validity. For a caller that wants to know more than the local
 * redlock_lock_check(): whether an operator or another client has deleted or replaced the keys.
 * Takes a round trip, or as long as a server may be silent (redlock_config_set_node_timeout_ms()).
 * lock: acquired or adopted, of any kind: of several resources a server must have all of them, of a
 * permit the key of its slot, of a fenced lock its key. The lock stays the caller's whatever comes
 * out, and other calls may run on it at the same time.
 * ret_report: of each server that answered before the outcome was certain, whether it has the lock,
 * and for how long (pttl_ms; of several resources UINT64_MAX).
 * OK: a majority had it when it answered, and the validity here has not ended. How long the lock
 * may be relied on is still what redlock_lock_remaining_ms() returns; a key that lives for longer
 * or shorter does not change that.
 * ELOST: it is not held here, or not any more when the answers came; or no majority of servers can
 * have it, as too many do not. In the latter case another client may hold it from now on, so the
 * lock is lost at once, as with an extension that finds this out: REDLOCK_EVENT_LOST,
 * redlock_lock_fd(), redlock_lock_check(). Keys that are left are deleted in the background.
 * ENOQUORUM, EEXCLUDED, EAUTH: too few servers gave an answer that counts. That proves nothing, and
 * the lock is as it was. A key that was put back after it had been missing does not count
 * (REDLOCK_CAUSE_HEALED) until an extension has counted it. Since 0.2.0. [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_verify(redlock_lock_t *lock,
                                                 redlock_report_t **ret_report);

/* Who holds it? The answer is in the report (state, and for each node owner and time left); it may
 * be old when it is read. OK: a majority answered; else ENOQUORUM, EEXCLUDED, EAUTH. [blocks] */
REDLOCK_API int redlock_inspect(redlock_t *rl, const char *resource, redlock_report_t **ret_report);
/* Takes the lock away from its holder: looks, and deletes what it saw, not what came after. The
 * holder learns of it with its next extension. OK: a majority is clean; else ENOQUORUM, EEXCLUDED,
 * EAUTH. [blocks] */
REDLOCK_API int redlock_break(redlock_t *rl, const char *resource, redlock_report_t **ret_report);

/* Acquires, calls body(lock, userdata) on this thread, releases whatever it returned. *ret_body
 * (may be NULL): what body returned; not written if it was not called. Returns the error of the
 * acquisition (body was not called) or of the release, and its report. The handle is borrowed.
 * [blocks] */
typedef int (*redlock_body_fn)(redlock_lock_t *lock, void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_with(redlock_t *rl, const char *resource,
                                               const redlock_opts_t *opts, int *ret_body,
                                               redlock_report_t **ret_report, redlock_body_fn body,
                                               void *userdata);

/* The same without blocking. If 0 is returned, fn runs exactly once, where callbacks run, never
 * inside the starting call, with the status that the blocking call would return. Else it does not
 * run. cancel may be NULL. [starts] */

/* lock: acquire, adopt: yours to free; extend, release, verify: the one it was about, or NULL if
 * its handle was freed; else NULL. report: borrowed for the call; NULL for wait_ready and shutdown.
 */
typedef void (*redlock_done_fn)(redlock_t *rl, int status, redlock_lock_t *lock,
                                const redlock_report_t *report, void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_acquire_start(redlock_t *rl, const char *resource,
                                                        const redlock_opts_t *opts,
                                                        redlock_done_fn fn, void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_extend_start(redlock_lock_t *lock, uint64_t ttl_ms,
                                                       redlock_done_fn fn, void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_release_start(
    redlock_lock_t *lock, redlock_done_fn fn, void *userdata); /* fn may be NULL for releases */
REDLOCK_API REDLOCK_NODISCARD int redlock_release_after_start(redlock_lock_t *lock,
                                                              uint64_t delay_ms, redlock_done_fn fn,
                                                              void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_adopt_start(redlock_t *rl, const char *resource,
                                                      const char *token, const redlock_opts_t *opts,
                                                      redlock_done_fn fn, void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_release_token_start(redlock_t *rl, const char *resource,
                                                              const char *token,
                                                              redlock_cancel_t *cancel,
                                                              redlock_done_fn fn, void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_release_token_all_start(
    redlock_t *rl, const char *const *resources, size_t count, const char *token,
    redlock_cancel_t *cancel, redlock_done_fn fn, void *userdata);
/* The lock may be freed before fn runs. Since 0.2.0. */
REDLOCK_API REDLOCK_NODISCARD int redlock_verify_start(redlock_lock_t *lock,
                                                       redlock_cancel_t *cancel, redlock_done_fn fn,
                                                       void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_inspect_start(redlock_t *rl, const char *resource,
                                                        redlock_cancel_t *cancel,
                                                        redlock_done_fn fn, void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_break_start(redlock_t *rl, const char *resource,
                                                      redlock_cancel_t *cancel, redlock_done_fn fn,
                                                      void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_wait_ready_start(redlock_t *rl, uint64_t wait_ms,
                                                           redlock_cancel_t *cancel,
                                                           redlock_done_fn fn, void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_init_fence_records_start(redlock_t *rl, uint64_t wait_ms,
                                                                   redlock_cancel_t *cancel,
                                                                   redlock_done_fn fn,
                                                                   void *userdata);
REDLOCK_API REDLOCK_NODISCARD int redlock_shutdown_start(redlock_t *rl, uint64_t budget_ms,
                                                         redlock_done_fn fn, void *userdata);

/* The held lock: local, no I/O */

/* Is it still ours for at least margin_ms? Looks at the clocks itself; no thread or loop has to
 * run. To be asked right before each effect that must not happen twice. ELOST: less is left, lost,
 * released, or detached. [any thread] */
REDLOCK_API REDLOCK_NODISCARD int redlock_lock_check(const redlock_lock_t *lock,
                                                     uint64_t margin_ms);
/* Time until the deadline, rounded down; 0 when it is not held. [any thread] */
REDLOCK_API uint64_t redlock_lock_remaining_ms(const redlock_lock_t *lock);
/* A descriptor that is readable once the lock is lost, or released by redlock_shutdown() or
 * redlock_free(). A release by its holder, and redlock_lock_detach(), leave it as it is: they wake
 * no poller. Made on first use, closed with the handle, which wakes none either: end the polling
 * before. To be polled only. ESYS: no descriptor to be had. [any thread] */
REDLOCK_API int redlock_lock_fd(redlock_lock_t *lock);
/* Its name (index 0; from 1 on those of opts.also, NULL past the last one), and its token: the
 * right to release it, not a fence. Borrowed until the handle is freed; NULL for NULL.
 * [any thread] */
REDLOCK_API const char *redlock_lock_resource(const redlock_lock_t *lock, size_t index);
REDLOCK_API const char *redlock_lock_token(const redlock_lock_t *lock);
/* The slot of a permit. EINVAL: the lock is none; one that was adopted is a lock on its key.
 * [any thread] */
REDLOCK_API REDLOCK_NODISCARD int redlock_lock_slot(const redlock_lock_t *lock);
/* Writes the name under which a slot (below REDLOCK_PERMITS_MAX) of the semaphore `resource` is
 * adopted, released by token, inspected and broken: `resource{#slot}`. EINVAL: it does not fit in
 * `size` bytes or is too long for a resource. [any thread] */
REDLOCK_API REDLOCK_NODISCARD int redlock_slot_name(char *ret_name, size_t size,
                                                    const char *resource, uint32_t slot);
/* With REDLOCK_FLAG_FENCE: a number (below 2^53) that is larger than that of every earlier holder
 * of this resource; the same for the life of the lock, also when it is lost. What is written to
 * must compare it: accept a write if its number is not smaller than the largest one seen, and store
 * it with the write. Of a permit: larger than that of every earlier holder of the same slot. It
 * keeps late writes of a slot's former holder from what belongs to that slot, and says nothing
 * about the holders of other slots, who are there at the same time. 0: without REDLOCK_FLAG_FENCE.
 * [any thread] */
REDLOCK_API uint64_t redlock_lock_fence(const redlock_lock_t *lock);
/* Frees the handle; a lock that is still held is released in the background. No events of it
 * follow, but one that another thread is just being told may still be running: free what its
 * userdata points to in opts.event_end_fn, or in the callbacks' own thread, or later. Allowed after
 * redlock_free(). [starts] */
REDLOCK_API void redlock_lock_free(redlock_lock_t *lock);

/* Frees the handle, and so releases the lock, where its variable goes out of scope:
 *     REDLOCK_SCOPED redlock_lock_t *lock = NULL;
 * The release goes on in the background: call redlock_release() before the end of the scope where
 * its outcome matters, and redlock_shutdown() before the process ends. For compilers with the
 * cleanup attribute (gcc, clang). */
static inline void redlock_lock_cleanup(redlock_lock_t **lock)
{
    redlock_lock_free(*lock);
}
#if defined(__GNUC__)
#define REDLOCK_SCOPED __attribute__((cleanup(redlock_lock_cleanup)))
#endif

#ifdef __cplusplus
}
#endif
#endif
