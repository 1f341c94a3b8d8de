/* SPDX-License-Identifier: MIT
 * The network between the ends of tls_peer.h: delivers the records of the server, or changes them
 * before. Each change is one that a network or a hostile server can make. */
#include "tls_peer.h"

#include <string.h>
#include <sys/socket.h>

/* Returns record number `i` of the queue. */
static struct tls_queued *record(unsigned i)
{
    return &tls_peer.queue[i];
}

/* Removes a record from the queue. */
static void drop(unsigned i)
{
    if (i == 0)
        tls_peer.at = 0;
    tls_peer.count--;
    memmove(record(i), record(i + 1), (tls_peer.count - i) * sizeof *record(i));
}

/* Makes room for a record before number `i`. Returns it, or NULL if the queue is full. */
static struct tls_queued *insert(unsigned i)
{
    if (tls_peer.count == TLS_QUEUE)
        return NULL;
    memmove(record(i + 1), record(i), (tls_peer.count - i) * sizeof *record(i));
    tls_peer.count++;
    return record(i);
}

/* Delivers up to `limit` bytes of the queue, as far as the socket takes them. */
size_t tls_peer_deliver(size_t limit)
{
    size_t done = 0;

    while (tls_peer.count > 0 && done < limit && tls_peer.fd >= 0) {
        const size_t left = record(0)->len - tls_peer.at;
        const size_t wanted = left < limit - done ? left : limit - done;
        ssize_t sent = wanted == 0 ? 0
                                   : send(tls_peer.fd, record(0)->bytes + tls_peer.at, wanted,
                                          MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            break;
        done += (size_t)sent;
        tls_peer.at += (size_t)sent;
        if (tls_peer.at < record(0)->len)
            continue;
        drop(0);
    }
    return done;
}

/* Writes the length of the content to the header of a record. */
static void set_length(struct tls_queued *changed)
{
    if (changed->len < TLS_HEADER)
        return;
    changed->bytes[3] = (unsigned char)((changed->len - TLS_HEADER) >> 8);
    changed->bytes[4] = (unsigned char)(changed->len - TLS_HEADER);
}

/* Puts bytes of the input into the queue, before record `i`. */
static void insert_bytes(unsigned i, struct fuzz_input *input)
{
    size_t len;
    const char *bytes = fuzz_bytes(input, (size_t)fuzz_byte(input) + 1, &len);
    struct tls_queued *added = len > 0 ? insert(i) : NULL;

    if (added == NULL)
        return;
    tls_peer.changed = true;
    memcpy(added->bytes, bytes, len);
    added->len = len;
    added->sealed = false;
}

/* Splits a record into two with headers of their own, after some bytes of its content. */
static void split(unsigned i, unsigned after)
{
    struct tls_queued *second = NULL, *first = record(i);

    if (first->len < TLS_HEADER + 2 || (second = insert(i + 1)) == NULL)
        return;
    const size_t kept = TLS_HEADER + 1 + after % (first->len - TLS_HEADER - 1);
    memcpy(second->bytes, first->bytes, TLS_HEADER);
    memcpy(second->bytes + TLS_HEADER, first->bytes + kept, first->len - kept);
    second->len = TLS_HEADER + first->len - kept;
    second->sealed = false;
    first->len = kept;
    set_length(first);
    set_length(second);
}

/* Changes what is inside of an encrypted record, with the key of the server. */
static void forge(struct tls_queued *sealed, struct fuzz_input *input)
{
    static unsigned char plain[sizeof sealed->bytes];
    static const unsigned char types[] = {20, 21, 22, 23, 24, 0, 255};
    const unsigned what = fuzz_byte(input) % 4;
    size_t len, given;

    if (!sealed->sealed)
        return;
    MUST(tls_open(&sealed->key, sealed->bytes, sealed->len, plain, &len));
    if (what == 0) { /* another byte */
        plain[fuzz_short(input) % len] ^= (unsigned char)(fuzz_byte(input) | 1);
    } else if (what == 1) { /* another type */
        plain[len - 1] = types[fuzz_below(input, sizeof types)];
    } else if (what == 2) { /* other content of some type */
        const unsigned char type = types[fuzz_below(input, sizeof types)];
        const char *bytes = fuzz_bytes(input, fuzz_byte(input), &given);
        memcpy(plain, bytes, given);
        plain[given] = type;
        len = given + 1;
    } else { /* padding, which an honest server may add */
        const size_t added = fuzz_byte(input);
        if (len + added > TLS_CONTENT_MAX + 1)
            return;
        memset(plain + len, 0, added);
        len += added;
    }
    tls_peer.forged |= what != 3;
    tls_peer.changed |= what != 3;
    sealed->len = tls_seal(&sealed->key, plain, len, sealed->bytes);
}

/* Changes record number `i` of the queue from outside, without its key. */
static void mangle(unsigned i, unsigned what, struct fuzz_input *input)
{
    struct tls_queued *changed = record(i), *added;

    tls_peer.changed = true;
    changed->sealed = changed->sealed && what < 3;
    switch (what) {
    case 0:
        drop(i);
        return;
    case 1:
        if ((added = insert(i)) != NULL)
            *added = *record(i + 1);
        return;
    case 2:
        if (i + 1 < tls_peer.count && (added = insert(i)) != NULL) {
            *added = *record(i + 2);
            drop(i + 2);
        }
        return;
    case 3:
        changed->bytes[fuzz_short(input) % changed->len] ^= (unsigned char)(fuzz_byte(input) | 1);
        return;
    case 4:
        changed->bytes[0] = (unsigned char)(20 + fuzz_below(input, 6));
        return;
    case 5:
        changed->len = 1 + fuzz_short(input) % changed->len;
        return;
    case 6:
        changed->len = 1 + fuzz_short(input) % changed->len;
        set_length(changed);
        return;
    default:
        split(i, fuzz_short(input));
        return;
    }
}

/* Changes the queue. A record of which a part was delivered stays as it is. */
void tls_peer_mangle(struct fuzz_input *input)
{
    const unsigned first = tls_peer.at > 0 ? 1 : 0; /* record that was not delivered in part */
    const unsigned what = fuzz_byte(input) % 12;
    const unsigned places = tls_peer.count > first ? tls_peer.count - first : 0;
    const unsigned number = fuzz_byte(input);

    if (what == 8)
        insert_bytes(number % (places + 1) + first, input);
    else if (places > 0 && what > 8)
        forge(record(first + number % places), input);
    else if (places > 0)
        mangle(first + number % places, what, input);
}
