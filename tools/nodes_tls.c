/* SPDX-License-Identifier: MIT
 * `redlock nodes`: looks at the files with which this client connects to servers with TLS: who can
 * read the private key, when its certificate is valid and whether it is for clients, and when the
 * trusted issuers expire.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "examination.h"
#include "server_address.h"
#include "server_tls.h"
#include "settings.h"
#include "shards.h"

/* Copies the path of a file. Of a long one, copies "..." and the end. */
static void copy_path(char to[CLIENT_FILE_MAX], const char *path)
{
    static const char more[] = "...";
    size_t len = strlen(path), room = CLIENT_FILE_MAX - sizeof more;

    if (len < CLIENT_FILE_MAX)
        snprintf(to, CLIENT_FILE_MAX, "%s", path);
    else
        snprintf(to, CLIENT_FILE_MAX, "%s%s", more, path + len - room);
}

/* Looks at the files of these settings. */
static void look_at(const redlock_tls_t *tls, struct client_files *ret)
{
    const char *key = tls->key ? tls->key : tls->cert;
    struct stat found;

    if (key && stat(key, &found) == 0 && S_ISREG(found.st_mode) && found.st_mode & S_IROTH)
        copy_path(ret->readable_key, key);
    if (tls->cert) {
        copy_path(ret->certificate, tls->cert);
        struct certificates_read own = server_tls_read(tls->cert);
        ret->certificate_from_s = own.valid_from_s;
        ret->certificate_expiry_s = own.first_expiry_s;
        ret->not_for_clients = own.not_for_clients;
    }
    if (tls->cacert) {
        copy_path(ret->issuers, tls->cacert);
        ret->issuers_expiry_s = server_tls_read(tls->cacert).last_expiry_s;
    }
}

/* Fills in `files` of each server that is connected with TLS. */
void nodes_tls(const struct settings *settings, struct examination *exam)
{
    char *list = shards_addresses(settings->values[SET_SERVERS].text, exam->shard);

    for (size_t i = 0; i < exam->count; i++) {
        struct server_security own = server_security_of(list, i);
        redlock_tls_t tls;

        settings_tls(settings, &tls);
        server_security_apply(&own, &tls);
        if (own.used)
            look_at(&tls, &exam->files[i]);
        server_security_free(&own);
    }
    explicit_bzero(list, strlen(list));
    free(list);
}
