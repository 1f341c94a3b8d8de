/* SPDX-License-Identifier: MIT
 * `redlock nodes --acl`: prints the ACL rules of a user with the fewest rights that locks need.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "exits.h"
#include "say.h"
#include "settings.h"

/* Returns the value of a setting, "" if it is not set. */
static const char *text_of(const struct settings *settings, enum setting_id id)
{
    return settings->values[id].text ? settings->values[id].text : "";
}

/* Returns true if the value of the setting contains no blank. Else reports it and returns false.
 * Redis refuses key patterns with blanks, and a pattern that avoids them would match other keys. */
static bool has_no_blank(const struct settings *settings, enum setting_id id)
{
    const char *text = text_of(settings, id);

    if (text[strcspn(text, " \t\n\v\f\r")] == '\0')
        return true;
    say(SAY_ERROR,
        "%s: the key pattern of an ACL user cannot contain a blank; use a %s without one",
        settings->values[id].origin, setting_name(id));
    return false;
}

/* Returns "~" and the glob pattern that matches `text` and nothing else, followed by `rest`. To be
 * freed. */
static char *key_pattern(const char *text, const char *rest)
{
    char *pattern = must(malloc(1 + 2 * strlen(text) + strlen(rest) + 1)), *to = pattern;

    *to++ = '~';
    for (; *text; text++) {
        if (strchr("*?[\\", *text))
            *to++ = '\\';
        *to++ = *text;
    }
    strcpy(to, rest);
    return pattern;
}

/* Prints an argument of a command and a blank, quoted as redis-cli reads it. */
static void print_quoted(const char *word)
{
    bool plain = true;

    for (const char *at = word; *at; at++)
        plain = plain && *at > ' ' && *at <= '~' && *at != '\'' && *at != '\\';
    if (plain) {
        printf("'%s' ", word);
        return;
    }
    putchar('"');
    for (; *word; word++) {
        unsigned char byte = (unsigned char)*word;
        if (byte < ' ' || byte > '~')
            printf("\\x%02x", byte);
        else
            printf(byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
    }
    printf("\" ");
}

/* Prints key_pattern(text, rest), quoted for redis-cli, and a blank. */
static void print_pattern(const char *text, const char *rest)
{
    char *pattern = key_pattern(text, rest);

    print_quoted(pattern);
    free(pattern);
}

/* Prints the name of the user, quoted for redis-cli if it is not of letters, digits and "-_.", and
 * a blank. */
static void print_name(const char *name)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

    if (name[strspn(name, plain)] == '\0')
        printf("%s ", name);
    else
        print_quoted(name);
}

/* Prints the command that makes the user, and comments for older and newer servers. With --fence,
 * the user gets the rights that fences need, too; with --no-line, not those that only lines need.
 */
static void print_user(const struct options *options, const struct settings *settings)
{
    printf("# For redis-cli on each server. redlock also sends AUTH and SELECT, which need no "
           "right.\n");
    printf("ACL SETUSER ");
    print_name(*text_of(settings, SET_USER) ? text_of(settings, SET_USER) : "redlock");
    printf("on >PASSWORD resetkeys ");
    print_pattern(text_of(settings, SET_PREFIX), "*");
    if (options->fence)
        print_pattern(text_of(settings, SET_FENCE_KEY), "");
    printf("resetchannels '&__redis__:invalidate'%s -@all +set +get +del +pexpire +pttl +eval "
           "+evalsha +script|load +info +time +ping +select +client|setname +client|id "
           "+client|tracking +client|caching +subscribe%s%s\n",
           settings->line ? " '&redlock:q:*'" : "",
           settings->line ? " +getex +publish +getrange" : "",
           options->fence ? " +hget +hset" : "");
    printf("# Before Redis 7, write +client instead of the four +client|... Without +client|id,\n"
           "# +client|tracking, +client|caching, +subscribe and the channel, waiters poll.\n");
    if (settings->line)
        printf("# +getex (Redis 6.2), +publish, +getrange and the channel redlock:q:* are for the\n"
               "# order of arrival of waiters, and to show it (--no-line leaves them out).\n");
    printf("# Redis 8.4 and later: add +delex. Valkey 9 and later: add +delifeq.\n");
    if (!options->fence)
        printf("# With fences: redlock nodes --acl --fence\n");
}

/* Runs `nodes --acl`. Needs no server. Returns EXIT_OK, or an exit code after a message. */
int nodes_acl(const struct options *options)
{
    struct settings settings;

    int result = settings_load(options, &settings);
    if (result >= 0)
        return result;
    result = EXIT_CONFIG;
    if (has_no_blank(&settings, SET_PREFIX) &&
        (!options->fence || has_no_blank(&settings, SET_FENCE_KEY))) {
        print_user(options, &settings);
        result = EXIT_OK;
    }
    settings_free(&settings);
    return result;
}
