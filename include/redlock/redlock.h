/* SPDX-License-Identifier: MIT
 *
 * redlock.h: the public interface of libredlock, locks on a majority of independent Redis servers.
 * It is the only header to include; config.h, error.h, report.h, stats.h and version.h are its
 * parts.
 *
 * docs/guarantees.md states what a lock promises and what it does not, docs/embedding.md how to
 * build the library into a program, docs/glossary.md what each term means.
 *
 * Contracts
 *   A comment before a function says what the function does. Then each parameter that needs an
 *   explanation, and each error, has a line of its own: "ttl_ms: ...", "ELOST: ...".
 *
 * Results and errors
 *   REDLOCK_OK is 0; errors are negative (enum redlock_error). Contracts name errors without the
 *   prefix REDLOCK_. They list every error of the function; these need no explanation there:
 *     EINVAL   An argument is out of range, or a pointer is NULL. Pointers may be NULL only where
 *              the contract says so.
 *     ENOMEM   Memory is missing.
 *     EFORKED  The handle was made before fork(), by the parent process.
 *     ECLOSED  redlock_shutdown() or redlock_free() has begun on the client.
 *   An object that a function gives to the caller through a ret_ parameter is given on success
 *   only; on failure the parameter is not written. ret_report is the exception:
 *
 * Reports
 *   ret_report may be NULL. Otherwise *ret_report is always written: with a report that the caller
 *   frees with redlock_report_free(), or with NULL if memory is missing or if the client or lock is
 *   NULL. The report of a call that was refused with EINVAL says why. If a call has no report, or
 *   ret_report is NULL, the reason is written to the log at REDLOCK_LOG_ERROR. No reason is given
 *   for a client, lock or function that is NULL.
 *
 * Structs
 *   A struct grows only at its end, so programs and libraries of different versions fit together. A
 *   struct that a function fills is passed with its size: fields that the library does not know are
 *   set to 0. redlock_opts_t, redlock_tls_t and redlock_allocator_t carry their size as a field.
 *   A library that does not know a field of them accepts only the value 0 there.
 *
 * Strings
 *   Strings are bytes that end with NUL. Strings that are passed in are copied.
 *
 * After fork()
 *   A child process may only free the handles of its parent. That releases memory and descriptors
 *   as far as possible, and sends nothing. The functions that list EFORKED return it. A child may
 *   make clients of its own. But if another thread of the parent was inside OpenSSL during fork(),
 *   which a thread of the library may be too, a client with TLS in the child may wait for ever.
 *   Fork before other threads use OpenSSL, or call exec in the child.
 *
 * Functions of the caller (callbacks, the body of redlock_with(), log function, allocator)
 *   They must return normally. A C++ exception that leaves one ends the program with
 *   std::terminate(). Neither pthread_exit() nor thread cancellation nor longjmp() may leave one.
 *   Callbacks of one client never run at the same time.
 *
 * Threads
 *   Each contract ends with one of these marks:
 *     [any thread]     Never waits for the network. May be called from any thread, also in embedded
 *                      mode and in a callback.
 *     [configuration]  Never waits. One thread at a time for each configuration.
 *     [blocks]         Waits. May be called from any thread in threaded and hybrid mode. Returns
 *                      EMODE in embedded mode, and EDEADLK in a callback of the same client.
 *     [starts]         Never waits for the network. May be called from any thread, also in a
 *                      callback; in embedded mode by one thread at a time for each client with all
 *                      its locks and cancels.
 *   Contracts with another rule have a line "Threads: ...". A thread that is canceled in a call
 *   ends after the call has returned.
 *
 * Versions
 *   Functions and fields without "Since" exist since version 0.1.0.
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
#include "redlock/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Client */

/* Creates a client and begins to connect; returns before any server has replied. On success the
 * caller owns *ret_rl and frees it with redlock_free(). On failure redlock_config_error(config)
 * gives the reason, unless an argument is NULL.
 *
 * config: copied, stays the caller's.
 * EINVAL: an argument is NULL, the configuration has no servers, drift leaves nothing of
 *   max_ttl_ms, settings of TLS do not fit together for an address, a file with certificates or a
 *   key cannot be used, or a variable of OpenSSL (OPENSSL_CONF, SSL_CERT_FILE) names a pipe.
 * ENOMEM.
 * ESYS: no descriptors, no thread or no randomness is available, or a file with certificates or a
 *   key cannot be read now.
 * ELIBRARY: the process loaded another version of hiredis first, and its functions replace those
 *   that the library needs.
 * [configuration] */
REDLOCK_API REDLOCK_NODISCARD int redlock_new(redlock_t **ret_rl, redlock_config_t *config);

