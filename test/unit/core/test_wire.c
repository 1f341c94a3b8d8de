/* SPDX-License-Identifier: MIT
 * The words of every command in every form, and the meaning of every reply to each. */
#include "core/protocol.h"

#include <redlock/redlock.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"

#define TEXT(s) ((struct rl_arg){.data = (s), .len = strlen(s)})

/* ---- commands ---- */

/* The expected words of a command. */
struct command_words {
    enum rl_verb verb;
    enum rl_form form;
    uint64_t ttl_ms;
    const char *words; /* joined by '|' */
};

static const struct command_words COMMAND_WORDS[] = {
    {RL_VERB_ACQUIRE, RL_FORM_PLAIN, 30000, "SET|key|tok|NX|PX|30000"},
    {RL_VERB_HEAL, RL_FORM_PLAIN, 10, "SET|key|tok|NX|PX|10"},
    {RL_VERB_GET, RL_FORM_PLAIN, 0, "GET|key"},
    {RL_VERB_PTTL, RL_FORM_PLAIN, 7, "PTTL|key"},
    {RL_VERB_PING, RL_FORM_PLAIN, 0, "PING"},
    {RL_VERB_TIME, RL_FORM_PLAIN, 0, "TIME"},
    {RL_VERB_INFO, RL_FORM_PLAIN, 0, "INFO|word"},
    {RL_VERB_TRACK, RL_FORM_PLAIN, 0, "CLIENT|TRACKING|ON|REDIRECT|word|OPTIN|NOLOOP"},
    {RL_VERB_REGISTER, RL_FORM_PLAIN, 0, "CLIENT|CACHING|YES"},
    {RL_VERB_LINE_LIST, RL_FORM_PLAIN, 0, "GETRANGE|key{#q}|0|65535"},
    {RL_VERB_LINE_PERMITS, RL_FORM_PLAIN, 0, "GETRANGE|key{#q}|0|65535"},
    {RL_VERB_EXTEND, RL_FORM_SHA, 1, "EVALSHA|<sha>|1|key|tok|1"},
    {RL_VERB_EXTEND, RL_FORM_EVAL, 86400000, "EVAL|<script>|1|key|tok|86400000"},
    {RL_VERB_RELEASE, RL_FORM_SHA, 99, "EVALSHA|<sha>|1|key|tok"},
    {RL_VERB_RELEASE, RL_FORM_EVAL, 99, "EVAL|<script>|1|key|tok"},
    {RL_VERB_RELEASE, RL_FORM_DELEX, 99, "DELEX|key|IFEQ|tok"},
    {RL_VERB_RELEASE, RL_FORM_DELIFEQ, 99, "DELIFEQ|key|tok"},
    {RL_VERB_SHORTEN, RL_FORM_SHA, 0, "EVALSHA|<sha>|1|key|tok|0"},
    {RL_VERB_SHORTEN, RL_FORM_EVAL, UINT64_MAX, "EVAL|<script>|1|key|tok|18446744073709551615"},
    {RL_VERB_LINE_JOIN, RL_FORM_SHA, 0, "EVALSHA|<sha>|2|key{#q}|key|J|77|w|9|900|ada||1"},
    {RL_VERB_LINE_JOIN, RL_FORM_EVAL, 0, "EVAL|<script>|2|key{#q}|key|J|77|w|9|900|ada||1"},
    {RL_VERB_LINE_FRONT, RL_FORM_SHA, 0, "EVALSHA|<sha>|2|key{#q}|key|F|77|w|9|900|ada||1"},
    {RL_VERB_LINE_SERVED, RL_FORM_SHA, 0, "EVALSHA|<sha>|2|key{#q}|key|G|77|w|9|900|ada|tok|1"},
    {RL_VERB_LINE_LEAVE, RL_FORM_SHA, 0, "EVALSHA|<sha>|2|key{#q}|key|L|77|w|9|900|ada||1"},
    {RL_VERB_LINE_DROP, RL_FORM_SHA, 0,
     "EVALSHA|<sha>|2|key{#q}|key|D|77|w|9|900|ada|81|1|18446744073709551615"},
};
#define COMMAND_WORDS_COUNT (sizeof COMMAND_WORDS / sizeof COMMAND_WORDS[0])

