/* SPDX-License-Identifier: MIT
 * Finds the cause of an error reply. The text of the server is not trusted: it is only compared. */
#include "core/wire.h"

#include <redlock/redlock.h>
#include <string.h>

/* One row of the tables below: how an error text begins, and the cause that it means. */
struct code {
    const char *word; /* the code, or the first words after "ERR " */
    int cause;        /* enum redlock_cause */
};

/* Errors with a code, which is the first word. Codes that are not listed, such as MISCONF,
 * NOREPLICAS and NOSCRIPT, are ERROR_REPLY: reports then show the text of the server. */
static const struct code CODES[] = {
    {"WRONGTYPE", REDLOCK_CAUSE_WRONGTYPE},
    {"READONLY", REDLOCK_CAUSE_READONLY},
    {"OOM", REDLOCK_CAUSE_OOM},
    {"BUSY", REDLOCK_CAUSE_BUSY},
    {"LOADING", REDLOCK_CAUSE_LOADING},
    {"MASTERDOWN", REDLOCK_CAUSE_REPLICA},
    {"NOAUTH", REDLOCK_CAUSE_AUTH},
    {"WRONGPASS", REDLOCK_CAUSE_AUTH},
    {"NOPERM", REDLOCK_CAUSE_NOPERM},
    {"DENIED", REDLOCK_CAUSE_PROTECTED},
    {"MOVED", REDLOCK_CAUSE_CLUSTER},
    {"ASK", REDLOCK_CAUSE_CLUSTER},
    {"CLUSTERDOWN", REDLOCK_CAUSE_CLUSTER},
    {"CROSSSLOT", REDLOCK_CAUSE_CLUSTER},
    {"TRYAGAIN", REDLOCK_CAUSE_CLUSTER},
};

/* Errors whose code is only ERR, or, inside of a script, that have none: the words after the code
 * identify them. */
static const struct code PHRASES[] = {
    {"invalid password", REDLOCK_CAUSE_AUTH},                      /* AUTH before Redis 6 */
    {"operation not permitted", REDLOCK_CAUSE_AUTH},               /* NOAUTH before Redis 2.8 */
    {"Client sent AUTH, but no password", REDLOCK_CAUSE_AUTH},     /* before Redis 6 */
    {"AUTH <password> called without any", REDLOCK_CAUSE_AUTH},    /* from Redis 6 on */
    {"The user executing the script can't", REDLOCK_CAUSE_NOPERM}, /* ACL in a script, 6 and 7.0 */
    {"ACL failure in script", REDLOCK_CAUSE_NOPERM},               /* ACL in a script, 7.2 on */
    {"Protocol error", REDLOCK_CAUSE_PROTOCOL},
};

/* How a server before Redis 7 begins the error of a command that a script has called. */
static const char WRAPPER[] = "ERR Error running script";

/* Returns whether `text`, of `len` bytes, begins with the terminated string `words`. */
bool rl_wire_starts_with(const char *text, size_t len, const char *words)
{
    size_t words_len = strlen(words);
    return len >= words_len && memcmp(text, words, words_len) == 0;
}

/* Returns whether the first word of `text`, up to a blank or the end of the line, is `word`. */
static bool is_code(const char *text, size_t len, const char *word)
{
    size_t word_len = strlen(word);
    return rl_wire_starts_with(text, len, word) &&
           (len == word_len || text[word_len] == ' ' || text[word_len] == '\r' ||
            text[word_len] == '\n');
}

/* Returns the cause (enum redlock_cause) of the code, or of the phrase with or without "ERR "
 * before it, with which `text` of `len` bytes begins. Returns CAUSE_NONE if neither table has it.
 */
static int cause_at(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof CODES / sizeof CODES[0]; i++)
        if (is_code(text, len, CODES[i].word))
            return CODES[i].cause;
    if (is_code(text, len, "ERR") && len > 4) {
        text += 4;
        len -= 4;
    }
    for (size_t i = 0; i < sizeof PHRASES / sizeof PHRASES[0]; i++)
        if (rl_wire_starts_with(text, len, PHRASES[i].word))
            return PHRASES[i].cause;
    return REDLOCK_CAUSE_NONE;
}

/* Returns the cause of a script's error from a server before Redis 7: "... (call to f_SHA):
 * @user_script:1: [@user_script: 1: -]CODE words". Looks for a code or phrase after each ": ", with
 * or without '-'. Returns CAUSE_NONE if there is none. */
static int cause_in_wrapper(const char *text, size_t len)
{
    for (size_t i = 2; i < len; i++) {
        if (text[i - 2] != ':' || text[i - 1] != ' ')
            continue;
        size_t at = text[i] == '-' ? i + 1 : i;
        int cause = cause_at(text + at, len - at);
        if (cause != REDLOCK_CAUSE_NONE)
            return cause;
    }
    return REDLOCK_CAUSE_NONE;
}

/* Returns the cause (enum redlock_cause) of an error reply, whose text is without the leading '-'.
 * Returns CAUSE_ERROR_REPLY for an unknown error. */
int rl_wire_error_cause(const char *text, size_t len)
{
    int cause =
        rl_wire_starts_with(text, len, WRAPPER) ? cause_in_wrapper(text, len) : cause_at(text, len);
    return cause == REDLOCK_CAUSE_NONE ? REDLOCK_CAUSE_ERROR_REPLY : cause;
}

/* Returns whether the error reply says that the server does not know the command. */
bool rl_wire_is_unknown(const char *text, size_t len)
{
    return rl_wire_starts_with(text, len, "ERR unknown command");
}

/* Returns whether the error reply is that of a server which accepts no further client. */
bool rl_wire_is_full(const char *text, size_t len)
{
    return rl_wire_starts_with(text, len, "ERR max number of clients");
}