/* Waits until a majority of the servers, in each shard, is connected and eligible. Other calls do
 * not need it.
 *
 * wait_ms: time limit in milliseconds, at most INT64_MAX, or REDLOCK_WAIT_FOREVER; 0: returns the
 *   present state.
 * EAUTH: at the time limit too many servers refuse the user.
 * EEXCLUDED: at the time limit too many servers are excluded.
 * ENOQUORUM: at the time limit too few servers reply.
 * EDUPLICATE: two addresses are the same server; returned at once.
 * EINVAL, ENOMEM, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_wait_ready(redlock_t *rl, uint64_t wait_ms);

/* Changes user and password for the servers whose address has none, from their next connection on.
 * Connections that exist stay as they are. Call it when the password has been changed on the
 * servers, while the earlier one is still valid: a held lock is then not affected. Copies both
 * texts, and overwrites the earlier ones. To change the login of an address, create a new client.
 *
 * user, password: as for redlock_config_set_auth(), NULL too.
 * EINVAL: rl is NULL, or as for redlock_config_set_auth(); the log says why. The login is the
 *   earlier one.
 * ENOMEM: the same.
 * EFORKED, ECLOSED.
 * Since 0.2.0.
 * [any thread] */
REDLOCK_API REDLOCK_NODISCARD int redlock_set_auth(redlock_t *rl, const char *user,
                                                   const char *password);

/* Declares the fence records of all servers that reply as valid, whatever they contain. Each
 * field of a record gets the largest fencing token that any server has in it, but at least the time
 * of day. This is an operator's decision, for two cases: the records of a majority were lost; or
 * settings that all clients share have changed (servers, max_ttl, prefix, kind of records, shards).
 * A new installation needs it only if some server does not reply or has a record already. No fenced
 * lock may be acquired meanwhile: a fencing token granted at this moment can be missed.
 *
 * wait_ms: time limit in milliseconds, at most INT64_MAX, or REDLOCK_WAIT_FOREVER. Servers that are
 *   late are asked again; half of the time is for reading. Servers that are down are not waited
 *   for.
 * OK: in each shard a majority of the servers has confirmed the new records.
 * ENOQUORUM: too few servers replied in time; nothing was changed.
 * EFENCE: too few servers confirmed the new records.
 * EDUPLICATE: two addresses are the same server.
 * With several shards the error is that of one; the others may have been changed.
 * EBUSY: another call of this function or of its _start form has not ended.
 * EINVAL, ENOMEM, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_init_fence_records(redlock_t *rl, uint64_t wait_ms);

/* Shuts the client down: ends waiting calls with ECLOSED, releases held locks, and sends pending
 * undos. Nothing new can be started from then on. The caller frees the client afterwards.
 *
 * budget_ms: time limit in milliseconds, at most INT64_MAX, or REDLOCK_WAIT_FOREVER. Undos whose
 *   key has expired are not waited for, nor are servers that are down: two attempts in a row to
 *   connect to them have failed.
 * ENOQUORUM: the time limit came first, or redlock_free() did.
 * ENOMEM: all was done, except for undos that could not be kept for lack of memory
 *   (redlock_stats_t.undo_dropped): their keys stay until they expire; or the call could not start.
 * EINVAL, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API int redlock_shutdown(redlock_t *rl, uint64_t budget_ms);

/* Frees the client: ends waiting calls with ECLOSED, releases held locks, sends what can be sent
 * without waiting for servers, closes the connections, and runs the callbacks that are due on the
 * calling thread. First waits for a callback that runs on a thread of the library; locks are
 * extended meanwhile. Locks, reports and cancels of the client may be freed later.
 *
 * rl: may be NULL.
 * EDEADLK: called in a callback of this client; nothing was done.
 * Threads: any thread, also of a forked child. No other thread may be in a call on the client or
 *   begin one, and no callback of the client may call it. */
REDLOCK_API int redlock_free(redlock_t *rl);

/* Returns the descriptor that a loop of the caller polls for reading, in embedded and hybrid mode.
 * It stays the same until redlock_free(). The caller must not read from it or close it.
 *
 * EINVAL, EFORKED.
 * EMODE: threaded mode.
 * [any thread] */
REDLOCK_API int redlock_get_fd(redlock_t *rl);

/* Does what is due in embedded and hybrid mode (enum redlock_mode) and runs callbacks on the
 * calling thread. To be called when the descriptor of redlock_get_fd() is readable; harmless
 * otherwise. Never waits for the network, but takes as long as the callbacks do.
 *
 * EINVAL, EFORKED.
 * EMODE: threaded mode.
 * EDEADLK: called in a callback of this client.
 * Threads: one thread at a time for each client, in embedded mode with all its locks and cancels.
 */
REDLOCK_API int redlock_process(redlock_t *rl);

/* Options of an acquisition */

/* Bits of opts.flags. */
enum redlock_flags {
    REDLOCK_FLAG_AUTO_EXTEND = 1u << 0, /* extend the lock automatically while it is held */
    REDLOCK_FLAG_FENCE = 1u << 1        /* give the lock a fencing token: redlock_lock_fence() */
};

/* What is acquired.
 *
 * A permit is the right of one of several holders of a semaphore: at most opts.permits permits of
 * one name are held at once. Each permit has a slot, 0 to permits - 1. A slot is an ordinary lock
 * with the key `name{#slot}`, so contracts about locks hold for each slot, and locks that other
 * clients set under these keys count. Waiting acquisitions of one client queue under the name; the
 * next one begins when the one ahead holds a permit.
 *
 * All clients should give the same number. If they do not, each slot still has at most one holder.
 * But as many permits can be held as the largest number says, and a client with a smaller number
 * competes for the first slots only. While it waits in front of the line, others wait behind it
 * even if another slot is free. */
