/* SPDX-License-Identifier: MIT
 * Fuzzes what a server says of a line: the reply of its script, and the value of its key, which any
 * client may have written. No byte outside of the text is read, what is accepted does not
 * contradict itself, and what is written is read as the same.
 *
 *     2 bytes that are not used, then the text */
#include "fuzz.h"

#include "core/line.h"
#include "core/protocol.h"

#include <inttypes.h>
#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)RL_LINE_VALUE_MAX)

/* Checks what a reply means as a vote. `parsed`: rl_line_parse() has accepted it. */
static void check_vote(struct rl_arg text, bool parsed, const struct rl_line_reply *line)
{
    const struct rl_reply reply = {.kind = RL_REPLY_BULK, .text = text.data, .len = text.len};
    bool foreign = text.len == 1 && text.data[0] == 'X';

    for (int verb = RL_VERB_LINE_JOIN; verb <= RL_VERB_LINE_DROP; verb++) {
        struct rl_result result = rl_protocol_classify((enum rl_verb)verb, RL_FORM_SHA, 1, &reply);
        if (!parsed)
            MUST(result.vote == RL_VOTE_FAILED &&
                 result.cause == (foreign ? REDLOCK_CAUSE_WRONGTYPE : REDLOCK_CAUSE_PROTOCOL));
        else
            MUST(result.vote == (line->exists ? RL_VOTE_GRANTED : RL_VOTE_DENIED) &&
                 result.cause == REDLOCK_CAUSE_NONE && result.pttl_ms == line->pttl_ms);
    }
}

/* Checks that an accepted reply does not contradict itself. */
static void check_reply(const struct rl_line_reply *line)
{
    MUST(line->place <= line->length);
    MUST(!line->is_head || line->place != 0);
    MUST(line->pttl_ms == 0 || (line->is_head && line->exists));
    MUST(line->length != 0 || (line->head | line->head_beat | line->head_trip_us) == 0);
    MUST(line->pttl_ms <= INT64_MAX && line->head <= INT64_MAX);
    MUST(line->head_beat <= INT64_MAX && line->head_trip_us <= INT64_MAX);
}

/* Writes the reply as a server would, and checks that the same is read. `state`: that of the text.
 */
static void check_again(const struct rl_line_reply *line, char state)
{
    struct rl_line_reply again;
    char text[192];
    int len = snprintf(text, sizeof text, "%" PRIu32 " %c %" PRIu32 " ", line->place, state,
                       line->length);

    if (line->is_head && line->exists)
        len += snprintf(text + len, sizeof text - (size_t)len, "%" PRIu64, line->pttl_ms);
    else
        len += snprintf(text + len, sizeof text - (size_t)len, line->exists ? "-1" : "-2");
    if (line->length != 0 && (line->is_head || line->head != 0))
        len += snprintf(text + len, sizeof text - (size_t)len, " %" PRIu64 " %" PRIu64 " %" PRIu64,
                        line->head, line->head_beat, line->head_trip_us);
    MUST(rl_line_parse(text, (size_t)len, &again));
    MUST(again.place == line->place && again.length == line->length);
    MUST(again.is_head == line->is_head && again.exists == line->exists);
    MUST(again.pttl_ms == line->pttl_ms && again.head == line->head);
    MUST(line->head == 0 ||
         (again.head_beat == line->head_beat && again.head_trip_us == line->head_trip_us));
}

/* Reads the text as the reply of the script. */
static void read_reply(struct rl_arg text)
{
    struct rl_line_reply line;
    bool parsed = rl_line_parse(text.data, text.len, &line);

    check_vote(text, parsed, &line);
    if (!parsed)
        return;
    check_reply(&line);
    const char *state = memchr(text.data, ' ', text.len);
    MUST(state != NULL);
    check_again(&line, state[1]);
}

/* Reads the text as the value of the key of a line. */
static void read_value(struct rl_arg text)
{
    struct rl_line_waiter waiter;
    struct rl_arg records;

    if (!rl_line_open(text, &records))
        return;
    size_t left = records.len;
    while (rl_line_next_waiter(&records, &waiter)) {
        MUST(records.len < left);
        left = records.len;
        MUST(waiter.owner.len == 0 ||
             (waiter.owner.data >= text.data &&
              waiter.owner.data + waiter.owner.len < text.data + text.len));
        MUST(waiter.owner.len == 0 || memchr(waiter.owner.data, '\n', waiter.owner.len) == NULL);
    }
}

/* Writes a record with the text as the owner label of a waiter, and reads it. */
static void write_record(struct rl_arg text)
{
    static const char begin[] = "redlock-line\n7 0 w 250 ";
    char value[sizeof begin + RL_LINE_TEXT_MAX + 1];
    struct rl_line_waiter waiter;
    struct rl_arg records;
    size_t len = sizeof begin - 1;

    memcpy(value, begin, len);
    len += rl_line_write_text(value + len, 1700000000001, text);
    MUST(len < sizeof value);
    value[len++] = '\n';
    MUST(rl_line_open((struct rl_arg){value, len}, &records));
    MUST(rl_line_next_waiter(&records, &waiter) && records.len == 0);
    MUST(waiter.state == 'w' && waiter.since_ms == 1700000000001);
    MUST(waiter.owner.len == (text.len < RL_OWNER_MAX ? text.len : RL_OWNER_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    size_t len;

    (void)fuzz_short(&input);
    const char *bytes = fuzz_bytes(&input, TEXT_MAX, &len);
    /* In memory of exactly its length, so that the sanitizers see a read behind it. */
    char *copy = malloc(len + (len == 0));
    MUST(copy != NULL);
    if (len != 0)
        memcpy(copy, bytes, len);
    read_reply((struct rl_arg){copy, len});
    read_value((struct rl_arg){copy, len});
    write_record((struct rl_arg){copy, len});
    free(copy);
    return 0;
}
