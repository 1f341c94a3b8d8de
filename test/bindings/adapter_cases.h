/* SPDX-License-Identifier: MIT
 * The cases of the adapters for event loops, written once for all loops. A program for one loop
 * defines `adapter_loop` and calls adapter_suite(). It includes the adapter's header after this
 * one, so that adapter_process() stands in for redlock_process() there. */
#ifndef TEST_ADAPTER_CASES_H
#define TEST_ADAPTER_CASES_H

#include <redlock/redlock.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One event loop with one adapter. */
struct adapter_loop {
    const char *name;               /* of the suite */
    void (*open)(void);             /* creates the loop */
    int (*attach)(redlock_t *rl);   /* attaches the client; returns what the adapter does */
    void (*detach)(void);           /* detaches the client; also inside run() */
    void (*run)(uint64_t limit_ms); /* runs the loop until stop(), at most limit_ms */
    void (*stop)(void);             /* has run() return; called inside run() */
    void (*close)(void);            /* frees the loop; nothing is attached */
};
extern const struct adapter_loop adapter_loop;

/* Is called by the adapter under test instead of redlock_process(). Counts the calls, and returns
 * an error instead of a call while a case wants one. */
int adapter_process(redlock_t *rl);
#define redlock_process(rl) adapter_process(rl)

/* Runs all cases against five real servers. Returns what main() is to return. */
int adapter_main(void);

#ifdef __cplusplus
}
#endif
#endif