enum redlock_kind {
    REDLOCK_KIND_EXCLUSIVE = 0, /* one holder */
    REDLOCK_KIND_PERMIT = 2     /* one permit of a semaphore; 1 is reserved */
};
#define REDLOCK_PERMITS_MAX 1024 /* most permits of one semaphore */

/* How a lock is acquired or adopted. redlock_opts() fills it with the defaults. For each field but
 * `size`, ttl_ms and, with REDLOCK_KIND_PERMIT, permits, 0 or NULL is the default. The call copies
 * the struct and all strings. (The tag differs from the name of the function redlock_opts(),
 * because C++ warns of a function that hides a struct.) */
typedef struct redlock_options {
    size_t size; /* bytes of this struct: set by redlock_opts() and redlock_opts_init() */

    /* Required: TTL of the keys in milliseconds, REDLOCK_TTL_MS_MIN to max_ttl_ms of the client. */
    uint64_t ttl_ms;

    /* Time limit of the acquisition in milliseconds: at most INT64_MAX, or REDLOCK_WAIT_FOREVER. 0:
     * one attempt, which does not queue in this client. At the time limit the call returns the
     * error of the last attempt that was decided, or else ENOQUORUM; ECONTENDED if the lock was
     * still in the queue of this client. */
    uint64_t wait_ms;

    /* Least validity in milliseconds that an acquisition must have left; with less, it is undone
     * and fails with ETOOSLOW. 0: 1 ms. */
    uint64_t validity_ms_min;

    uint32_t flags;       /* enum redlock_flags; unknown bits are refused with EINVAL */
    uint32_t extends_max; /* most automatic extensions; 0: no limit */

    /* Validity left, in milliseconds, at which an automatic extension begins: less than the
     * validity of ttl_ms. 0: between 2/3 and 3/4 of the validity. */
    uint64_t extend_at_ms;

    /* Age in milliseconds at which the lock is lost in any case: more than validity_ms_min, at most
     * INT64_MAX. 0: no limit. */
    uint64_t hold_ms_max;

    /* Validity left, in milliseconds, at which REDLOCK_EVENT_ENDANGERED is reported: less than the
     * validity of ttl_ms. 0: a tenth of ttl_ms. */
    uint64_t margin_ms;

    redlock_cancel_t *cancel;  /* ends the acquisition; kept until that has ended; NULL: none */
    redlock_event_fn event_fn; /* receives the events of this lock; NULL: none. Threaded mode starts
                                * the thread of callbacks for it: ESYS if it cannot */
    void *event_userdata;      /* passed to event_fn and event_end_fn; not copied */

    /* Adopt: the fencing token that the lock has, required with REDLOCK_FLAG_FENCE. Acquire: 0. */
    uint64_t fence;

    /* Further resources, acquired and held together with the first, all or none: each named once,
     * in any order, all in one shard. Not with REDLOCK_FLAG_FENCE or REDLOCK_KIND_PERMIT. */
    const char *const *also;

    size_t also_count; /* elements of `also`: 0 to REDLOCK_RESOURCES_MAX - 1 */

    /* enum redlock_kind. Adopt: 0, also for a permit, which is adopted by the name of its slot
     * (redlock_slot_name()). */
    uint32_t kind;

    uint32_t permits; /* REDLOCK_KIND_PERMIT: 1 to REDLOCK_PERMITS_MAX; else 0 */

    /* Acquire: the token to use, under the rules at redlock_acquire(); NULL: a random one. Adopt:
     * NULL. Since 0.2.0. */
    const char *token;

    /* Runs when event_fn and event_userdata are not used any more; the rules of redlock_opts_t say
     * when. NULL: none. Since 0.2.0. */
    redlock_event_end_fn event_end_fn;
} redlock_opts_t;

/* opts.event_end_fn runs exactly once for each call that it is given to (acquire, adopt, with, and
 * their _start forms), whatever the call returns, and also without an event_fn. The event function
 * of the lock does not run then or later, so event_end_fn may free what event_userdata points to.
 * It runs
 *  - before the call returns, on the calling thread, if the call was refused before anything began
 *    (EINVAL, ENOMEM, EFORKED, ...);
 *  - after the last event (REDLOCK_EVENT_WAITING) and after the function of a _start call, if the
 *    acquisition fails or is canceled; a blocking call may have returned before;
 *  - after REDLOCK_EVENT_RELEASED, REDLOCK_EVENT_LOST or redlock_lock_detach(), if the lock ends;
 *    its handle may be freed before or after; a shutdown ends locks as a release does;
 *  - soon, without waiting for servers, if the handle of a held lock is freed;
 *  - before redlock_free() returns in any case, also for locks whose handles are freed later.
 * It runs where callbacks run (enum redlock_mode), and what is left runs on the thread that calls
 * redlock_free(). In a forked child it does not run for locks of the parent, as no callback does:
 * the child may free its copy of the userdata after redlock_free(). It does not run if opts is
 * NULL, or if opts.size is too small to contain it. */

/* Returns options with all defaults.
 *
 * ttl_ms: as opts.ttl_ms; checked by the call that gets the options.
 * [any thread] */