START_TEST(commands_have_exact_words)
{
    const struct command_words *command_words = &COMMAND_WORDS[_i];
    const struct rl_arg key = TEXT("key");
    struct rl_command command;
    char joined[256] = "";

    memset(&command, 0xff, sizeof command);
    rl_protocol_format(&command, command_words->verb, command_words->form,
                       &(struct rl_arguments){.key = key,
                                              .token = TEXT("tok"),
                                              .ttl_ms = command_words->ttl_ms,
                                              .text = TEXT("word"),
                                              .line = TEXT("key{#q}"),
                                              .state = TEXT("w"),
                                              .waiter_text = TEXT("ada"),
                                              .waiter = 77,
                                              .beat = 9,
                                              .trip_us = 900,
                                              .heads = 1,
                                              .victim = 81,
                                              .victim_beat = UINT64_MAX});
    ck_assert_uint_le(command.count, RL_ARGS_MAX);
    for (size_t i = 0; i < command.count; i++) {
        const struct rl_arg *arg = &command.args[i];
        const char *word = arg->data;
        size_t len = arg->len;
        if (i == 1 && command_words->form == RL_FORM_SHA &&
            arg->data == rl_protocol_script(command_words->verb, RL_FORM_SHA)->sha)
            word = "<sha>", len = 5;
        if (i == 1 && command_words->form == RL_FORM_EVAL &&
            arg->data == rl_protocol_script(command_words->verb, RL_FORM_SHA)->text) {
            ck_assert_uint_eq(arg->len, strlen(arg->data));
            word = "<script>", len = 8;
        }
        size_t used = strlen(joined);
        snprintf(joined + used, sizeof joined - used, "%s%.*s", i > 0 ? "|" : "", (int)len, word);
    }
    ck_assert_str_eq(joined, command_words->words);
}
END_TEST

/* Keys and tokens are bytes with a length. The command points to them and does not copy them. */
START_TEST(keys_are_binary)
{
    static const char bytes[] = {'a', '\0', '\r', '\n', '%', 's'};
    const struct rl_arg key = {.data = bytes, .len = sizeof bytes};
    struct rl_command command;

    rl_protocol_format(&command, RL_VERB_ACQUIRE, RL_FORM_PLAIN,
                       &(struct rl_arguments){.key = key, .token = TEXT("tok"), .ttl_ms = 10});
    ck_assert_ptr_eq(command.args[1].data, bytes);
    ck_assert_uint_eq(command.args[1].len, sizeof bytes);
}
END_TEST

/* The SHA1s are text in the source. This test computes them with sha1sum. */
START_TEST(sha_texts_match_the_scripts)
{
    static const enum rl_verb scripted[] = {RL_VERB_EXTEND,  RL_VERB_RELEASE,  RL_VERB_SHORTEN,
                                            RL_VERB_ACQUIRE, RL_VERB_RAISE,    RL_VERB_READ,
                                            RL_VERB_SEED,    RL_VERB_LINE_JOIN};
    const char *script = rl_protocol_script(scripted[_i], RL_FORM_SHA)->text;
    char path[] = "/tmp/redlock-script-XXXXXX";
    char line[128];

    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, script, strlen(script)), (ssize_t)strlen(script));
    close(fd);
    snprintf(line, sizeof line, "sha1sum %s", path);
    FILE *pipe = popen(line, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, pipe));
    ck_assert_int_eq(pclose(pipe), 0);
    unlink(path);

    ck_assert_uint_eq(strlen(rl_protocol_script(scripted[_i], RL_FORM_SHA)->sha), 40);
    line[40] = '\0';
    ck_assert_str_eq(rl_protocol_script(scripted[_i], RL_FORM_SHA)->sha, line);
    ck_assert_ptr_null(strstr(script, "#!"));
}
END_TEST

