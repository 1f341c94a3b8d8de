/* SPDX-License-Identifier: MIT
 * The lengths of the TLS records that were sent last on a connection. A server reads one record at
 * a time. If the connection has ended, the server learns that when it replies to the first record
 * that it reads; it has then read one more at most. */
#ifndef RL_NODE_TLS_RECORDS_H
#define RL_NODE_TLS_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#define RL_TLS_RECORDS_KEPT 8 /* records whose lengths are known */

/* The lengths. Zeroed: nothing was sent. Owner: tls_records.c. */
struct rl_tls_records {
    /* Plaintext bytes of each; record i is in lengths[i % RL_TLS_RECORDS_KEPT]. */
    uint32_t lengths[RL_TLS_RECORDS_KEPT];
    uint64_t count; /* records that were sent */
};

/* Adds a record of `len` plaintext bytes. */
void rl_tls_records_add(struct rl_tls_records *records, size_t len);

/* Returns the plaintext bytes of the record that was sent last; 0: none was sent. */
uint64_t rl_tls_records_last(const struct rl_tls_records *records);

/* Returns how many of the last `unread` plaintext bytes, counted from their beginning, are in the
 * first two records that they are in. 0: `unread` is 0, or more than the records whose lengths are
 * known have. */
uint64_t rl_tls_records_reach(const struct rl_tls_records *records, uint64_t unread);

#endif
