/* SPDX-License-Identifier: MIT
 * Writes the result of `redlock nodes` as figures for Prometheus: for each shard its health and how
 * many servers may still fail, each finding, and what the client knows of the servers.
 */
#include "nodes_figures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "figures_file.h"
#include "say.h"

/* Returns the labels of a shard: that of the file, and its name if there are several shards. To be
 * freed. */
static char *labels_of(const struct examination *exam, const char *file)
{
    char *labels = figures_label(NULL, "file", file);

    return *exam->shard_name ? figures_label(labels, "shard", exam->shard_name) : labels;
}

/* Adds one family with a number for each shard. `number`: returns the number of a shard. */
static void add_shards(struct figures *text, const char *file, const char *name, const char *help,
                       const struct examination *exams, size_t shards,
                       int64_t (*number)(const struct examination *))
{
    figures_family(text, name, help);
    for (size_t i = 0; i < shards; i++) {
        char *labels = labels_of(&exams[i], file);
        figures_number(text, name, labels, number(&exams[i]));
        free(labels);
    }
}

/* Returns the health of the shard as number: 0 OK, 1 WARN, 2 CRIT, 3 UNKNOWN. */
static int64_t health_of(const struct examination *exam)
{
    return (int64_t)exam->health;
}

/* Returns the number of servers that granted, extended and released a lock. */
static int64_t useful_of(const struct examination *exam)
{
    return (int64_t)exam->useful;
}

/* Returns how many servers may still fail; below 0: how many are missing. */
static int64_t reserve_of(const struct examination *exam)
{
    return (int64_t)exam->useful - (int64_t)exam->quorum;
}

/* Returns true if an earlier finding has the same severity, code and server. */
static bool is_repeated(const struct examination *exam, size_t index)
{
    const struct finding *finding = &exam->findings[index];

    for (size_t i = 0; i < index; i++) {
        const struct finding *other = &exam->findings[i];
        if (other->severity == finding->severity && other->node == finding->node &&
            !strcmp(other->code, finding->code))
            return true;
    }
    return false;
}

/* Adds a figure that is 1 for each finding of the shard. */
static void add_findings(struct figures *text, const char *file, const struct examination *exam)
{
    for (size_t i = 0; i < exam->finding_count; i++) {
        const struct finding *finding = &exam->findings[i];
        if (is_repeated(exam, i))
            continue;
        char *labels = labels_of(exam, file);
        if (finding->node >= 0)
            labels = figures_label(labels, "server", exam->nodes[finding->node].node);
        labels = figures_label(labels, "severity", severity_name(finding->severity));
        labels = figures_label(labels, "code", finding->code);
        figures_number(text, "nodes_finding", labels, 1);
        free(labels);
    }
}

/* Makes the text with the figures of all shards, for the file `path`. */
void nodes_figures_make(struct figures *text, const char *path, redlock_t *rl,
                        const struct examination *exams, size_t shards)
{
    char *file = figures_file_label(path);
    char *labels = figures_label(NULL, "file", file);
    const redlock_label_t label = {"file", file};

    figures_begin(text);
    figures_family(text, "nodes_check_timestamp_seconds", "When the servers were examined.");
    figures_seconds(text, "nodes_check_timestamp_seconds", labels, unix_ms());
    free(labels);
    add_shards(text, file, "nodes_health",
               "0: in order; 1: something needs repair; 2: critical; 3: the check is incomplete.",
               exams, shards, health_of);
    add_shards(text, file, "nodes_useful", "Servers that granted, extended and released a lock.",
               exams, shards, useful_of);
    add_shards(text, file, "nodes_reserve",
               "Useful servers that may fail before no lock can be acquired; below 0: so many are "
               "missing.",
               exams, shards, reserve_of);
    figures_family(text, "nodes_finding", "1 for each finding.");
    for (size_t i = 0; i < shards; i++)
        add_findings(text, file, &exams[i]);
    figures_servers(text, rl, &label, 1);
    free(file);
}

/* Replaces the file with the text. Returns -1, or EXIT_OUTPUT after a message. */
int nodes_figures_write(const char *path, const struct figures *text)
{
    figures_file_warn_name("nodes", path);
    int lock = figures_file_begin(path);
    bool written = figures_file_write(path, text->text, text->len);
    int error = errno;
    figures_file_end(lock);
    if (written)
        return -1;
    char *why = figures_file_error(error);
    say(SAY_ERROR, "nodes: --metrics-file %s cannot be written: %s", path, why);
    free(why);
    return EXIT_OUTPUT;
}