/* Every form that exists has its words and, unless the verb only informs, a classifier. */
START_TEST(protocol_rows_are_complete)
{
    const struct rl_protocol_row *row = &rl_protocol[_i];
    unsigned forms = 0;

    for (unsigned form = 0; form < RL_FORM_ROWS; form++) {
        const struct rl_verb_form *verb_form = &row->forms[form];
        bool exists = verb_form->args[0].kind != RL_FORM_ARG_NONE;
        bool scripted = form == RL_FORM_SHA || form == RL_FORM_MANY;
        forms += exists;
        ck_assert(verb_form->args[RL_FORM_ARGS_MAX - 1].kind == RL_FORM_ARG_NONE);
        ck_assert((verb_form->classify != NULL) == (exists && !row->informs));
        ck_assert((verb_form->script != NULL) == (exists && scripted));
        ck_assert(verb_form->script == NULL ||
                  (verb_form->script->sha != NULL) == (form == RL_FORM_SHA));
    }
    ck_assert((forms > 0) == (_i != RL_VERB_NONE));
    ck_assert(!row->creates_key || row->resets_ttl);
    ck_assert(!row->only_reads || (!row->resets_ttl && !row->is_undo));
}
END_TEST

/* ---- replies ---- */

enum { NONE = REDLOCK_CAUSE_NONE, PROTOCOL = REDLOCK_CAUSE_PROTOCOL };

/* Returns a reply of that kind with a text. */
static struct rl_reply reply_text(enum rl_reply_kind kind, const char *text)
{
    return (struct rl_reply){.kind = kind, .text = text, .len = strlen(text)};
}

/* Returns an integer reply. */
static struct rl_reply reply_number(int64_t integer)
{
    return (struct rl_reply){.kind = RL_REPLY_INTEGER, .integer = integer};
}

/* Checks what a reply to this form of the verb means. */
static void expect(enum rl_verb verb, enum rl_form form, struct rl_reply reply, enum rl_vote vote,
                   int cause)
{
    struct rl_result result = rl_protocol_classify(verb, form, 1, &reply);
    ck_assert_msg(result.vote == vote && result.cause == cause,
                  "verb %d form %d, reply kind %d \"%.*s\" %lld: vote %d cause %d, expected %d %d",
                  verb, form, reply.kind, (int)reply.len, reply.text != NULL ? reply.text : "",
                  (long long)reply.integer, result.vote, result.cause, vote, cause);
}

/* A verb in one of its forms. */
struct request_kind {
    enum rl_verb verb;
    enum rl_form form;
};
static const struct request_kind REQUEST_KINDS[] = {
    {RL_VERB_ACQUIRE, RL_FORM_PLAIN},   {RL_VERB_HEAL, RL_FORM_PLAIN},
    {RL_VERB_EXTEND, RL_FORM_SHA},      {RL_VERB_EXTEND, RL_FORM_EVAL},
    {RL_VERB_RELEASE, RL_FORM_SHA},     {RL_VERB_RELEASE, RL_FORM_EVAL},
    {RL_VERB_RELEASE, RL_FORM_DELEX},   {RL_VERB_RELEASE, RL_FORM_DELIFEQ},
    {RL_VERB_SHORTEN, RL_FORM_SHA},     {RL_VERB_SHORTEN, RL_FORM_EVAL},
    {RL_VERB_GET, RL_FORM_PLAIN},       {RL_VERB_PTTL, RL_FORM_PLAIN},
    {RL_VERB_PING, RL_FORM_PLAIN},      {RL_VERB_LINE_JOIN, RL_FORM_SHA},
    {RL_VERB_LINE_JOIN, RL_FORM_EVAL},  {RL_VERB_LINE_FRONT, RL_FORM_SHA},
    {RL_VERB_LINE_SERVED, RL_FORM_SHA}, {RL_VERB_LINE_LEAVE, RL_FORM_SHA},
    {RL_VERB_LINE_DROP, RL_FORM_SHA},
};
#define REQUEST_KIND_COUNT (sizeof REQUEST_KINDS / sizeof REQUEST_KINDS[0])

