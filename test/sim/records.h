/* SPDX-License-Identifier: MIT
 * TLS records between a client and a server, without encryption. The bytes that the client sends in
 * one call become one or more records. The network takes a record piece by piece. The server reads
 * one record at a time, once it has arrived as a whole.
 *
 * `conn` is a connection with records. */
#ifndef SIM_RECORDS_H
#define SIM_RECORDS_H

#include "node/tls_records.h"
#include "world.h"

/* The records of one connection. Owner: tls_records.c. */
struct sim_records {
    uint32_t *lengths; /* of the records that the server has not read, the oldest first, in bytes */
    uint32_t count, cap;
    size_t read;                /* bytes at the beginning of sim_conn.in that the server has read */
    struct rl_tls_records sent; /* as the client knows them */
    char *rest; /* bytes of the last record that the network has not taken; NULL: none */
    size_t rest_len;
};

/* Gives the connection records. */
void sim_records_begin(struct sim_conn *conn);
/* Frees the records. Does nothing for a connection without records. */
void sim_records_free(struct sim_conn *conn);

/* Sends bytes for the engine as records. Returns how many bytes were accepted: 0 while the network
 * has not taken the whole last record. */
size_t sim_records_send(struct sim_client *client, struct sim_conn *conn, const char *bytes,
                        size_t len);
/* Hands the rest of the last record to the network, as much as it takes. Returns whether it has
 * taken all of it. */
bool sim_records_continue(struct sim_client *client, struct sim_conn *conn);
/* Implement rl_transport.held and rl_transport.reach. */
uint64_t sim_records_held(const struct sim_conn *conn);
uint64_t sim_records_reach(const struct sim_conn *conn, uint64_t unread);

/* Returns whether a record has arrived as a whole that the server has not read. */
bool sim_records_wait(const struct sim_conn *conn);
/* Reads the next record at the server. Returns false if none has arrived as a whole. */
bool sim_records_read(struct sim_conn *conn);

#endif
