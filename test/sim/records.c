/* SPDX-License-Identifier: MIT
 * Cuts a stream of bytes into TLS records, and has the server read one record at a time. */
#include "records.h"

#include "link.h"

#include <stdlib.h>
#include <string.h>

#define RECORD_MAX ((size_t)16 << 10) /* bytes in a record */

/* Gives the connection records. */
void sim_records_begin(struct sim_conn *conn)
{
    conn->records = calloc(1, sizeof *conn->records);
    if (conn->records == NULL)
        abort();
}

/* Frees the records of the connection, if it has any. */
void sim_records_free(struct sim_conn *conn)
{
    if (conn->records == NULL)
        return;
    free(conn->records->lengths);
    free(conn->records->rest);
    free(conn->records);
    conn->records = NULL;
}

/* Hands the rest of the last record to the network, as much as it takes. Returns whether it has
 * taken all of it. */
bool sim_records_continue(struct sim_client *client, struct sim_conn *conn)
{
    struct sim_records *records = conn->records;

    if (records->rest_len == 0)
        return true;
    size_t taken = sim_link_dispatch(client, conn, records->rest, records->rest_len);
    records->rest_len -= taken;
    memmove(records->rest, records->rest + taken, records->rest_len);
    conn->blocked = records->rest_len > 0;
    if (records->rest_len > 0)
        return false;
    free(records->rest);
    records->rest = NULL;
    return true;
}

/* Appends a record of `len` bytes, and hands it to the network. */
static void send_record(struct sim_client *client, struct sim_conn *conn, const char *bytes,
                        size_t len)
{
    struct sim_records *records = conn->records;

    if (records->count == records->cap) {
        records->cap = records->cap != 0 ? 2 * records->cap : 8;
        records->lengths = realloc(records->lengths, records->cap * sizeof *records->lengths);
        if (records->lengths == NULL)
            abort();
    }
    records->lengths[records->count++] = (uint32_t)len;
    rl_tls_records_add(&records->sent, len);
    records->rest = malloc(len);
    if (records->rest == NULL)
        abort();
    memcpy(records->rest, bytes, len);
    records->rest_len = len;
    (void)sim_records_continue(client, conn);
}

/* Sends bytes for the engine as records. Returns how many bytes were accepted: 0 while the network
 * has not taken the whole last record. */
size_t sim_records_send(struct sim_client *client, struct sim_conn *conn, const char *bytes,
                        size_t len)
{
    size_t done = 0;

    while (done < len && sim_records_continue(client, conn)) {
        size_t part = len - done < RECORD_MAX ? len - done : RECORD_MAX;
        send_record(client, conn, bytes + done, part);
        done += part;
    }
    return done;
}

/* Returns the bytes of the last record, if the network has not taken all of it. */
uint64_t sim_records_held(const struct sim_conn *conn)
{
    return conn->records->rest_len > 0 ? rl_tls_records_last(&conn->records->sent) : 0;
}

/* Returns how many of the last `unread` bytes are in the first two records of them. */
uint64_t sim_records_reach(const struct sim_conn *conn, uint64_t unread)
{
    return rl_tls_records_reach(&conn->records->sent, unread);
}

/* Returns whether a record has arrived as a whole that the server has not read. */
bool sim_records_wait(const struct sim_conn *conn)
{
    const struct sim_records *records = conn->records;

    return records->count > 0 && conn->in_len >= records->read + records->lengths[0];
}

/* Reads the next record at the server. Returns false if none has arrived as a whole. */
bool sim_records_read(struct sim_conn *conn)
{
    struct sim_records *records = conn->records;

    if (!sim_records_wait(conn))
        return false;
    records->read += records->lengths[0];
    records->count--;
    memmove(records->lengths, records->lengths + 1, records->count * sizeof *records->lengths);
    return true;
}