/* Returns true if +OK is the grant of this request. */
static bool expects_ok(struct request_kind q)
{
    return q.verb == RL_VERB_ACQUIRE || q.verb == RL_VERB_HEAL;
}

/* Returns true if the number 1 is the grant of this request, and 0 its denial. */
static bool expects_number(struct request_kind q)
{
    return q.verb == RL_VERB_EXTEND || q.verb == RL_VERB_RELEASE || q.verb == RL_VERB_SHORTEN;
}

START_TEST(status_replies_are_classified)
{
    struct request_kind q = REQUEST_KINDS[_i];
    bool granted = expects_ok(q);
    expect(q.verb, q.form, reply_text(RL_REPLY_STATUS, "OK"),
           granted ? RL_VOTE_GRANTED : RL_VOTE_FAILED, granted ? NONE : PROTOCOL);
    static const char *const wrong[] = {"", "O", "OKK", "ok", "QUEUED", "OK ", "1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect(q.verb, q.form, reply_text(RL_REPLY_STATUS, wrong[i]), RL_VOTE_FAILED, PROTOCOL);
    granted = q.verb == RL_VERB_PING;
    expect(q.verb, q.form, reply_text(RL_REPLY_STATUS, "PONG"),
           granted ? RL_VOTE_GRANTED : RL_VOTE_FAILED, granted ? NONE : PROTOCOL);
}
END_TEST

START_TEST(nil_and_array_replies_are_classified)
{
    struct request_kind q = REQUEST_KINDS[_i];
    bool denied = expects_ok(q) || q.verb == RL_VERB_GET;
    expect(q.verb, q.form, (struct rl_reply){.kind = RL_REPLY_NIL},
           denied ? RL_VOTE_DENIED : RL_VOTE_FAILED, denied ? NONE : PROTOCOL);
    expect(q.verb, q.form, (struct rl_reply){.kind = RL_REPLY_ARRAY}, RL_VOTE_FAILED, PROTOCOL);
}
END_TEST

START_TEST(bulk_replies_are_classified)
{
    struct request_kind q = REQUEST_KINDS[_i];
    static const char *const texts[] = {"", "OK", "PONG", "1"};
    bool granted = q.verb == RL_VERB_GET;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        expect(q.verb, q.form, reply_text(RL_REPLY_BULK, texts[i]),
               granted ? RL_VOTE_GRANTED : RL_VOTE_FAILED, granted ? NONE : PROTOCOL);
}
END_TEST

START_TEST(integer_replies_are_classified)
{
    struct request_kind q = REQUEST_KINDS[_i];
    static const int64_t numbers[] = {INT64_MIN, -3, -2, -1, 0, 1, 2, 30000, INT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        enum rl_vote vote = RL_VOTE_FAILED;
        if (expects_number(q) && (numbers[i] == 0 || numbers[i] == 1))
            vote = numbers[i] == 1 ? RL_VOTE_GRANTED : RL_VOTE_DENIED;
        if (q.verb == RL_VERB_PTTL && numbers[i] >= -2)
            vote = numbers[i] == -2 ? RL_VOTE_DENIED : RL_VOTE_GRANTED;
        expect(q.verb, q.form, reply_number(numbers[i]), vote,
               vote == RL_VOTE_FAILED ? PROTOCOL : NONE);
    }
}
END_TEST

/* All requests to a line have the same replies. "X" means that the key of the line is another one.
 */
START_TEST(replies_of_lines_are_classified)
{
    static const struct {
        const char *text;
        enum rl_vote vote;
        int cause;
        uint64_t pttl_ms;
    } replies[] = {
        {"1 h 3 5000 77 0 9", RL_VOTE_GRANTED, NONE, 5000},
        {"1 h 3 -1 77 0 9", RL_VOTE_GRANTED, NONE, 0},
        {"1 h 3 -2 77 0 9", RL_VOTE_DENIED, NONE, 0},
        {"2 w 3 -1 77 0 9", RL_VOTE_GRANTED, NONE, 0},
        {"0 - 0 -2", RL_VOTE_DENIED, NONE, 0},
        {"X", RL_VOTE_FAILED, REDLOCK_CAUSE_WRONGTYPE, 0},
        {"XX", RL_VOTE_FAILED, PROTOCOL, 0},
        {"X ", RL_VOTE_FAILED, PROTOCOL, 0},
        {"x", RL_VOTE_FAILED, PROTOCOL, 0},
        {"2 w 1 -1", RL_VOTE_FAILED, PROTOCOL, 0},
    };
    const enum rl_verb verb = (enum rl_verb)_i;

    ck_assert(rl_verb_is_line(verb));
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        struct rl_reply reply = reply_text(RL_REPLY_BULK, replies[i].text);
        expect(verb, RL_FORM_SHA, reply, replies[i].vote, replies[i].cause);
        expect(verb, RL_FORM_EVAL, reply, replies[i].vote, replies[i].cause);
        ck_assert_uint_eq(rl_protocol_classify(verb, RL_FORM_SHA, 1, &reply).pttl_ms,
                          replies[i].pttl_ms);
        expect(verb, RL_FORM_SHA, reply_text(RL_REPLY_STATUS, replies[i].text), RL_VOTE_FAILED,
               PROTOCOL);
    }
}
END_TEST

