/* SPDX-License-Identifier: MIT
 * No list of addresses, however malformed, gets a password into a text of the library or of
 * `redlock config`. The lists are made of pieces by a generator with a fixed seed. */
/* Saves the time of Check's note about each assertion; see suite.h. */
#define SUITE_MANY_ASSERTIONS
#include "api/config.h"
#include "api/url_mask.h"

#include <inttypes.h>
#include <redlock/redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "settings.h"
#include "suite.h"

#define LISTS    40000
#define LIST_MAX 1024

/* Only passwords contain two Q in a row. */
static const char *const logins[] = {
    "u:QQQQ@",          ":QQQQ@",          "QQQQ@",           "u:QQ,QQ@",       "u:QQ;QQ@",
    "u:QQ|QQ@",         "u:QQ QQ@",        "u:QQ@QQ@",        "u:QQ/QQ@",       "u:QQ?QQ@",
    "u:QQ#QQ@",         "u:QQ:QQ@",        "u:QQ=QQ@",        "u:QQ%40QQ@",     "u:%QQQ@",
    "u:QQ\nQQ@",        "u:QQ\tQQ@",       "redis://u:QQQQ@", "unix://u:QQQQ@", "http://u:QQQQ@",
    "u:QQ,redis://QQ@", ",redis://u:QQQQ", ",u:QQQQ",         "?password=QQQQ", "u:1,QQ@",
};

static const char *const parts[] = {
    "a",         "b.example", "127.0.0.1", "[::1]",      "[",    "]",        "@",
    ":",         ":6379",     ":1",        ":99999",     "/",    "/0",       "/x",
    "//",        "/run/r",    "%",         "%40",        "%zz",  "%00",      "?",
    "?db=1",     "#",         "&",         "?durable=1", "=",    "redis://", "redis:/",
    "valkey://", "rediss://", "unix://",   "unix:",      "://",  "http://",  "x://",
    "east=",     "west=",     "\x01",      "\x1b[2J",    "\x7f", "\x9b",     "\xc2\x9b",
    "\xff",      "'",         "\"",
};

static const char *const separators[] = {",",  " ",  ";",  "|", "\t", "\n",
                                         "\r", ", ", "; ", "/", "+"};

static uint64_t state; /* of the random generator */

/* Returns a random number below `bound`. */
static size_t below(size_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % bound);
}

#define PICK(from) ((from)[below(sizeof(from) / sizeof(from)[0])])

/* Writes a list of up to six entries, each of up to five pieces, with at least one password. */
static void make_list(char text[LIST_MAX])
{
    size_t entries = 1 + below(6), secret = below(entries);

    text[0] = '\0';
    for (size_t i = 0; i < entries; i++) {
        if (i > 0)
            strcat(text, PICK(separators));
        if (below(2) == 0)
            strcat(text, "redis://");
        for (size_t left = below(3); left > 0; left--)
            strcat(text, PICK(parts));
        if (i == secret || below(3) == 0)
            strcat(text, PICK(logins));
        for (size_t left = below(3); left > 0; left--)
            strcat(text, PICK(parts));
    }
    ck_assert_uint_lt(strlen(text), LIST_MAX);
}

/* Checks that the text does not contain a part of a password. */
static void check_text(const char *list, const char *what, const char *text)
{
    ck_assert_msg(strstr(text, "QQ") == NULL, "\"%s\": %s shows \"%s\"", list, what, text);
}

/* Checks the masked text of the list, and of each entry in it. */
static void check_masks(const char *list)
{
    char shown[RL_URL_SHOWN_MAX];

    for (const char *at = list; *at != '\0';) {
        size_t len = strcspn(at, ", \t\r\n");
        rl_url_mask(list, at, len, shown);
        check_text(list, "the mask", shown);
        at += len + (at[len] != '\0');
    }
}

/* Checks the names and errors of the library. Returns true if it accepts the list. */
static bool check_library(const char *list)
{
    redlock_config_t *config = NULL;

    ck_assert_int_eq(redlock_config_new(&config, NULL), REDLOCK_OK);
    bool accepted = redlock_config_add_nodes(config, list) == REDLOCK_OK;
    check_text(list, "the error", redlock_config_error(config));
    ck_assert(accepted == (redlock_config_error(config)[0] == '\0'));
    for (size_t i = 0; i < config->node_count; i++) /* the name in reports and logs */
        check_text(list, "a name", config->nodes[i].name);
    redlock_config_free(config);
    return accepted;
}

/* Checks what `redlock config` prints. */
static void check_command(const char *list, bool accepted)
{
    char servers[LIST_MAX];
    struct options options = {.servers = servers, .config_file = "/dev/null"};
    struct settings settings;

    memcpy(servers, list, strlen(list) + 1);
    ck_assert_int_eq(settings_load(&options, &settings), -1);
    for (int id = 0; id < SET_COUNT; id++) {
        char *shown = setting_shown(&settings, (enum setting_id)id);
        if (shown == NULL)
            continue;
        check_text(list, "redlock config", shown);
        ck_assert_msg(id != SET_SERVERS || accepted || strcmp(shown, "***") == 0, "\"%s\": \"%s\"",
                      list, shown);
        char *line = json_line(json_pack("{s:o}", "value", json_text(shown)));
        check_text(list, "redlock config --json", line);
        free(line);
        free(shown);
    }
    settings_free(&settings);
}

START_TEST(no_text_shows_a_password)
{
    char list[LIST_MAX];
    unsigned accepted = 0;

    state = UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)_i;
    for (unsigned i = 0; i < LISTS / 4; i++) {
        make_list(list);
        check_masks(list);
        bool good = check_library(list);
        check_command(list, good);
        accepted += good;
    }
    /* The generator makes both valid and invalid lists. */
    ck_assert_uint_gt(accepted, 10);
    ck_assert_uint_lt(accepted, LISTS / 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools_password_masking");
    TCase *tcase = tcase_create("secrets");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, no_text_shows_a_password, 0, 4);
    return suite_run(suite);
}