static inline redlock_opts_t redlock_opts(uint64_t ttl_ms)
{
    redlock_opts_t opts;
    memset(&opts, 0, sizeof opts);
    opts.size = sizeof opts;
    opts.ttl_ms = ttl_ms;
    return opts;
}

/* Writes options with all defaults into *ret_opts, for callers that cannot use an inline function,
 * such as bindings of other languages. Nothing in *ret_opts has to be freed.
 *
 * size: bytes of the caller's redlock_opts_t, which may be smaller or larger than the library's;
 *   exactly these bytes are written.
 * ttl_ms: as opts.ttl_ms; checked by the call that gets the options.
 * EINVAL: ret_opts is NULL, or size is too small for the fields `size` and `ttl_ms`; nothing was
 *   written.
 * Since 0.2.0.
 * [any thread] */
REDLOCK_API int redlock_opts_init(redlock_opts_t *ret_opts, size_t size, uint64_t ttl_ms);

/* Cancels */

/* Creates a cancel: an object that ends all operations to which it is given (opts.cancel, and
 * `cancel` of the _start calls). On success the caller owns *ret_cancel and frees it with
 * redlock_cancel_free().
 *
 * rl: the client of these operations.
 * EINVAL, ENOMEM, EFORKED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_cancel_new(redlock_cancel_t **ret_cancel, redlock_t *rl);

/* Ends all operations that were given the cancel, and those that will be, with ECANCELED. Keys that
 * an attempt may have set are deleted. A triggered cancel stays triggered. Allowed in signal
 * handlers.
 *
 * cancel: may be NULL.
 * [any thread] */
REDLOCK_API void redlock_cancel_trigger(redlock_cancel_t *cancel);

/* Frees a cancel; operations that were given it go on. No signal handler and no other thread may
 * trigger it meanwhile or later. Allowed after redlock_free().
 *
 * cancel: may be NULL.
 * [any thread] */
REDLOCK_API void redlock_cancel_free(redlock_cancel_t *cancel);

/* Calls that block */

/* Acquires the lock on a resource. Returns when a majority of the servers has decided. With
 * opts.wait_ms of 0, the default, the call makes one attempt. Else it waits and tries again until
 * opts.wait_ms has passed: without a majority after random delays; while another client holds the
 * lock in a line with the other waiters, in order of arrival (redlock_config_set_line()).
 *
 * On success the caller owns *ret_lock: redlock_release() releases the lock, redlock_lock_free()
 * frees the handle. On failure nothing is held, and what was set is undone in the background.
 *
 * With opts.also it is one lock on several resources. Each server grants all of them or none in one
 * step, and the lock is held as long as all of them are. A waiting lock holds none of its
 * resources, so acquisitions cannot deadlock in whichever order they name them. It may wait long if
 * one of the resources is always busy.
 *
 * opts.token is for callers that must know the token before the lock is acquired: 1 to 1024 bytes.
 * It must never have been used for this resource before, by any process, also not by an acquisition
 * that failed: a server may still execute an earlier undo with this token, and would delete the new
 * lock. 128 random bits make such a token. The call makes one attempt, so opts.wait_ms must be 0.
 * It is refused with REDLOCK_KIND_PERMIT, and while a lock of this client, a request in flight or a
 * pending undo has the same token. The owner label is not appended to it. opts.token exists since
 * 0.2.0.
 *
 * resource: 1 to REDLOCK_RESOURCE_LEN_MAX bytes, without "{#q}" at the end.
 * opts: may be freed when the call returns.
 * EINVAL: an argument is NULL or out of range; the resources belong to different shards; the key of
 *   a resource is that of the fence record, or ends with "{#q}", as the keys of lines do; a rule of
 *   opts is broken; or durable=1 is attested for too few servers, with REDLOCK_FLAG_FENCE and
 *   durable records. The report says which.
 * ECONTENDED: another client, or another lock of this client, holds the resource or all permits.
 * ENOQUORUM: too few servers replied.
 * ETOOSLOW: less than opts.validity_ms_min was left.
 * EEXCLUDED: the votes of too many servers do not count.
 * EFENCE: the fence records of too many servers cannot be used.
 * EQUEUEFULL: too many acquisitions wait (redlock_config_set_queue_max()).
 * EAUTH: too many servers refused the user. The call does not wait for opts.wait_ms then.
 * EDUPLICATE: two addresses are the same server. The call does not wait then either.
 * ECANCELED: opts.cancel was triggered.
 * ENOMEM, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_acquire(redlock_t *rl, const char *resource,
                                                  const redlock_opts_t *opts,
                                                  redlock_lock_t **ret_lock,
                                                  redlock_report_t **ret_report);

/* Extends a held lock: gives it a later deadline. Its deadline never becomes an earlier one: if
 * more than ttl_ms is left, servers are asked for what is left. The call takes the place of an
 * automatic extension that is in flight.
 *
 * ttl_ms: TTL from now on in milliseconds, REDLOCK_TTL_MS_MIN to max_ttl_ms; 0: that of the
 *   acquisition.
 * EINVAL.
 * EBUSY: another call runs on the lock.
 * ELOST: the lock is not held any more, or the replies prove that no majority has it.
 * ENOQUORUM: too few servers replied, or too few of their votes count.
 * EEXCLUDED: the votes of too many servers do not count.
 * EAUTH: too many servers refused the user.
 * After these three the old deadline stands.
 * ECANCELED: the handle was freed meanwhile.
 * ENOMEM, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_extend(redlock_lock_t *lock, uint64_t ttl_ms,
                                                 redlock_report_t **ret_report);

/* Releases a held lock: ends its extensions and deletes its keys on all servers. Returns when a
 * majority is known not to have it; the rest is done in the background. The caller frees the handle
 * afterwards. The lock is still held only if nothing was done: after EINVAL and EBUSY, and if the
 * call was refused with EMODE or EDEADLK.
 *
 * After redlock_lock_retain() the call ends one retain instead: it returns OK at once, and the lock
 * stays held. The votes in the report are then those of the lock's last round.
 *
 * EINVAL.
 * EBUSY: another call runs on the lock.
 * ELOST: the lock was not held any more.
 * ENOQUORUM: too few servers replied.
 * EEXCLUDED: the votes of too many servers do not count.
 * EAUTH: too many servers refused the user.
 * ENOMEM: memory was missing for the requests to too many servers.
 * After these four the lock is not held any more, and the deletes are repeated until the keys have
 *   expired.
 * EFORKED.
 * ECLOSED: redlock_shutdown() or redlock_free() has begun, and releases the lock.
 * [blocks] */