/* ---- error replies ---- */

struct error_text {
    const char *text; /* as a server writes it, without the '-' */
    int cause;
};

static const struct error_text ERRORS[] = {
    {"WRONGTYPE Operation against a key holding the wrong kind of value", REDLOCK_CAUSE_WRONGTYPE},
    {"READONLY You can't write against a read only replica.", REDLOCK_CAUSE_READONLY},
    {"OOM command not allowed when used memory > 'maxmemory'.", REDLOCK_CAUSE_OOM},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     REDLOCK_CAUSE_BUSY},
    {"LOADING Redis is loading the dataset in memory", REDLOCK_CAUSE_LOADING},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     REDLOCK_CAUSE_REPLICA},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist",
     REDLOCK_CAUSE_ERROR_REPLY},
    {"NOREPLICAS Not enough good replicas to write.", REDLOCK_CAUSE_ERROR_REPLY},
    {"NOAUTH Authentication required.", REDLOCK_CAUSE_AUTH},
    {"WRONGPASS invalid username-password pair or user is disabled.", REDLOCK_CAUSE_AUTH},
    {"NOPERM this user has no permissions to run the 'set' command", REDLOCK_CAUSE_NOPERM},
    {"NOSCRIPT No matching script. Please use EVAL.", REDLOCK_CAUSE_ERROR_REPLY},
    {"MOVED 3999 127.0.0.1:6381", REDLOCK_CAUSE_CLUSTER},
    {"ASK 3999 127.0.0.1:6381", REDLOCK_CAUSE_CLUSTER},
    {"CLUSTERDOWN Hash slot not served", REDLOCK_CAUSE_CLUSTER},
    {"CROSSSLOT Keys in request don't hash to the same slot", REDLOCK_CAUSE_CLUSTER},
    {"TRYAGAIN Multiple keys request during rehashing of slot", REDLOCK_CAUSE_CLUSTER},
    {"ERR max number of clients reached", REDLOCK_CAUSE_ERROR_REPLY},
    {"ERR unknown command 'DELEX', with args beginning with: 'key' ", REDLOCK_CAUSE_ERROR_REPLY},
    {"ERR syntax error", REDLOCK_CAUSE_ERROR_REPLY},
    {"ERR Protocol error: invalid multibulk length", REDLOCK_CAUSE_PROTOCOL},
    {"ERR invalid password", REDLOCK_CAUSE_AUTH},
    {"ERR operation not permitted", REDLOCK_CAUSE_AUTH},
    {"ERR Client sent AUTH, but no password is set", REDLOCK_CAUSE_AUTH},
    {"ERR AUTH <password> called without any password configured for the default user. Are you "
     "sure your configuration is correct?",
     REDLOCK_CAUSE_AUTH},
    {"ERR The user executing the script can't run this command or subcommand script: 0d",
     REDLOCK_CAUSE_NOPERM},
    {"NOPERM ACL failure in script: User x has no permissions to run the 'get' command",
     REDLOCK_CAUSE_NOPERM},
    {"ERR ACL failure in script: User x has no permissions to run the 'get' command",
     REDLOCK_CAUSE_NOPERM},
    {"DENIED Redis is running in protected mode", REDLOCK_CAUSE_PROTECTED},
    {"", REDLOCK_CAUSE_ERROR_REPLY},
    {"ERR", REDLOCK_CAUSE_ERROR_REPLY},
    {"ERR ", REDLOCK_CAUSE_ERROR_REPLY},
    {"OOM", REDLOCK_CAUSE_OOM}, /* a code without a text */
    {"OOM\r\n", REDLOCK_CAUSE_OOM},
    {"OOMPH", REDLOCK_CAUSE_ERROR_REPLY}, /* a code is a whole word */
    {"BUSYGROUP Consumer Group name already exists", REDLOCK_CAUSE_ERROR_REPLY},
    {"ASKING", REDLOCK_CAUSE_ERROR_REPLY},
    {"oom command", REDLOCK_CAUSE_ERROR_REPLY},
    {"ERR something: OOM is only mentioned", REDLOCK_CAUSE_ERROR_REPLY},
    {"ERR value is: READONLY", REDLOCK_CAUSE_ERROR_REPLY},
};
#define ERROR_COUNT (sizeof ERRORS / sizeof ERRORS[0])

