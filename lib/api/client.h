/* SPDX-License-Identifier: MIT
 * The client and its locks, as the files of this floor share them.
 *
 * One mutex guards the engine and all that is not atomic here. It is never held while waiting in
 * the poller, nor while a callback of the user runs. Lock order: the client's mutex is the only
 * one.
 *
 * Life: a client lives until its user handle, its locks, cancels and reports are gone; a lock until
 * its user handle, the engine and the operation that runs on it have let go. */
#ifndef RL_API_CLIENT_H
#define RL_API_CLIENT_H

#include "api/config.h"
#include "engine/io.h"
#include "engine/status.h"
#include "platform/clock.h"

#include <pthread.h>
#include <redlock/redlock.h>
#include <stdatomic.h>

enum rl_op_kind {
    RL_OP_NONE = 0,
    RL_OP_ACQUIRE,
    RL_OP_ADOPT,
    RL_OP_EXTEND,
    RL_OP_RELEASE,
    RL_OP_UNRETAIN, /* a release that another user of the lock survives */
    RL_OP_RELEASE_TOKEN,
    RL_OP_INSPECT,
    RL_OP_BREAK,
    RL_OP_VERIFY,
    RL_OP_READY,     /* of the client */
    RL_OP_SHUTDOWN,  /* of the client */
    RL_OP_FENCE_INIT /* of the client */
};

/* What threads sleep at (wake.c). It is the client's, so that whoever wakes too late, when the
 * sleeper is gone, still has a word of ours. */
struct rl_word {
    atomic_uint value; /* changes each time that a sleeper is told something */
    struct rl_word *free_next;
    struct rl_word *all_next;
};

/* A thread that waits until its operation is done; on its stack. */
struct rl_waiter {
    struct rl_word *word; /* while it sleeps; else NULL */
    bool done;
    bool want_report;
    int status;
    redlock_report_t *report;
};

/* What was asked for, and who wants to know how it ended: a waiter or a function. */
struct rl_op {
    uint8_t kind; /* enum rl_op_kind */
    bool done;    /* with `status`, not told yet */
    int status;
    redlock_done_fn fn;
    void *userdata;
    struct rl_waiter *waiter;
    redlock_cancel_t *cancel; /* referenced */
};

/* What the breaking of a lock and its parts share (break.c). */
struct rl_break {
    struct redlock_lock *whole; /* the operation; it outlives its parts */
    unsigned running;           /* parts: each a release of one value that was seen */
    struct rl_round merged;     /* what all of them did; its arrays are behind this */
};

struct redlock_lock {
    struct rl_lock engine; /* first: the engine's pointer is ours */
    struct rl_set *set;    /* where all of this happens; its client is referenced */
    atomic_uint refs;
    atomic_int lost_fd; /* -1: none yet */
    atomic_uint_fast64_t deadline_boot_ns, deadline_raw_ns;
    atomic_int_fast64_t wall_us; /* rl_lease.wall_us */
    atomic_bool held;            /* with both deadlines: what redlock_lock_check() reads */
    bool queued;
    bool owned_by_user; /* the handle was given out and not freed */
    uint8_t names;
    uint32_t retained; /* so many releases do not end it yet */
    struct rl_op op;
    uint32_t news; /* RL_FX_* to be announced, plus RL_NEWS_* */
    int news_status;
    struct redlock_lock *next_news;
    redlock_event_fn event_fn;
    redlock_event_end_fn event_end_fn; /* NULL: none, or it has run */
    void *event_userdata;
    struct rl_break *breaking;    /* of a break and of its parts */
    struct redlock_lock *subject; /* of a verification: the lock it is about, referenced */
    uint16_t names_len;           /* with their NULs */
    uint8_t part;                 /* of a break: which node's value it releases */
    char bytes[];                 /* each name, NUL */
};

#define RL_WAKES_MAX     64

#define RL_NEWS_END      (1u << 29) /* no event of the lock follows */
#define RL_NEWS_ACQUIRED (1u << 30)
#define RL_NEWS_RELEASED (1u << 31)

/* An operation of the client itself. */
struct rl_client_op {
    struct rl_op op;
    struct rl_now until; /* RL_NEVER: for ever */
    struct rl_client_op *next;
};