REDLOCK_API int redlock_release(redlock_lock_t *lock, redlock_report_t **ret_report);

/* Releases a held lock as redlock_release() does, but its keys stay without a holder. They expire
 * delay_ms after their server has executed the release, whatever TTL they had.
 *
 * delay_ms: 0 to max_ttl_ms milliseconds; without effect if the lock stays held because it was
 *   retained.
 * EINVAL, EBUSY, ELOST, ENOQUORUM, EEXCLUDED, EAUTH, ENOMEM, EFORKED, ECLOSED: as for
 *   redlock_release().
 * [blocks] */
REDLOCK_API int redlock_release_after(redlock_lock_t *lock, uint64_t delay_ms,
                                      redlock_report_t **ret_report);

/* Retains a held lock: declares one more user of it in this process, so one more release is needed.
 * It is for code that needs the lock and may run inside code that holds it. A loss, a detach,
 * freeing the handle and a shutdown end the lock for all its users.
 *
 * EINVAL: lock is NULL, or it was retained 2^32 - 1 times.
 * ELOST: the lock is not held, or is being released.
 * EFORKED, ECLOSED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_lock_retain(redlock_lock_t *lock);

/* Adopts a lock: takes over, by its token, a lock that another client or process acquired. The lock
 * is extended by opts.ttl_ms, with further attempts until opts.wait_ms has passed, and is held from
 * the success on.
 *
 * Votes count as for an acquisition: the vote of a server that was restarted counts again when its
 * quarantine has ended, although an extension by the holder counts it. So the token need not be
 * that of a lock: the process that used it may have died before its attempt was decided. It is not
 * known whether another client has held the lock before the adoption.
 *
 * No client may have begun to delete the keys of the token: a server may execute such a request
 * later, and another client could then acquire the lock beside its new holder. A client does so
 * when it releases or loses the lock, or when its attempt fails; not when it detaches the lock or
 * dies.
 *
 * resource: as for redlock_acquire(); of a permit the name of its slot (redlock_slot_name()).
 * token: 1 to 1024 bytes.
 * opts, ret_lock: as for redlock_acquire().
 * EINVAL.
 * ELOST: no majority has the lock with this token.
 * ENOQUORUM, ETOOSLOW, EEXCLUDED, EAUTH, EDUPLICATE, ECANCELED: as for redlock_acquire().
 * ENOMEM, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_adopt(redlock_t *rl, const char *resource,
                                                const char *token, const redlock_opts_t *opts,
                                                redlock_lock_t **ret_lock,
                                                redlock_report_t **ret_report);

/* Detaches a held lock: stops extending it and relying on it without releasing it, so that its
 * token can be passed on. Its deadline is now. Freeing the handle, which is still needed, deletes
 * nothing.
 *
 * EINVAL.
 * EBUSY: another call runs on the lock.
 * ELOST: the lock is not held.
 * EFORKED, ECLOSED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_lock_detach(redlock_lock_t *lock);

/* Releases, by its token, a lock that this client has no handle of.
 *
 * resource, token: as for redlock_adopt().
 * EINVAL.
 * ELOST: no majority had the lock with this token.
 * ENOQUORUM, EEXCLUDED, EAUTH: as for redlock_release().
 * ENOMEM, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API int redlock_release_token(redlock_t *rl, const char *resource, const char *token,
                                      redlock_report_t **ret_report);

/* Releases, by its token, a lock on several resources.
 *
 * resources: names, each once, in any order, all in one shard.
 * count: 1 to REDLOCK_RESOURCES_MAX.
 * token: as for redlock_adopt().
 * EINVAL.
 * ELOST: no majority had all of them with this token; those that a server had are released all the
 *   same.
 * ENOQUORUM, EEXCLUDED, EAUTH: as for redlock_release().
 * ENOMEM, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API int redlock_release_token_all(redlock_t *rl, const char *const *resources, size_t count,
                                          const char *token, redlock_report_t **ret_report);

/* Verifies a held lock: asks the servers whether they still have it, and changes nothing there. It
 * makes no key and no validity longer. It is for callers that must know more than the local
 * redlock_lock_check(): whether an operator or another client deleted or replaced the keys. It
 * takes one round trip, or the time limit of a server that does not reply.
 *
 * lock: acquired or adopted, of any kind; other calls may run on it at the same time. A server must
 *   have all of several resources, of a permit the key of its slot.
 * ret_report: for each server that replied before the decision, whether it has the lock, and for
 *   how long (pttl_ms; UINT64_MAX for several resources).
 * OK: a majority had the lock, and the validity has not ended. redlock_lock_remaining_ms() still
 *   says how long the lock may be relied on; a key with another TTL does not change that.
 * EINVAL: lock is NULL.
 * ELOST: the lock is not held, or was lost before the replies came; or no majority can have it any
 *   more. In the last case another client may hold it, so the lock is lost at once
 *   (REDLOCK_EVENT_LOST, redlock_lock_fd(), redlock_lock_check()), and keys that are left are
 *   deleted in the background.
 * ENOQUORUM: too few servers replied, or too few of their votes count.
 * EEXCLUDED: too many servers are excluded.
 * EAUTH: too many servers refused the user.
 * These three prove nothing, and the lock is as before. A key that was set again after it had been
 * missing does not count (REDLOCK_CAUSE_HEALED) until an extension has counted it.
 * ENOMEM, EFORKED, ECLOSED.
 * Since 0.2.0.
 * [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_verify(redlock_lock_t *lock,
                                                 redlock_report_t **ret_report);

/* Inspects a resource: asks who holds it, and who waits for it. The result is in the report (state,
 * for each server owner, key and pttl_ms, and redlock_report_get_waiter()); it may be old when it
 * is read.
 *
 * resource: as for redlock_acquire(); of a semaphore the name of a slot (redlock_slot_name()), the
 *   first one to learn who waits for a permit.
 * OK: a majority replied.
 * EINVAL.
 * ENOQUORUM: too few servers replied.
 * EEXCLUDED: too many servers are excluded.
 * EAUTH: too many servers refused the user.
 * ENOMEM, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API int redlock_inspect(redlock_t *rl, const char *resource, redlock_report_t **ret_report);

/* Breaks a lock: inspects the resource and deletes the keys that were found, without a token. Keys
 * that were set later stay. The holder learns of it with its next extension.
 *
 * resource: as for redlock_acquire().
 * OK: a majority has no key any more, or had none.
 * EINVAL.
 * ENOQUORUM, EEXCLUDED, EAUTH: as for redlock_inspect().
 * ENOMEM, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API int redlock_break(redlock_t *rl, const char *resource, redlock_report_t **ret_report);

/* Is run by redlock_with() while the lock is held. Its result is written to *ret_body.
 *
 * lock: borrowed for the call; the function must not free it.
 * userdata: as given to redlock_with(). */