START_TEST(plain_errors_have_their_cause)
{
    const char *text = ERRORS[_i].text;
    ck_assert_int_eq(rl_wire_error_cause(text, strlen(text)), ERRORS[_i].cause);
}
END_TEST

/* Before Redis 7 an error from inside a script arrives in one of these wrappings. */
START_TEST(errors_wrapped_by_a_script_have_their_cause)
{
    static const char *const wrappings[] = {
        "ERR Error running script (call to f_%040d): @user_script:1: %s",
        "ERR Error running script (call to f_%040d): @user_script:1: @user_script: 1: -%s",
        "ERR Error running script (call to f_%040d): @user_script:1: @user_script: 1: %s",
        "ERR Error running script (call to f_%040d): @user_script:1: -%s\r\n",
    };
    const struct error_text *error = &ERRORS[_i];

    for (size_t i = 0; i < sizeof wrappings / sizeof wrappings[0]; i++) {
        char text[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        int len = snprintf(text, sizeof text, wrappings[i], 0, error->text);
#pragma GCC diagnostic pop
        ck_assert_int_lt(len, (int)sizeof text);
        if (strstr(error->text, ": ") != NULL)
            continue; /* inside a wrapping, what follows a ": " is the error itself */
        ck_assert_msg(rl_wire_error_cause(text, (size_t)len) == error->cause, "%s: %d", text,
                      rl_wire_error_cause(text, (size_t)len));
    }
}
END_TEST

/* The text has no terminating zero, so bytes after its length must not be read. */
START_TEST(error_text_ends_at_its_length)
{
    ck_assert_int_eq(rl_wire_error_cause("READONLY", 8), REDLOCK_CAUSE_READONLY);
    ck_assert_int_eq(rl_wire_error_cause("READONLY", 4), REDLOCK_CAUSE_ERROR_REPLY);
    ck_assert_int_eq(rl_wire_error_cause("OOMPH", 3), REDLOCK_CAUSE_OOM);
    ck_assert_int_eq(rl_wire_error_cause(NULL, 0), REDLOCK_CAUSE_ERROR_REPLY);
}
END_TEST

/* Each error means a failure of each request, apart from the exceptions listed here. */
START_TEST(errors_are_classified_for_every_request)
{
    struct request_kind q = REQUEST_KINDS[_i];
    bool native = q.form == RL_FORM_DELEX || q.form == RL_FORM_DELIFEQ;

    for (size_t i = 0; i < ERROR_COUNT; i++) {
        const char *text = ERRORS[i].text;
        int cause = ERRORS[i].cause;
        enum rl_vote vote = RL_VOTE_FAILED;

        if (q.verb == RL_VERB_PING)
            vote = RL_VOTE_GRANTED;
        else if (q.form == RL_FORM_SHA && (strncmp(text, "NOSCRIPT ", 9) == 0 ||
                                           strncmp(text, "ERR unknown command", 19) == 0))
            vote = RL_VOTE_RESEND;
        else if (native &&
                 (cause == REDLOCK_CAUSE_NOPERM || strncmp(text, "ERR unknown command", 19) == 0 ||
                  strcmp(text, "ERR syntax error") == 0))
            vote = RL_VOTE_RESEND;
        else if (cause == REDLOCK_CAUSE_WRONGTYPE && q.verb == RL_VERB_GET)
            vote = RL_VOTE_GRANTED;
        else if (cause == REDLOCK_CAUSE_WRONGTYPE &&
                 (q.verb == RL_VERB_EXTEND || q.verb == RL_VERB_RELEASE ||
                  q.verb == RL_VERB_SHORTEN))
            vote = RL_VOTE_DENIED;
        expect(q.verb, q.form, reply_text(RL_REPLY_ERROR, text), vote,
               vote == RL_VOTE_FAILED ? cause : NONE);
    }
}
END_TEST

/* Old servers wrap WRONGTYPE. It still means that the client's key is gone. */
START_TEST(wrapped_wrongtype_is_denied)
{
    static const char text[] = "ERR Error running script (call to f_0d4b): @user_script:1: "
                               "WRONGTYPE Operation against a key holding the wrong kind of value";
    for (size_t i = 0; i < REQUEST_KIND_COUNT; i++)
        if (expects_number(REQUEST_KINDS[i]))
            expect(REQUEST_KINDS[i].verb, REQUEST_KINDS[i].form, reply_text(RL_REPLY_ERROR, text),
                   RL_VOTE_DENIED, NONE);
}
END_TEST

/* A text of a server becomes one printable line, cut to the buffer; the rest of the buffer stays.
 */
START_TEST(texts_are_made_printable)
{
    static const struct {
        const char *text;
        size_t len;
        const char *expected;
    } texts[] = {
        {"", 0, ""},
        {"a b~", 4, "a b~"},
        {"a\0b\n\x7f", 5, "a?b??"},
        {"\xc3\xa9\x1b[", 4, "???["},
        {"1234567", 7, "1234567"},
        {"12345678", 8, "1234567"},
        {"12345678", 3, "123"},
    };
    const size_t count = sizeof texts / sizeof texts[0];

    for (size_t i = 0; i < count; i++) {
        char ret[10] = "#########";
        rl_wire_copy_printable(ret, 8, texts[i].text, texts[i].len);
        ck_assert_str_eq(ret, texts[i].expected);
        ck_assert_int_eq(ret[8], '#');
    }
    char one[1] = {'#'};
    rl_wire_copy_printable(one, sizeof one, "abc", 3);
    ck_assert_int_eq(one[0], '\0');
}
END_TEST

START_TEST(a_resend_names_the_next_form)
{
    static const struct {
        enum rl_verb verb;
        enum rl_form form;
        const char *text;
        enum rl_form next;
        unsigned forget;
    } cases[] = {
        {RL_VERB_RELEASE, RL_FORM_SHA, "NOSCRIPT No matching script.", RL_FORM_EVAL, 0},
        {RL_VERB_EXTEND, RL_FORM_SHA, "NOSCRIPT No matching script.", RL_FORM_EVAL, 0},
        {RL_VERB_SHORTEN, RL_FORM_SHA, "NOSCRIPT", RL_FORM_EVAL, 0},
        {RL_VERB_RELEASE, RL_FORM_SHA, "ERR unknown command 'EVALSHA', with", RL_FORM_EVAL, 0},
        {RL_VERB_RELEASE, RL_FORM_DELEX, "ERR unknown command `DELEX`, with args", RL_FORM_SHA,
         RL_FEATURE_DELEX},
        {RL_VERB_RELEASE, RL_FORM_DELEX, "NOPERM no", RL_FORM_SHA, RL_FEATURE_DELEX},
        {RL_VERB_RELEASE, RL_FORM_DELIFEQ, "ERR unknown command 'DELIFEQ'", RL_FORM_SHA,
         RL_FEATURE_DELIFEQ},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rl_reply reply = reply_text(RL_REPLY_ERROR, cases[i].text);
        struct rl_result result = rl_protocol_classify(cases[i].verb, cases[i].form, 1, &reply);
        ck_assert_int_eq(result.vote, RL_VOTE_RESEND);
        ck_assert_int_eq(result.form, cases[i].next);
        ck_assert_uint_eq(result.forget, cases[i].forget);
    }
}
END_TEST

/* Adds the cases about the words of commands. */
static void add_commands(Suite *suite)
{
    TCase *tcase = tcase_create("commands");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, commands_have_exact_words, 0, (int)COMMAND_WORDS_COUNT);
    tcase_add_test(tcase, keys_are_binary);
    tcase_add_loop_test(tcase, protocol_rows_are_complete, 0, RL_VERB_COUNT);
    tcase_add_loop_test(tcase, sha_texts_match_the_scripts, 0, 8);
}