/* One set of nodes, and the engine that works on it. */
struct rl_set {
    struct redlock *rl;
    const struct rl_config_set *config;
    char fence_config[RL_FENCE_TEXT_MAX + 1]; /* fingerprint of what fenced clients must agree on */
    struct rl_engine engine;
    struct rl_io_side side;
    uint8_t node_news[RL_NODES_MAX];
    uint8_t node_last_cause[RL_NODES_MAX];
    bool node_was_up[RL_NODES_MAX];
};

struct redlock {
    atomic_uint refs;
    struct rl_mem mem;
    struct redlock_config *config; /* our copy */
    struct rl_log log;
    int mode;
    pthread_mutex_t mutex;
    struct rl_io io;
    pthread_t thread;
    bool thread_runs;
    atomic_bool stop;
    bool closed;   /* the engines are gone */
    bool draining; /* shutdown began: nothing new starts */
    bool in_callback;
    pthread_t callback_thread;
    bool in_process;     /* embedded: starts need no wake-up, the tick sends at its end */
    pthread_cond_t park; /* where the I/O thread waits while callers drive (drive.c) */
    bool parked, yielding, caller_drives;
    bool parks_long;           /* it does not look by itself soon whether they still do */
    bool polls;                /* the I/O thread is in the poller, or on its way there or back */
    struct rl_waiter *at_door; /* a caller that waits for it to come out; NULL: nobody */
    bool driver_sleeps; /* the driving caller is in the poller, where no condition reaches it */
    unsigned sleepers, streak;
    uint64_t drives;
    unsigned flush_skips; /* callers in a row that left the sending to the next one */
    bool flush_owed;      /* or to the I/O thread, before it waits again */
    atomic_uint entering; /* threads on their way to the mutex */
    struct rl_word *wakes[RL_WAKES_MAX]; /* who sleeps there is woken when the mutex is free */
    unsigned wake_count;
    struct rl_word *words_free, *words_all;
    struct rl_word word_shared; /* of those for whom there was no memory */
    atomic_bool cancels;        /* a cancel was triggered */
    int wake_fd; /* of the poller, as a duplicate that lives as long as the cancels */
    int news_fd; /* hybrid: readable when callbacks wait; else -1 */
    struct redlock_lock *news_first, *news_last;
    struct rl_client_op *client_ops;  /* that run */
    struct rl_client_op *client_done; /* whose callbacks wait */
    bool has_node_news;
    const unsigned char *fork_mark; /* a page that a forked child finds zeroed; NULL: pid it is */
    int pid;
    unsigned set_count;
    struct rl_set sets[]; /* behind the client, so that the first has a fixed place */
};

struct redlock_cancel {
    atomic_uint refs;
    atomic_bool triggered;
    struct redlock *rl; /* referenced */
};

/* sets.c */
/* The time that was read last; mutex held. */
static inline struct rl_now rl_client_now(const struct redlock *rl)
{
    return rl_engine_now(&rl->sets[0].engine);
}
struct rl_names;
/* Where these names belong. EINVAL: to more than one set; `refusal` (may be NULL) says so. */
int rl_sets_find(struct redlock *rl, const struct rl_names *names, struct rl_set **ret,
                 redlock_report_t **refusal);
/* Of a node of the client, counted over all sets. */
struct rl_set *rl_sets_of_node(struct redlock *rl, size_t index);
const char *rl_set_node_name(const struct rl_set *set, unsigned node);
/* Says so in the log if this node of the set is in another one, too, under another address. Locks
 * are safe all the same: a name is in one set only. */
void rl_sets_warn_shared(const struct rl_set *set, const struct rl_node_status *node);

/* names.c */
struct rl_names {
    unsigned count;
    const char *list[RL_KEYS_MAX]; /* as the caller named them */
    uint16_t lens[RL_KEYS_MAX];
};
/* EINVAL if there are too many, or one cannot be a name, or is there twice; `refusal` (may be NULL)
 * says so. */
int rl_names_collect(struct redlock *rl, const char *resource, const char *const *also,
                     size_t also_count, struct rl_names *ret, redlock_report_t **refusal);
/* Refuses names whose keys, or the keys of whose slots, are the fence record's: a token under that
 * key makes fenced locks impossible for all clients. permits: 0 where the names are the keys. */
int rl_names_check_record(struct redlock *rl, const struct rl_names *names, uint32_t permits,
                          redlock_report_t **refusal);
