/* SPDX-License-Identifier: MIT
 * Parses INFO, a text of lines of the form `name:value`. */
#include "node/info.h"

#include "core/protocol.h"

#include <stdio.h>
#include <string.h>

/* What stands for a server's identity and for keys that it may remove comes first: a short
 * heartbeat reads only the first sections (heartbeat.c). */
const char *const rl_info_sections[RL_INFO_SECTIONS] = {"server", "replication", "memory",
                                                        "persistence", "cpu"};

/* The value of one field of INFO. */
struct field {
    const char *value; /* borrowed from the text; not terminated */
    size_t len;        /* bytes of `value` */
};

/* Returns true if the line of `len` bytes is the field `name`; then stores its value in `*ret`.
 * Nearly all lines differ in the first character. */
static bool is_field(const char *line, size_t len, const char *name, struct field *ret)
{
    if (len == 0 || line[0] != name[0])
        return false;
    size_t name_len = strlen(name);
    if (len <= name_len || memcmp(line, name, name_len) != 0 || line[name_len] != ':')
        return false;
    ret->value = line + name_len + 1;
    ret->len = len - name_len - 1;
    return true;
}

/* Copies a value to `to`, a buffer of `size` bytes, and terminates it. Replaces characters that are
 * not printable, because the text appears in messages. */
static void copy_text(char *to, size_t size, struct field field)
{
    size_t at = 0;

    for (size_t i = 0; i < field.len && at + 1 < size; i++) {
        char c = field.value[i];
        to[at++] = c > 0x20 && c < 0x7f ? c : '?';
    }
    to[at] = '\0';
}

/* Reads up to 18 digits, which fit into an int64_t, from the start of the value into `*ret`.
 * Returns the number of digits; with 0, `*ret` is unchanged. */
static size_t parse_number(struct field field, uint64_t *ret)
{
    uint64_t value = 0;
    size_t i = 0;

    while (i < field.len && i < 18 && field.value[i] >= '0' && field.value[i] <= '9')
        value = value * 10 + (uint64_t)(field.value[i++] - '0');
    if (i > 0)
        *ret = value;
    return i;
}

/* Reads seconds with a fraction, such as "1.25", and stores them in `*ret_us` as microseconds.
 * Further digits of the fraction are ignored. A malformed value, or one that would overflow,
 * changes nothing.
 */
static void parse_seconds(struct field field, uint64_t *ret_us)
{
    uint64_t seconds = 0, fraction = 0;
    size_t at = parse_number(field, &seconds);

    if (at == 0 || seconds > RL_NEVER / RL_SECOND)
        return;
    if (at < field.len && field.value[at] == '.') {
        struct field rest = {field.value + at + 1, (size_t)rl_min_u64(field.len - at - 1, 6)};
        size_t digits = parse_number(rest, &fraction);
        for (; digits < 6; digits++)
            fraction *= 10;
    }
    *ret_us = seconds * (RL_SECOND / RL_US) + fraction;
}

/* Reads a number, or "-1", into `*ret`. Anything else changes nothing. */
static void parse_offset(struct field field, int64_t *ret)
{
    uint64_t value = 0;

    if (field.len == 2 && memcmp(field.value, "-1", 2) == 0)
        *ret = -1;
    else if (parse_number(field, &value) != 0)
        *ret = (int64_t)value;
}

/* Returns true if the whole value is `word`. */
static bool is_word(struct field field, const char *word)
{
    return field.len == strlen(word) && memcmp(field.value, word, field.len) == 0;
}

/* Returns true if the version is at least major.minor. */
static bool at_least(const struct rl_info *info, unsigned major, unsigned minor)
{
    return info->major > major || (info->major == major && info->minor >= minor);
}

/* Reads a version such as "7.0.15" into major, minor, is_valkey, features and version. DELIFEQ
 * exists since Valkey 9.0, DELEX since Redis 8.4. */
static void parse_version(struct rl_info *info, struct field field, bool valkey)
{
    unsigned *const parts[] = {&info->major, &info->minor};
    struct field rest = field;
    char text[24];

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        uint64_t number = 0;
        size_t used = parse_number(rest, &number);
        bool more = used < rest.len && rest.value[used] == '.';
        rest = more ? (struct field){rest.value + used + 1, rest.len - used - 1}
                    : (struct field){rest.value, 0};
        *parts[i] = (unsigned)rl_min_u64(number, 9999);
    }
    info->is_valkey = valkey;
    if (valkey)
        info->features = at_least(info, 9, 0) ? RL_FEATURE_DELIFEQ : 0;
    else
        info->features = at_least(info, 8, 4) ? RL_FEATURE_DELEX : 0;
    copy_text(text, sizeof text, field);
    snprintf(info->version, sizeof info->version, "%s %s", valkey ? "valkey" : "redis", text);
}