/* Adds the cases about the meaning of replies. */
static void add_replies(Suite *suite)
{
    TCase *tcase = tcase_create("replies");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, status_replies_are_classified, 0, (int)REQUEST_KIND_COUNT);
    tcase_add_loop_test(tcase, nil_and_array_replies_are_classified, 0, (int)REQUEST_KIND_COUNT);
    tcase_add_loop_test(tcase, bulk_replies_are_classified, 0, (int)REQUEST_KIND_COUNT);
    tcase_add_loop_test(tcase, integer_replies_are_classified, 0, (int)REQUEST_KIND_COUNT);
    tcase_add_loop_test(tcase, replies_of_lines_are_classified, RL_VERB_LINE_JOIN,
                        RL_VERB_LINE_DROP + 1);
    tcase_add_loop_test(tcase, plain_errors_have_their_cause, 0, (int)ERROR_COUNT);
    tcase_add_loop_test(tcase, errors_wrapped_by_a_script_have_their_cause, 0, (int)ERROR_COUNT);
    tcase_add_test(tcase, error_text_ends_at_its_length);
    tcase_add_loop_test(tcase, errors_are_classified_for_every_request, 0, (int)REQUEST_KIND_COUNT);
    tcase_add_test(tcase, wrapped_wrongtype_is_denied);
    tcase_add_test(tcase, a_resend_names_the_next_form);
    tcase_add_test(tcase, texts_are_made_printable);
}

int main(void)
{
    Suite *suite = suite_create("core_wire");
    add_commands(suite);
    add_replies(suite);
    return suite_run(suite);
}