typedef int (*redlock_body_fn)(redlock_lock_t *lock, void *userdata);

/* Acquires a lock, runs body(lock, userdata) on the calling thread, and releases the lock whatever
 * body returned. If body did not run, the call returns an error of redlock_acquire() and its
 * report; else a result of redlock_release() and its report.
 *
 * resource, opts: as for redlock_acquire().
 * ret_body: receives the result of body; may be NULL; not written if body did not run, so a value
 *   that body never returns, written before the call, shows whether it ran.
 * body: required.
 * userdata: passed to body.
 * OK: body ran, and a majority is known not to have the lock any more.
 * ECONTENDED, ETOOSLOW, EFENCE, EQUEUEFULL, EDUPLICATE, ECANCELED: as for redlock_acquire(); body
 *   did not run.
 * ELOST, EBUSY: as for redlock_release(); body ran.
 * ENOQUORUM, EEXCLUDED, EAUTH: as for redlock_acquire() if body did not run, else as for
 *   redlock_release().
 * EINVAL: body is NULL, or as for redlock_acquire().
 * ENOMEM, EFORKED, ECLOSED.
 * [blocks] */
REDLOCK_API REDLOCK_NODISCARD int redlock_with(redlock_t *rl, const char *resource,
                                               const redlock_opts_t *opts, int *ret_body,
                                               redlock_report_t **ret_report, redlock_body_fn body,
                                               void *userdata);

/* Calls that do not block
 *
 * Each starts what the blocking call of the same name does, with the same parameters, and returns
 * at once. If it returns OK, fn runs exactly once, later, where callbacks run (enum redlock_mode),
 * with the status that the blocking call would return. If it returns an error, fn does not run.
 * The errors in a contract are those of starting. Besides those of other contracts, EINVAL: fn is
 * NULL where it is required; ECANCELED: the cancel was already triggered; ESYS: threaded mode
 * cannot start the thread of callbacks. A grant whose callback waits for another one is not
 * extended; it is checked right before fn runs, and undone if it has not lasted.
 *
 * cancel: ends the operation; NULL: none.
 * userdata: passed to fn. */