/* The keys of a lock, in ascending order. false: no memory. */
struct rl_keys {
    unsigned count;
    struct rl_arg list[RL_KEYS_MAX];
    char bytes[RL_KEY_MAX]; /* of a single one */
    char *allocated;        /* of several */
};
bool rl_names_keys(const struct redlock_lock *lock, struct rl_keys *ret);
void rl_names_keys_done(const struct redlock_lock *lock, struct rl_keys *keys);
/* The name that was taken when an attempt on several failed, as far as that is known; else NULL. */
const char *rl_names_taken(const struct redlock_lock *lock);

/* client.c */
struct redlock *rl_client_ref(struct redlock *rl);
void rl_client_drop(struct redlock *rl);
bool rl_client_is_forked(const struct redlock *rl);
/* Takes the mutex and reads the clocks; EFORKED or ECLOSED, and then the mutex is not held. */
int rl_client_enter(struct redlock *rl);
/* The same, to look at something only: afterwards rl_client_unlock() is enough. Nobody who has
 * something to send counts on this one, and a loop of the caller's own is not woken by it. */
int rl_client_look(struct redlock *rl);
/* The same as rl_client_enter(), but the clocks are as they were. */
int rl_client_enter_untimed(struct redlock *rl);
/* The same as rl_client_enter() of a call that blocks: EMODE or EDEADLK where it must not. */
int rl_client_enter_blocking(struct redlock *rl);
/* Sends what was queued, wakes whoever must go on, gives the mutex back. */
void rl_client_leave(struct redlock *rl);
/* The first half of leaving, for callers that go on to wait. */
void rl_client_push(struct redlock *rl);
/* In a forked child no thread finishes the lock's operation, and the thread that slept in it does
 * not exist. Drops the references that the operation and that thread had. */
void rl_client_forget_op(struct redlock *rl, struct redlock_lock *lock);

/* wake.c; mutex held */
/* The waiter was told something: it is woken when the mutex is given back, ... */
void rl_wake_note(struct redlock *rl, struct rl_waiter *waiter);
/* ... which is done by this, ... */
void rl_client_unlock(struct redlock *rl);
/* ... or now: the mutex is about to be given back in another way. */
void rl_wake_noted(struct redlock *rl);
/* Sleeps, without the mutex, until the waiter is told something; or for less. */
void rl_wake_sleep(struct redlock *rl, struct rl_waiter *waiter);
/* Nobody sleeps any more. */
void rl_wake_free(struct redlock *rl);

/* lock.c */
/* With one reference, and what `room` needs behind it. */
struct redlock_lock *rl_api_lock_new(struct rl_set *set, const struct rl_names *names,
                                     struct rl_room *room);
void rl_api_lock_ref(struct redlock_lock *lock);
void rl_api_lock_drop(struct redlock_lock *lock);
/* Publishes the deadline to those who look without the mutex. */
void rl_api_lock_publish(struct redlock_lock *lock);
void rl_api_lock_signal_lost(struct redlock_lock *lock);

/* dispatch.c */
struct rl_engine_listener rl_dispatch_listener(struct rl_set *set);
/* Runs callbacks; mutex held on entry and exit, free while a callback runs. */
void rl_dispatch(struct redlock *rl);
bool rl_dispatch_has_news(const struct redlock *rl);
/* Tells the waiter, or queues the callback. */
void rl_dispatch_done(struct redlock *rl, struct redlock_lock *lock, int status);
/* A grant is about to be told: still good? false: it was not, and the next attempt follows. */
bool rl_dispatch_confirm(struct redlock *rl, struct redlock_lock *lock);
/* Takes back a grant that is done, not told, and not held any more. */
void rl_dispatch_disown(const struct redlock *rl, struct redlock_lock *lock);
/* The ACQUIRED event of a blocking call. */
void rl_dispatch_acquired(struct redlock *rl, struct redlock_lock *lock);
/* Queues the notice that no event of the lock follows, unless there is none or it has run. */
void rl_dispatch_end(struct redlock *rl, struct redlock_lock *lock);
/* Queues the callback of an operation of the client that is over, and takes the item. */
void rl_dispatch_client_op(struct redlock *rl, struct rl_client_op *item);

/* loop.c */
int rl_loop_start(struct redlock *rl);
void rl_loop_stop(struct redlock *rl);
/* Mutex held: one turn, without waiting for anything. */
void rl_loop_look(struct redlock *rl);

