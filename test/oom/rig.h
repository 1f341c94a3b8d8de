/* SPDX-License-Identifier: MIT
 * Five real servers, a client in embedded mode, and the loop that runs one piece of code once for
 * each allocation in it: that one fails, or that one and all later ones. After each run memory is
 * available again, and everything must recover: no key without a holder, no leaked block or
 * descriptor, and a client that can acquire and release a lock.
 *
 * A `scenario` is that piece of code in three functions: prepare(), act() and judge(). rig_sweep()
 * runs a scenario again and again, each time with another failing allocation. One such execution is
 * called a run. In its last runs no allocation fails, because the scenario makes fewer of them.
 * rig.c has the functions that scenarios call; sweep.c makes the runs.
 *
 * While allocations fail, a scenario only records what happens, in `rig`. It is judged afterwards,
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

#define RIG_NODES       5     /* number of servers */
#define RIG_CALLS       4     /* number of asynchronous operations of one run */
#define RIG_TTL_MS      20000 /* longer than any wait here, so that expiry explains no missing key */
#define RIG_LINE_SUFFIX "{#q}" /* what the key of a line has behind the key of the lock */

/* One asynchronous operation and its callback. */
struct rig_call {
    bool used;                  /* the operation was started, or a start was refused */
    bool borrows;               /* the lock that the callback gets belongs to another call */
    int started;                /* result of the starting call */
    atomic_uint callbacks;      /* how often the callback has run */
    int status;                 /* of the callback, as are the fields below */
    redlock_lock_t *lock;       /* acquire, adopt: this call owns the handle now; NULL: no lock */
    redlock_report_info_t info; /* of the report; zeros if there was no report */
    unsigned granted, denied, failed; /* number of nodes with that vote in the report */
    char text[512];                   /* of the report; "" if there was no report */
};

/* The state of the present run. rig.c and sweep.c reset it before each run. */
struct rig {
    struct cluster *cluster;  /* the servers; stays for all runs */
    redlock_config_t *config; /* for redlock_new(); freed after the run; NULL: none */
    redlock_t *client;        /* NULL: there is none (any more) */
    redlock_lock_t *lock; /* acquired by prepare(); released after the run unless act() did it */
    redlock_cancel_t *cancel; /* created by the scenario, freed after the run; NULL: none */
    struct rig_call call[RIG_CALLS];
    atomic_uint events[16];         /* number of events of each kind REDLOCK_EVENT_* since act() */
    unsigned begun;                 /* acquisitions by rig_acquire(), including refused ones */
    atomic_uint ended;              /* number of them that can have no more events */
    bool threaded;                  /* set by prepare(): the client has its own thread */
    uint64_t k;                     /* number of the allocation or system call that fails, from 0 */
    bool frugal;                    /* callbacks must not allocate either */
    bool hit;                       /* for judge(): an allocation has failed */
    bool starve;                    /* all later ones fail as well */
    bool hasty;                     /* set by prepare(): its waits are too short to judge their
                                     * results */
    const struct call_fault *fault; /* the system call that fails; NULL: allocations fail */
};

extern struct rig rig;

/* One piece of code to run with failing allocations or system calls. */
struct scenario {
    const char *name;      /* printed in the messages of a failed run */
    void (*prepare)(void); /* may be NULL; the client is connected */
    void (*act)(void);     /* runs with failing allocations */
    void (*judge)(void);   /* may be NULL; runs with memory again */
    bool bare;             /* no client yet: act() creates it */
    bool last;             /* act() frees the client, which then is not asked for another lock */
    bool quiet;            /* act() need not allocate at all */
    bool frugal;           /* act() must not */
    unsigned kept;         /* number of blocks that libc may keep for resolver threads */
    unsigned calls;        /* for rig_sweep_calls(): set of 1 << enum call; 0: all */
};

/* Runs the scenario for each allocation twice: with only that one failing, and with all later ones
 * failing as well. */
void rig_sweep(const struct scenario *scenario);

/* Does the same with system calls: each kind, with each of its faults, at each of its calls, once
 * and lastingly. */
void rig_sweep_calls(const struct scenario *scenario);

/* Returns the distance between the allocations that this build tries: 1 unless REDLOCK_TEST_SLOW
 * says that it is slow. */
unsigned rig_step(void);

/* Records the name of the present run, which is printed on stderr if the program dies, and starts
 * an alarm that ends a run that hangs. `name`: the scenario; `k`, `starve`: as in `rig`. */