/* Receives the end of an operation that a _start call began. It may start, cancel and free; it
 * should not wait, because other callbacks wait for it.
 *
 * rl: the client.
 * status: enum redlock_error.
 * lock: of an acquisition or adoption that succeeded, a lock that the caller owns from now on; of
 *   an extension, release or verification, the lock that it was about, or NULL if its handle was
 *   freed meanwhile; else NULL.
 * report: borrowed for the call, see redlock_report_ref(); NULL for redlock_wait_ready_start(),
 *   redlock_init_fence_records_start() and redlock_shutdown_start().
 * userdata: as given to the _start call. */
typedef void (*redlock_done_fn)(redlock_t *rl, int status, redlock_lock_t *lock,
                                const redlock_report_t *report, void *userdata);

/* Starts redlock_acquire(); opts.cancel ends it.
 *
 * fn: required; on success it receives the lock.
 * EQUEUEFULL: as for redlock_acquire().
 * EINVAL, ENOMEM, EFORKED, ECLOSED, ECANCELED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_acquire_start(redlock_t *rl, const char *resource,
                                                        const redlock_opts_t *opts,
                                                        redlock_done_fn fn, void *userdata);

/* Starts redlock_extend(). The handle may be freed before fn runs.
 *
 * fn: required.
 * EBUSY, ELOST: as for redlock_extend().
 * EINVAL, ENOMEM, EFORKED, ECLOSED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_extend_start(redlock_lock_t *lock, uint64_t ttl_ms,
                                                       redlock_done_fn fn, void *userdata);

/* Starts redlock_release(). The handle may be freed before fn runs.
 *
 * fn: may be NULL.
 * EBUSY, ELOST: as for redlock_release().
 * EINVAL, ENOMEM, EFORKED, ECLOSED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_release_start(redlock_lock_t *lock, redlock_done_fn fn,
                                                        void *userdata);

/* Starts redlock_release_after(). The handle may be freed before fn runs.
 *
 * fn: may be NULL.
 * EBUSY, ELOST: as for redlock_release_after().
 * EINVAL, ENOMEM, EFORKED, ECLOSED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_release_after_start(redlock_lock_t *lock,
                                                              uint64_t delay_ms, redlock_done_fn fn,
                                                              void *userdata);

/* Starts redlock_adopt(); opts.cancel ends it.
 *
 * fn: required; on success it receives the lock.
 * EINVAL, ENOMEM, EFORKED, ECLOSED, ECANCELED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_adopt_start(redlock_t *rl, const char *resource,
                                                      const char *token, const redlock_opts_t *opts,
                                                      redlock_done_fn fn, void *userdata);

/* Starts redlock_release_token().
 *
 * fn: required.
 * EINVAL, ENOMEM, EFORKED, ECLOSED, ECANCELED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_release_token_start(redlock_t *rl, const char *resource,
                                                              const char *token,
                                                              redlock_cancel_t *cancel,
                                                              redlock_done_fn fn, void *userdata);

/* Starts redlock_release_token_all().
 *
 * fn: required.
 * EINVAL, ENOMEM, EFORKED, ECLOSED, ECANCELED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_release_token_all_start(
    redlock_t *rl, const char *const *resources, size_t count, const char *token,
    redlock_cancel_t *cancel, redlock_done_fn fn, void *userdata);

/* Starts redlock_verify(). The handle may be freed before fn runs.
 *
 * fn: required.
 * ELOST: as for redlock_verify().
 * EINVAL, ENOMEM, EFORKED, ECLOSED, ECANCELED.
 * Since 0.2.0.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_verify_start(redlock_lock_t *lock,
                                                       redlock_cancel_t *cancel, redlock_done_fn fn,
                                                       void *userdata);

/* Starts redlock_inspect().
 *
 * fn: required.
 * EINVAL, ENOMEM, EFORKED, ECLOSED, ECANCELED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_inspect_start(redlock_t *rl, const char *resource,
                                                        redlock_cancel_t *cancel,
                                                        redlock_done_fn fn, void *userdata);

/* Starts redlock_break().
 *
 * fn: required.
 * EINVAL, ENOMEM, EFORKED, ECLOSED, ECANCELED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_break_start(redlock_t *rl, const char *resource,
                                                      redlock_cancel_t *cancel, redlock_done_fn fn,
                                                      void *userdata);

/* Starts redlock_wait_ready().
 *
 * fn: required.
 * EINVAL, ENOMEM, EFORKED, ECLOSED, ECANCELED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_wait_ready_start(redlock_t *rl, uint64_t wait_ms,
                                                           redlock_cancel_t *cancel,
                                                           redlock_done_fn fn, void *userdata);

/* Starts redlock_init_fence_records().
 *
 * fn: required.
 * EBUSY: another call of this function or of redlock_init_fence_records() has not ended.
 * EINVAL, ENOMEM, EFORKED, ECLOSED, ECANCELED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_init_fence_records_start(redlock_t *rl, uint64_t wait_ms,
                                                                   redlock_cancel_t *cancel,
                                                                   redlock_done_fn fn,
                                                                   void *userdata);

/* Starts redlock_shutdown().
 *
 * fn: required.
 * EINVAL, ENOMEM, EFORKED, ECLOSED.
 * [starts] */