/* Mutex held: finishes what a tick has brought. */
void rl_loop_settle(struct redlock *rl);

/* drive.c */
void rl_drive_init(struct redlock *rl);
/* Mutex held: sleeps, or turns the loop, until the waiter's operation is done. */
void rl_drive_wait(struct redlock *rl, struct rl_waiter *waiter);
/* Mutex held, by who turns the loop: it is back from the poller. */
void rl_drive_arrived(struct redlock *rl);
/* I/O thread: stays away from the poller as long as callers drive. */
void rl_drive_yield(struct redlock *rl);
/* Mutex held, all operations ended: waits until no caller is in the poller any more. */
void rl_drive_end(struct redlock *rl);
/* Mutex held: the I/O thread has something to do. */
void rl_drive_recall(struct redlock *rl);

/* start.c: the common part of the asynchronous and the blocking calls. All take ret_refusal (may be
 * NULL), where a refusal leaves its words as a report. */
struct rl_call {
    redlock_done_fn fn;
    void *userdata;
    struct rl_waiter *waiter;
    redlock_cancel_t *cancel;
    redlock_report_t **ret_refusal;
};
int rl_start_acquire(struct redlock *rl, const char *resource, const char *token,
                     const redlock_opts_t *opts, const struct rl_call *call,
                     struct redlock_lock **ret_lock);
int rl_start_extend(struct redlock_lock *lock, uint64_t ttl_ms, const struct rl_call *call);
int rl_start_release(struct redlock_lock *lock, bool keep, uint64_t delay_ms,
                     const struct rl_call *call);
/* Of `count` resources. */
int rl_start_question(struct redlock *rl, const char *const *resources, size_t count,
                      const char *token, uint8_t kind, const struct rl_call *call,
                      struct redlock_lock **ret_lock);
/* Asks the servers whether they still have `subject`. */
int rl_start_verify(struct redlock_lock *subject, const struct rl_call *call,
                    struct redlock_lock **ret_lock);
int rl_start_client_op(struct redlock *rl, uint8_t kind, uint64_t budget_ms,
                       const struct rl_call *call);

/* opts.c: runs the notice that no event follows, for a call with these options that was refused
 * before it started anything. The mutex is not held. */
void rl_opts_refused(const redlock_opts_t *opts);

/* permit.c: what is to be acquired */
int rl_permit_check(struct redlock *rl, const char *resource, const redlock_opts_t *opts,
                    bool adopt, redlock_report_t **refusal);

/* review.c */
void rl_review_begin_shutdown(struct redlock *rl);
void rl_review_release(struct redlock *rl, struct redlock_lock *lock, int status);
/* Ends operations whose cancel was triggered, and client operations that are due. */
void rl_review(struct redlock *rl);
/* When the next client operation runs out of time (boot clock). */
uint64_t rl_review_wake_ns(const struct redlock *rl);
/* Ends all client operations with `status`. */
void rl_review_end_all(struct redlock *rl, int status);

/* break.c */
/* The operation that a release is a part of; NULL: it is none. */
static inline struct redlock_lock *rl_break_whole(const struct redlock_lock *lock)
{
    return lock->breaking != NULL && lock->breaking->whole != lock ? lock->breaking->whole : NULL;
}
/* A part takes no part any more: true if it was the last one. */
bool rl_break_leave(struct redlock_lock *part);
void rl_break_inspected(struct redlock *rl, struct redlock_lock *lock);
void rl_break_part_done(struct redlock *rl, struct redlock_lock *part);

/* verify.c: ends a verification. A lock that no majority can have any more is lost now, because
 * another client may hold it. A lock that has ended here meanwhile is not held, whatever the
 * servers answer. */
void rl_verify_done(struct redlock *rl, struct redlock_lock *lock, int status);

/* stats.c: fills an out-struct: what both sides know, the rest zeroed. EINVAL: NULL or no size. */
int rl_copy_out(void *to, size_t size, const void *from, size_t known);

/* fence.c */
/* Writes the fingerprint of a configuration on the nodes of a set; returns its length. */
size_t rl_fence_config_text(const struct redlock_config *config, const struct rl_config_set *set,
                            char ret[RL_FENCE_TEXT_MAX + 1]);

/* cancel.c */
redlock_cancel_t *rl_cancel_ref(redlock_cancel_t *cancel);
void rl_cancel_drop(redlock_cancel_t *cancel);

#endif
