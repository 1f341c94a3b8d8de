/* SPDX-License-Identifier: MIT
 * Writes the text format of Prometheus into a buffer, and counts the bytes that do not fit. */
#include "api/prometheus_text.h"

#include "core/types.h"

#include <string.h>

/* Names of labels that the library writes itself. */
static const char *const own_labels[] = {"cause",  "le",     "policy", "result", "role",
                                         "rounds", "server", "shard",  "state",  "version"};

/* Returns whether the byte may be part of a label's name; a digit may not be the first one. */
static bool is_name_byte(char byte, bool first)
{
    bool digit = byte >= '0' && byte <= '9';
    bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';

    return letter || (digit && !first);
}

/* Returns whether `name` is allowed as name of a label that the caller adds. */
static bool is_name(const char *name)
{
    size_t len = 0;

    while (len <= REDLOCK_LABEL_NAME_MAX && is_name_byte(name[len], len == 0))
        len++;
    if (len == 0 || len > REDLOCK_LABEL_NAME_MAX || name[len] != '\0')
        return false;
    for (size_t i = 0; i < sizeof own_labels / sizeof own_labels[0]; i++) {
        if (strcmp(name, own_labels[i]) == 0)
            return false;
    }
    return strncmp(name, "__", 2) != 0;
}

/* Returns whether all labels have allowed names and values, and no name occurs twice. */
bool rl_prom_check_labels(const redlock_label_t *labels, size_t count)
{
    if (count > REDLOCK_LABELS_MAX || (labels == NULL && count != 0))
        return false;
    for (size_t i = 0; i < count; i++) {
        const redlock_label_t *label = &labels[i];
        if (label->name == NULL || label->value == NULL || !is_name(label->name) ||
            strnlen(label->value, REDLOCK_LABEL_VALUE_MAX + 1) > REDLOCK_LABEL_VALUE_MAX)
            return false;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(labels[j].name, label->name) == 0)
                return false;
        }
    }
    return true;
}

/* Returns an empty text in the buffer `text` of `size` bytes, with these labels. */
struct rl_prom rl_prom_open(char *text, size_t size, const redlock_label_t *labels, size_t count)
{
    return (struct rl_prom){.text = text, .size = size, .labels = labels, .label_count = count};
}

/* Ends the text with a NUL, if the buffer has any byte. Returns the length of the whole text. */
size_t rl_prom_close(struct rl_prom *prom)
{
    if (prom->size != 0)
        prom->text[prom->len < prom->size ? prom->len : prom->size - 1] = '\0';
    return prom->len;
}

/* Appends `len` bytes, as many as fit, and counts all of them. */
static void put(struct rl_prom *prom, const char *bytes, size_t len)
{
    size_t room = prom->len < prom->size ? prom->size - prom->len : 0;

    if (room != 0)
        memcpy(prom->text + prom->len, bytes, len < room ? len : room);
    prom->len += len;
}

/* Appends a string. */
static void put_text(struct rl_prom *prom, const char *text)
{
    put(prom, text, strlen(text));
}

/* Appends a number in decimal digits, at least `width` of them (0 to 20). */
static void put_number(struct rl_prom *prom, uint64_t number, unsigned width)
{
    char digits[20];
    unsigned at = sizeof digits;

    while (number != 0 || sizeof digits - at < width) {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    }
    put(prom, digits + at, sizeof digits - at);
}

/* Appends microseconds as seconds, without zeros at the end. */
static void put_seconds(struct rl_prom *prom, uint64_t us)
{
    uint64_t fraction = us % 1000000;
    unsigned width = 6;

    put_number(prom, us / 1000000, 1);
    if (fraction == 0)
        return;
    for (; fraction % 10 == 0; fraction /= 10)
        width--;
    put(prom, ".", 1);
    put_number(prom, fraction, width);
}

/* Returns the length of the valid UTF-8 sequence at the start of a string: 1 to 4; or 0 if there is
 * none. */
static size_t utf8_len(const unsigned char *bytes)
{
    unsigned char first = bytes[0];

    if (first < 0x80)
        return 1;
    size_t len = first >= 0xc2 && first < 0xe0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : 4;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    }
    /* Too long a form, a surrogate, or more than U+10FFFF. */
    if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) ||
        (first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] > 0x8f))
        return 0;
    return len;
}

/* Appends the value of a label with '\', '"' and line ends escaped, and U+FFFD in place of each
 * byte that is not UTF-8. */
static void put_escaped(struct rl_prom *prom, const char *value)
{
    while (*value != '\0') {
        size_t len = utf8_len((const unsigned char *)value);
        if (*value == '\n')
            put(prom, "\\n", 2);
        else if (len == 0)
            put(prom, "\xef\xbf\xbd", 3);
        else {
            if (*value == '\\' || *value == '"')
                put(prom, "\\", 1);
            put(prom, value, len);
        }
        value += len != 0 ? len : 1;
    }
}

/* Appends the name of a label with what separates it from its value. */
static void begin_label(struct rl_prom *prom, const char *name)
{
    put(prom, prom->has_label ? "," : "{", 1);
    put_text(prom, name);
    put(prom, "=\"", 2);
    prom->has_label = true;
}

/* Writes the lines HELP and TYPE of a family. */
void rl_prom_family(struct rl_prom *prom, const char *name, const char *type, const char *help)
{
    put_text(prom, "# HELP redlock_");
    put_text(prom, name);
    put(prom, " ", 1);
    put_text(prom, help);
    put_text(prom, "\n# TYPE redlock_");
    put_text(prom, name);
    put(prom, " ", 1);
    put_text(prom, type);
    put(prom, "\n", 1);
}

/* Begins a line with "redlock_", the name, the suffix and the labels of the caller. */
void rl_prom_begin(struct rl_prom *prom, const char *name, const char *suffix)
{
    put_text(prom, "redlock_");
    put_text(prom, name);
    put_text(prom, suffix);
    prom->has_label = false;
    for (size_t i = 0; i < prom->label_count; i++)
        rl_prom_label(prom, prom->labels[i].name, prom->labels[i].value);
}

/* Writes one label with an escaped value. */
void rl_prom_label(struct rl_prom *prom, const char *name, const char *value)
{
    begin_label(prom, name);
    put_escaped(prom, value);
    put(prom, "\"", 1);
}

/* Writes one label with a value in seconds. */
void rl_prom_label_us(struct rl_prom *prom, const char *name, uint64_t us)
{
    begin_label(prom, name);
    put_seconds(prom, us);
    put(prom, "\"", 1);
}

/* Appends what separates the labels of a line from its value. */
static void end_labels(struct rl_prom *prom)
{
    put_text(prom, prom->has_label ? "} " : " ");
}

/* Ends the line with a whole number. */
void rl_prom_value(struct rl_prom *prom, uint64_t value)
{
    end_labels(prom);
    put_number(prom, value, 1);
    put(prom, "\n", 1);
}

/* Ends the line with a number of seconds. */
void rl_prom_value_us(struct rl_prom *prom, int64_t us)
{
    end_labels(prom);
    put(prom, "-", us < 0 ? 1 : 0);
    put_seconds(prom, us < 0 ? 0 - (uint64_t)us : (uint64_t)us);
    put(prom, "\n", 1);
}
