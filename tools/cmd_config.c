/* SPDX-License-Identifier: MIT
 * `redlock config`: prints the settings in effect, and where each value comes from.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client.h"
#include "commands.h"
#include "exits.h"
#include "json.h"
#include "mask.h"
#include "say.h"
#include "settings.h"
#include "shown.h"
#include "timing.h"

/* Returns where the value comes from, such as "option -t"; "default" if the setting is not set. */
static const char *origin_of(const struct setting *setting)
{
    return setting->origin ? setting->origin : "default";
}

/* Prints each setting with its value and origin, for people. */
static void print_text(const struct settings *settings)
{
    for (int id = 0; id < SET_COUNT; id++) {
        char *shown = setting_shown(settings, (enum setting_id)id);
        show("%-16s %-32s # %s\n", setting_name((enum setting_id)id),
             !shown   ? "(not set)"
             : *shown ? shown
                      : "\"\"",
             origin_of(&settings->values[id]));
        free(shown);
    }
}

/* Prints the settings as JSON. Returns false if stdout could not be written. */
static bool print_json(const struct settings *settings)
{
    json_t *values = must(json_object());

    for (int id = 0; id < SET_COUNT; id++) {
        char *shown = setting_shown(settings, (enum setting_id)id);
        json_object_set_new(values, setting_name((enum setting_id)id),
                            json_pack("{s:o, s:o}", "value", shown ? json_text(shown) : json_null(),
                                      "origin", json_text(origin_of(&settings->values[id]))));
        free(shown);
    }
    return json_print(json_pack("{s:s, s:o}", "schema", "redlock.config/1", "settings", values));
}

/* Refuses durations that `acquire` would refuse. If settings that only `run` uses are set,
 * refuses what `run` would refuse, too. Returns EXIT_OK, or an exit code after a message. */
static int check_timing(const struct settings *settings)
{
    struct timing timing = {.ttl_ms = settings->ttl_ms,
                            .max_ttl_ms = settings->max_ttl_ms,
                            .validity_ms = client_validity_ms(settings),
                            .renew_ms = settings->renew_ms,
                            .grace_ms = settings->grace_ms,
                            .try_ms = settings->node_timeout_ms};
    bool runs = settings->values[SET_GRACE].text || settings->values[SET_RENEW].text;
    char why[512];

    if (!settings_renews(settings))
        return EXIT_CONFIG;
    if (runs ? timing_check(&timing, why, sizeof why) : timing_check_ttl(&timing, why, sizeof why))
        return EXIT_OK;
    say(SAY_ERROR, "config: %s", why);
    return EXIT_CONFIG;
}

/* Runs `redlock config`: prints the settings in effect, and checks them. Returns EXIT_OK, or an
 * exit code after a message. */
int cmd_config(const struct options *options)
{
    struct settings settings;
    redlock_config_t *config;

    if (options->operand_count > 0) {
        say(SAY_ERROR, "config: unexpected word %s; give options only: redlock config --help",
            mask_word(options->operands[0]));
        return EXIT_USAGE;
    }
    int result = settings_load(options, &settings);
    if (result >= 0)
        return result;
    if (options->json)
        print_json(&settings);
    else
        print_text(&settings);
    /* Invalid settings are refused after they were printed, so that the user sees them. */
    result = check_timing(&settings);
    if (result == EXIT_OK && settings.values[SET_SERVERS].text) {
        result = client_configure(&settings, &config);
        if (result < 0) {
            redlock_config_free(config);
            result = EXIT_OK;
        }
    }
    settings_free(&settings);
    return result;
}
