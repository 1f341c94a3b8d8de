/* SPDX-License-Identifier: MIT
 * Five real servers, a client in embedded mode, and the loop that runs one piece of code once for
 * each allocation in it: that one fails, or that one and all later ones. After each run memory is
 * back, and then everything must come right again: no key that nobody holds, no block, no
 * descriptor, and a client that takes and gives a lock.
 *
 * While allocations fail a scenario only notes what happens (in `rig`); it is judged afterwards,
 * because Check allocates as well. */
#ifndef TEST_OOM_RIG_H
#define TEST_OOM_RIG_H

#include <redlock/redlock.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster.h"
#include "suite.h"
#include "wait.h"

#define RIG_NODES  5
#define RIG_CALLS  4
#define RIG_TTL_MS 20000 /* longer than any wait in here: expiry explains nothing */

/* One asynchronous operation and what was told of its end. */
struct rig_call {
    bool used, borrows; /* the lock that is told of belongs to another call */
    int started;        /* result of the starting call */
    atomic_uint told;
    int status;
    redlock_lock_t *lock; /* acquire, adopt: ours now */
    redlock_report_info_t info;
    unsigned granted, denied, failed;
    char text[512];
};

struct rig {
    struct cluster *cluster;
    redlock_config_t *config;
    redlock_t *client;
    redlock_lock_t *lock; /* held by prepare(), released after the run unless act() did it */
    redlock_cancel_t *cancel;
    struct rig_call call[RIG_CALLS];
    atomic_uint events[16];
    unsigned begun;                 /* acquisitions by rig_acquire(), refused ones among them */
    atomic_uint ended;              /* of these: the notice that no event follows has run */
    bool threaded;                  /* set by prepare(): the client turns its own loop */
    uint64_t k;                     /* the allocation that fails */
    bool frugal;                    /* callbacks must not allocate either */
    bool hit;                       /* judge(): an allocation has failed */
    bool starve;                    /* and so did all later ones */
    bool hasty;                     /* prepare(): its waits are too short to judge them by */
    const struct call_fault *fault; /* what fails if it is no allocation; NULL: allocations */
};

extern struct rig rig;

struct scenario {
    const char *name;
    void (*prepare)(void); /* may be NULL; the client is connected */
    void (*act)(void);     /* with failing allocations */
    void (*judge)(void);   /* may be NULL; with memory again */
    bool bare;             /* no client yet: act() makes it */
    bool last;             /* act() ends the client: it is freed, and not asked for another lock */
    bool quiet;            /* act() need not allocate at all */
    bool frugal;           /* act() must not */
    unsigned kept;         /* blocks that libc may keep for threads of look-ups; 0: none */
    unsigned calls;        /* rig_sweep_calls(): bits 1 << enum call; 0: all of them */
};

/* Once with each allocation failing alone, once with all later ones failing too. */
void rig_sweep(const struct scenario *scenario);

/* The same with system calls: each kind, in each way in which it can fail, at each of its calls,
 * once and for good. */
void rig_sweep_calls(const struct scenario *scenario);

/* Every how many allocations this build tries one: 1 unless REDLOCK_TEST_SLOW says it is slow. */
unsigned rig_step(void);

/* Names what runs on stderr if the program dies. */
void rig_note(const char *name, bool starve, uint64_t k);
void rig_note_text(const char *name, const char *text);
void rig_stop_server(void);
/* Checked teardown: after a failed assertion says where it was, and clears up for the next case. */
void rig_after(void);

/* Servers for all cases together, and clearing up after each. */
void rig_add_fixtures(TCase *tcase);
/* What main() returns: all cases in this process. */
int rig_main(Suite *suite);

/* For act(): the calls. An answer goes to rig.call[i]. */
void rig_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
              void *call);
void rig_acquire(unsigned i, const char *resource, const redlock_opts_t *opts);
void rig_release(unsigned i, redlock_lock_t *lock);
void rig_extend(unsigned i, redlock_lock_t *lock, uint64_t ttl_ms);
/* Notes the result of a starting call. */
void rig_started(unsigned i, int result);

/* Turns the loop until the condition holds. False: the deadline (scaled) has passed. */
typedef bool (*rig_condition_fn)(void);
bool rig_drive(rig_condition_fn until, uint64_t deadline_ms);
/* All calls that were started have been answered. */
bool rig_all_notified(void);
bool rig_never(void);
/* For act(): the allocation that shall fail has come. Before that everything goes well, if slowly.
 */
bool rig_has_failed(void);
/* For prepare(): how long an acquisition goes on trying. With all memory gone that is the length of
 * the run, so it is short, and a wait that ends without a lock explains itself; else nothing is
 * lost by patience, and a busy machine must not end it. */
uint64_t rig_wait_ms(uint64_t starving_ms);
/* A server tells of changes, on the client's second connection to it. */
bool rig_any_notifies(void);
/* It does, or what shall fail has failed, or nothing is waited for any more. */
bool rig_notifies_or_failed(void);
/* No key on any server. */
bool rig_no_keys(void);
/* Turns the loop until all calls have been answered; dies after ten seconds. */
void rig_finish(void);
/* Makes the client (call 0), takes the lock "resource" (call 1) and finishes; true: rig.lock is it.
 */
bool rig_take(const redlock_opts_t *opts);

/* For act(), where no assertion can be made. */
_Noreturn void rig_die(const char *what);
/* What the calling thread allocates in between is neither counted nor failed. */
void rig_exempt(bool on);
/* A command on all servers, with memory whatever the scenario has taken away. */
void rig_command_all(const char *command);
void rig_command(unsigned node, const char *command);
/* The key of rig.lock is there with its token. */
unsigned rig_count_held(void);
/* Keys on all servers that neither rig.lock nor a foreign token ("foreign…") explains. */
size_t rig_strays(void);

/* For judge(): the status is one of the list, ended by INT_MAX. */
#define RIG_EXPECT(i, ...) rig_expect(i, (const int[]){__VA_ARGS__, RIG_END})
#define RIG_END            0x7fffffff
void rig_expect(unsigned i, const int *allowed);

/* For prepare(): a lock in rig.lock. The second one waits for all answers, not for a majority only;
 * the lock must be the client's first. */
void rig_hold(const char *resource, const redlock_opts_t *opts);
void rig_hold_on_all(const char *resource, const redlock_opts_t *opts);
void rig_new_config(int mode);
void rig_new_config_for(int mode, const char *urls);
void rig_connect(void);

#endif
