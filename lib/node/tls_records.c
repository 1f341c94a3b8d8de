/* SPDX-License-Identifier: MIT
 * Keeps the lengths of the last records in a ring. */
#include "node/tls_records.h"

/* Adds a record of `len` plaintext bytes. */
void rl_tls_records_add(struct rl_tls_records *records, size_t len)
{
    records->lengths[records->count++ % RL_TLS_RECORDS_KEPT] = (uint32_t)len;
}

/* Returns the plaintext bytes of the record that was sent last. */
uint64_t rl_tls_records_last(const struct rl_tls_records *records)
{
    return records->count > 0 ? records->lengths[(records->count - 1) % RL_TLS_RECORDS_KEPT] : 0;
}

/* Returns how many of the last `unread` plaintext bytes are in the first two records of them. */
uint64_t rl_tls_records_reach(const struct rl_tls_records *records, uint64_t unread)
{
    uint64_t known = records->count < RL_TLS_RECORDS_KEPT ? records->count : RL_TLS_RECORDS_KEPT;
    uint64_t bytes = 0, first = 0, second = 0;

    /* From the newest record to the one in which the unread bytes begin. */
    for (uint64_t i = 1; i <= known && bytes < unread; i++) {
        second = first;
        first = records->lengths[(records->count - i) % RL_TLS_RECORDS_KEPT];
        bytes += first;
    }
    return bytes < unread || unread == 0 ? 0 : first - (bytes - unread) + second;
}