REDLOCK_API REDLOCK_NODISCARD int redlock_shutdown_start(redlock_t *rl, uint64_t budget_ms,
                                                         redlock_done_fn fn, void *userdata);

/* A held lock: local calls */

/* Checks that a lock is held for at least margin_ms more. It reads the clocks itself, so no thread
 * and no loop has to run. To be called right before each effect that must not happen twice.
 *
 * margin_ms: any number of milliseconds.
 * EINVAL: lock is NULL.
 * ELOST: less is left, or the lock was lost, released or detached.
 * EFORKED.
 * [any thread] */
REDLOCK_API REDLOCK_NODISCARD int redlock_lock_check(const redlock_lock_t *lock,
                                                     uint64_t margin_ms);

/* Returns the validity that is left, in milliseconds, rounded down. 0: the lock is not held, or
 * lock is NULL, or from before fork().
 * [any thread] */
REDLOCK_API uint64_t redlock_lock_remaining_ms(const redlock_lock_t *lock);

/* Returns a descriptor that becomes readable when the lock is lost, or when redlock_shutdown() or
 * redlock_free() releases it. A release by the caller, redlock_lock_detach() and
 * redlock_lock_free() wake no poller. The descriptor is created on first use and closed with the
 * handle: end the polling before. The caller must only poll it.
 *
 * EINVAL: lock is NULL.
 * ESYS: no descriptor is available.
 * EFORKED.
 * [any thread] */
REDLOCK_API int redlock_lock_fd(redlock_lock_t *lock);

/* Returns the name of a resource of the lock. NULL: lock is NULL, or index is past the last one.
 * Borrowed until the handle is freed.
 *
 * index: 0: the first one; from 1 on those of opts.also.
 * [any thread] */
REDLOCK_API const char *redlock_lock_resource(const redlock_lock_t *lock, size_t index);

/* Returns the token of the lock: the value of its keys, with which anyone can extend or release it.
 * It is not a fencing token. NULL: lock is NULL. Borrowed until the handle is freed.
 * [any thread] */
REDLOCK_API const char *redlock_lock_token(const redlock_lock_t *lock);

/* Returns the slot of a permit: 0 to opts.permits - 1.
 *
 * EINVAL: lock is NULL, or no permit; a permit that was adopted is a lock on its slot, and no
 *   permit.
 * [any thread] */
REDLOCK_API REDLOCK_NODISCARD int redlock_lock_slot(const redlock_lock_t *lock);

/* Writes the name of a slot, `resource{#slot}`, into ret_name. Under this name a permit is adopted,
 * released by token, inspected and broken.
 *
 * size: bytes of ret_name, with the final NUL.
 * resource: the semaphore.
 * slot: below REDLOCK_PERMITS_MAX.
 * EINVAL: an argument is NULL or out of range, or the name is longer than `size` or than a resource
 *   may be; nothing was written.
 * [any thread] */
REDLOCK_API REDLOCK_NODISCARD int redlock_slot_name(char *ret_name, size_t size,
                                                    const char *resource, uint32_t slot);

/* Returns the fencing token of a lock that was acquired with REDLOCK_FLAG_FENCE, or adopted with
 * opts.fence: a number below 2^53 that is larger than that of every earlier holder of the resource.
 * It stays the same until the handle is freed, also when the lock is lost. The system that is
 * written to must compare it: it accepts a write if the token is not smaller than the largest one
 * it has seen, and stores the token with the write. Of a permit it is larger than that of every
 * earlier holder of the same slot, so it stops late writes of that slot's former holder only. 0:
 * lock is NULL, or has no fencing token.
 * [any thread] */
REDLOCK_API uint64_t redlock_lock_fence(const redlock_lock_t *lock);

/* Frees a handle. If the lock is still held, it is released in the background. The lock's event
 * function does not run any more; a call that already runs on another thread may still run, so what
 * opts.event_userdata points to is freed in opts.event_end_fn, on the thread of callbacks, or
 * later. The client's event function gets what has happened before, such as a loss, without the
 * handle. Allowed after redlock_free().
 *
 * lock: may be NULL.
 * [starts] */
REDLOCK_API void redlock_lock_free(redlock_lock_t *lock);

/* Frees the handle in a variable; for REDLOCK_SCOPED.
 *
 * lock: the variable, not NULL; its value may be NULL.
 * [starts] */
static inline void redlock_lock_cleanup(redlock_lock_t **lock)
{
    redlock_lock_free(*lock);
}

/* Frees the handle in a variable, and so releases the lock, where the variable goes out of scope.
 *
 * The release goes on in the background. Call redlock_release() before the end of the scope if its
 * result matters, and redlock_shutdown() before the process ends. For compilers with the cleanup
 * attribute (gcc, clang). */
#if defined(__GNUC__)
#define REDLOCK_SCOPED __attribute__((cleanup(redlock_lock_cleanup)))
#endif

#ifdef __cplusplus
}
#endif
#endif