void rig_note(const char *name, bool starve, uint64_t k);
/* Does the same with a `text` that describes the run in other words. */
void rig_note_text(const char *name, const char *text);
/* Removes the name of the run and stops the alarm. */
void rig_end_note(void);
/* Checked teardown: prints where an assertion failed and cleans up for the next case. */
void rig_after(void);

/* Adds the fixtures: servers for all cases together, and cleaning up after each. */
void rig_add_fixtures(TCase *tcase);
/* Runs all cases in this process. Returns what main() is to return. */
int rig_main(Suite *suite);

/* The callback of all operations: stores the result in the `struct rig_call` that `call` is. */
void rig_done(redlock_t *rl, int status, redlock_lock_t *lock, const redlock_report_t *report,
              void *call);
/* For act(): start an operation as rig.call[i], whose callback is rig_done(). */
void rig_acquire(unsigned i, const char *resource, const redlock_opts_t *opts);
void rig_release(unsigned i, redlock_lock_t *lock);
void rig_extend(unsigned i, redlock_lock_t *lock, uint64_t ttl_ms);
/* Records in rig.call[i] the result of a function that starts an operation. */
void rig_started(unsigned i, int result);

/* Turns the client's loop until the condition holds, and ends the program if the loop spins.
 * Returns false if the condition does not hold after `deadline_ms`, scaled for slow builds. */
typedef bool (*rig_condition_fn)(void);
bool rig_drive(rig_condition_fn until, uint64_t deadline_ms);
/* Returns whether all calls that were started have had their callback. */
bool rig_all_notified(void);
/* Returns false: rig_drive(rig_never, ms) turns the loop for that long. */
bool rig_never(void);
/* For act(): returns whether the chosen allocation has failed. Before that, everything succeeds, if
 * slowly. */
bool rig_has_failed(void);
/* For prepare(): returns the wait budget of an acquisition. If all later allocations fail, the run
 * takes that long, so the budget is `starving_ms`, and a wait may end without a lock. Otherwise it
 * is long, so that a busy machine does not end it. */
uint64_t rig_wait_ms(uint64_t starving_ms);
/* Returns whether a server sends notifications, on the client's second connection to it. */
bool rig_any_notifies(void);
/* Returns true if rig_any_notifies(), if the chosen allocation has failed, or if all calls have had
 * their callback. */
bool rig_notifies_or_failed(void);
/* Returns whether no server has a key. */
bool rig_no_keys(void);
/* Turns the loop until all calls have had their callback. Ends the program after ten seconds. */
void rig_finish(void);
/* Creates the client (call 0), acquires the lock "resource" (call 1) and waits for both. Returns
 * true if rig.lock is that lock. */
bool rig_take(const redlock_opts_t *opts);

/* For act(), where Check's assertions cannot be used: ends the program with a message. */
_Noreturn void rig_die(const char *what);
/* Exempts the calling thread: while `on`, its allocations are neither counted nor failed. */
void rig_exempt(bool on);
/* Send a command to all servers, or to one, with memory even in the middle of a run. */
void rig_command_all(const char *command);
void rig_command(unsigned node, const char *command);
/* Returns the number of servers with the key and token of rig.lock. */
unsigned rig_count_held(void);
/* Returns whether the servers speak TLS, as they do with REDLOCK_TEST_TLS=1. */
bool rig_is_tls(void);
/* Returns how many more blocks than before a run may be allocated after it: 0 without TLS. */
int64_t rig_spare_blocks(void);
/* Returns the number of keys on all servers that belong neither to rig.lock nor to a foreign token
 * ("foreign…"). In a run in which something failed, lines that expire soon are not counted. */
size_t rig_strays(void);

/* For judge(): fails unless the status is in the list, which ends with RIG_END. */
#define RIG_EXPECT(i, ...) rig_expect(i, (const int[]){__VA_ARGS__, RIG_END})
#define RIG_END            0x7fffffff
void rig_expect(unsigned i, const int *allowed);

/* For prepare(): acquire rig.lock. The second function waits for all replies instead of a majority;
 * the lock must be the client's first. */
void rig_hold(const char *resource, const redlock_opts_t *opts);
void rig_hold_on_all(const char *resource, const redlock_opts_t *opts);
/* For prepare(): create rig.config for a client in `mode` (REDLOCK_MODE_*), of the rig's servers or
 * of those at `urls`. */
void rig_new_config(int mode);
void rig_new_config_for(int mode, const char *urls);
/* Creates rig.client in embedded mode and waits until all nodes are eligible. */
void rig_connect(void);

#endif
