/* SPDX-License-Identifier: MIT
 * Fuzzes lists of node addresses. A list is accepted as a whole or not at all, each refusal has a
 * text, each accepted address has a name, and the name of a TCP address is parsed as the same
 * address. A password (QQ stands for one) is in no text.
 *
 *     2 bytes failing allocation, then the list; a byte of 1 stands for the login
 *     "redis://u:QQQQ@", a byte of 2 for one without a scheme, "u:QQQQ@" */
#include "fuzz.h"

#include "api/url.h"
#include "api/url_mask.h"

#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 4096

struct list {
    struct rl_mem mem;
    struct rl_node_spec *nodes;
    size_t count;
    char error[512];
};

/* Parses the list into a new one. Returns 0 or an error. */
static int parse(struct list *list, const char *text)
{
    memset(list, 0, sizeof *list);
    list->mem = rl_mem_libc();
    return rl_url_parse_list(&list->mem, text, &list->nodes, &list->count, list->error,
                             sizeof list->error);
}

/* Frees the list. */
static void done(struct list *list)
{
    while (list->count > 0)
        rl_node_spec_done(&list->mem, &list->nodes[--list->count]);
    rl_free(&list->mem, list->nodes);
}

/* Writes the list with its logins. Returns true if there is a login and no other text has two Q in
 * a row. */
static bool spell(struct fuzz_input *input, char *out, size_t size)
{
    size_t len = 0;
    bool secret = false;
    char previous = 0;
    bool confusing = false;

    while (input->left > 0 && len + 20 < size) {
        char byte = (char)fuzz_byte(input);
        if (byte == '\0')
            break;
        if (byte == 1 || byte == 2) {
            len +=
                (size_t)snprintf(out + len, size - len, "%su:QQQQ@", byte == 1 ? "redis://" : "");
            secret = true;
            previous = '@';
            continue;
        }
        confusing = confusing || (byte == 'Q' && previous == 'Q');
        previous = byte;
        out[len++] = byte;
    }
    out[len] = '\0';
    return secret && !confusing;
}

/* Returns true if the text has no control characters. */
static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

/* Checks that the name of an address, which has no login in it, is parsed as the same address; a
 * Unix socket's name is not parsed. */
static void check_name(const struct rl_node_spec *spec)
{
    struct list again;

    MUST(spec->name[0] != '\0' && is_plain(spec->name));
    MUST(spec->is_unix ? spec->path[0] == '/' : spec->host[0] != '\0' && spec->port != 0);
    if (spec->is_unix)
        return; /* paths may contain bytes that separate the entries of a list */
    MUST(parse(&again, spec->name) == 0 && again.count == 1);
    MUST(rl_node_spec_same_server(&again.nodes[0], spec) && again.nodes[0].db == spec->db);
    MUST(strcmp(again.nodes[0].name, spec->name) == 0);
    done(&again);
}

/* Checks that a masked entry is short, printable and without the password. */
static void check_mask(const char *list, const char *entry, size_t len, bool secret)
{
    char shown[RL_URL_SHOWN_MAX];

    rl_url_mask(list, entry, len, shown);
    MUST(strlen(shown) < sizeof shown && is_plain(shown));
    MUST(!secret || strstr(shown, "QQ") == NULL);
}

/* Checks the masked form of the list as one entry, and of each of its entries. */
static void check_masks(const char *list, bool secret)
{
    check_mask(list, list, strlen(list), secret);
    for (const char *at = list; *at != '\0';) {
        size_t len = 0;
        while (at[len] != '\0' && !rl_url_is_separator(at[len]))
            len++;
        check_mask(list, at, len, secret);
        at += len + (at[len] != '\0');
    }
}

/* Checks the same through the public interface, which accepts lists of shards. */
static void check_config(const char *list, bool secret)
{
    redlock_config_t *config = NULL;

    MUST(redlock_config_new(&config, NULL) == REDLOCK_OK);
    int error = redlock_config_add_nodes(config, list);
    const char *text = redlock_config_error(config);
    MUST((error == REDLOCK_OK) == (text[0] == '\0') && is_plain(text));
    MUST(!secret || strstr(text, "QQ") == NULL);
    redlock_config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct list list;
    char text[LIST_MAX];

    fuzz_alloc_begin(&input);
    bool secret = spell(&input, text, sizeof text);
    int error = parse(&list, text);
    bool failed = fuzz_alloc_end();
    MUST(error == 0 || error == REDLOCK_EINVAL || (failed && error == REDLOCK_ENOMEM));
    MUST((error == 0) == (list.count > 0));
    MUST((error == 0) == (list.error[0] == '\0'));
    MUST(list.count <= RL_NODES_MAX && is_plain(list.error));
    MUST(!secret || strstr(list.error, "QQ") == NULL);
    for (size_t i = 0; i < list.count; i++) {
        MUST(!secret || strstr(list.nodes[i].name, "QQ") == NULL);
        check_name(&list.nodes[i]);
        for (size_t j = 0; j < i; j++)
            MUST(!rl_node_spec_same_server(&list.nodes[i], &list.nodes[j]));
    }
    done(&list);
    check_masks(text, secret);
    check_config(text, secret);
    return 0;
}