/* Reads the line if it is one of the fields about replication, memory, persistence, cluster mode
 * and processor time. Ignores other lines. */
static void parse_state(struct rl_info *info, const char *line, size_t len)
{
    struct field field;

    if (is_field(line, len, "master_replid", &field))
        copy_text(info->replid, sizeof info->replid, field);
    else if (is_field(line, len, "master_replid2", &field))
        copy_text(info->replid2, sizeof info->replid2, field);
    else if (is_field(line, len, "second_repl_offset", &field))
        parse_offset(field, &info->second_offset);
    else if (is_field(line, len, "maxmemory", &field))
        parse_number(field, &info->maxmemory);
    else if (is_field(line, len, "maxmemory_policy", &field))
        copy_text(info->policy, sizeof info->policy, field);
    else if (is_field(line, len, "connected_slaves", &field))
        parse_number(field, &info->replicas);
    else if (is_field(line, len, "aof_enabled", &field))
        info->aof = is_word(field, "1");
    else if (is_field(line, len, "aof_last_write_status", &field) ||
             is_field(line, len, "aof_last_bgrewrite_status", &field))
        info->aof_failing |= !is_word(field, "ok");
    else if (is_field(line, len, "loading", &field))
        info->loading = !is_word(field, "0");
    else if (is_field(line, len, "redis_mode", &field))
        copy_text(info->mode, sizeof info->mode, field);
    else if (is_field(line, len, "used_cpu_user_main_thread", &field))
        parse_seconds(field, &info->cpu_user_us);
    else if (is_field(line, len, "used_cpu_sys_main_thread", &field))
        parse_seconds(field, &info->cpu_sys_us);
}

/* Reads one line of `len` bytes, without its CR LF. valkey_version outranks redis_version, which
 * Valkey also sends. */
static void parse_line(struct rl_info *info, const char *line, size_t len)
{
    struct field field;

    if (is_field(line, len, "run_id", &field))
        copy_text(info->run_id, sizeof info->run_id, field);
    else if (is_field(line, len, "role", &field))
        copy_text(info->role, sizeof info->role, field);
    else if (is_field(line, len, "uptime_in_seconds", &field))
        parse_number(field, &info->uptime_s);
    else if (is_field(line, len, "valkey_version", &field))
        parse_version(info, field, true);
    else if (is_field(line, len, "redis_version", &field) && !info->is_valkey)
        parse_version(info, field, false);
    else
        parse_state(info, line, len);
}

/* Reads all known fields of an INFO text, line by line. Other fields of `info` stay as they are. */
void rl_info_parse(struct rl_info *info, const char *text, size_t len)
{
    size_t at = 0;

    while (at < len) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t line_len = end != NULL ? (size_t)(end - (text + at)) : len - at;
        size_t next = at + line_len + 1;
        while (line_len > 0 && text[at + line_len - 1] == '\r')
            line_len--;
        parse_line(info, text + at, line_len);
        at = next;
    }
}

/* Returns true if the server has reported its run id and refused no section of INFO. */
bool rl_info_is_identified(const struct rl_info *info)
{
    return info->run_id[0] != '\0' && !info->refused;
}

/* Returns true if the server reports a role that is not "master". Without a report of the role it
 * counts as no replica. */
bool rl_info_is_replica(const struct rl_info *info)
{
    return info->role[0] != '\0' && strcmp(info->role, "master") != 0;
}

/* Returns true if redis_mode is `mode`. */
bool rl_info_has_mode(const struct rl_info *info, const char *mode)
{
    return strcmp(info->mode, mode) == 0;
}

/* Returns true if INFO shows a promotion: an id of the data before it, or an offset. */
bool rl_info_was_promoted(const struct rl_info *info)
{
    bool zeros = strspn(info->replid2, "0") == strlen(info->replid2);

    return !zeros || info->second_offset > 0;
}

/* Returns true if the server may remove keys before they expire. An unknown policy counts as
 * noeviction. */
bool rl_info_evicts(const struct rl_info *info)
{
    return info->maxmemory != 0 && info->policy[0] != '\0' &&
           strcmp(info->policy, "noeviction") != 0;
}
