/* SPDX-License-Identifier: MIT
 * The table of flags: their names, their letters and the subcommands that accept them.
 */
#ifndef TOOLS_OPTIONS_TABLE_H
#define TOOLS_OPTIONS_TABLE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* Identifies a flag. The values begin above all letters, as getopt_long() needs. */
enum option_id {
    OPT_SERVERS = 256,   /* -s: the list of servers */
    OPT_CONFIG,          /* -f: the configuration file */
    OPT_PREFIX,          /* prefix of all keys */
    OPT_USER,            /* user name at the servers */
    OPT_PASS_FILE,       /* file with the password */
    OPT_MAX_TTL,         /* the longest TTL of any client */
    OPT_CONNECT_TIMEOUT, /* time limit for connecting to a server */
    OPT_NODE_TIMEOUT,    /* time limit for a reply of a server */
    OPT_JSON,            /* print JSON */
    OPT_QUIET,           /* -q: print errors only */
    OPT_VERBOSE,         /* -v: print more; may be repeated */
    OPT_HELP,            /* -h: print the help text */
    OPT_NONBLOCK,        /* -n of `run` and `acquire`: do not wait for the lock */
    OPT_WAIT,            /* -w: the longest wait */
    OPT_CONFLICT_CODE,   /* -E: exit code if another client holds the lock */
    OPT_TTL,             /* -t: TTL of the lock */
    OPT_GRACE,           /* -k: time between the stop signal and KILL */
    OPT_RENEW,           /* time between two extensions */
    OPT_NO_RENEW,        /* do not extend the lock */
    OPT_SIGNAL,          /* the stop signal for the command */
    OPT_ON_LOSS,         /* stop or warn: what to do if the lock is about to be lost */
    OPT_MIN_HOLD,        /* hold the lock at least for this time */
    OPT_MAX_HOLD,        /* stop the command after this time */
    OPT_KEEP,            /* do not release the lock at the end */
    OPT_KEEP_ENV,        /* leave passwords in the environment of the command */
    OPT_COMMAND,         /* -c: a command for /bin/sh */
    OPT_FOREGROUND,      /* keep the command in our process group */
    OPT_PRESERVE_STATUS, /* exit with the status of the command even if it was stopped */
    OPT_ALLOW_NESTED,    /* allow to wait for a lock that an enclosing `redlock run` holds */
    OPT_EXPORT_TOKEN,    /* give the command the token of the lock */
    OPT_FENCE,           /* acquire with a fencing token; `nodes`: examine fences, too */
    OPT_STATUS_FD,       /* descriptor to which events are written */
    OPT_TOKEN_FILE,      /* file with the token */
    OPT_STRICT,          /* `release`: fail if the lock is not held with this token */
    OPT_YES,             /* `break`: really delete the key */
    OPT_INIT,            /* `nodes`: take the fence records into use */
    OPT_WAIT_ALL,        /* --wait of `nodes`: wait until all servers are eligible */
    OPT_ACL,             /* `nodes`: print the rights that a user needs */
    OPT_NODES,           /* -n of `sandbox`: number of servers */
    OPT_INTERVAL,        /* -i of `watch`: time between two inspections */
    OPT_ALSO,            /* -a: one more name of the lock */
    OPT_PERMITS          /* number of permits of a semaphore */
};

/* One row of the table: a flag of some subcommands. The same name or letter may have another row,
 * with another id, for other subcommands. */
struct option_spec {
    const char *name;  /* long name without "--" */
    char letter;       /* letter of the short form; 0: none */
    bool takes_value;  /* the flag is followed by a value */
    int id;            /* enum option_id */
    unsigned commands; /* the subcommands that accept it, bits of enum command_bit */
};

/* Upper bound of option_specs_count. */
#define OPTION_SPECS_MAX 64

/* The table of all flags, and its number of rows. */
extern const struct option_spec option_specs[];
extern const size_t option_specs_count;

/* Writes the two tables that getopt_long() needs for the subcommand `command` (enum command_bit).
 * The short one has at most two bytes for each flag, two at its start and a NUL. */
void option_table(unsigned command, struct option long_options[OPTION_SPECS_MAX],
                  char short_options[2 * OPTION_SPECS_MAX + 3]);

/* Returns the enum option_id of the flag with this letter in the subcommand; 0 if there is none. */
int option_by_letter(unsigned command, int letter);

/* Returns the long name of the subcommand's flag that is most similar to `word`; NULL if no flag is
 * similar. */
const char *option_nearest(unsigned command, const char *word);

/* Writes the names of the subcommands that accept the flag `word` (a long name or a letter) to
 * `buffer`, such as "run, acquire". Returns `buffer`, or NULL if no subcommand accepts it. */
const char *option_elsewhere(const char *word, char *buffer, size_t size);

/* Returns the name of the subcommand that is most similar to `word`; NULL if none is similar. */
const char *command_nearest(const char *word);

/* Entry i is the subcommand of bit i of enum command_bit; ends with NULL. */
extern const char *const command_names[];

#endif
