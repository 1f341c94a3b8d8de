/* SPDX-License-Identifier: MIT
 * TLS in a chaos run: the servers listen at a second port, with one certificate for all. */
#ifndef CHAOS_TLS_H
#define CHAOS_TLS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns why no client of this run can use TLS, or NULL if they can. `links`: the servers have
 * links. */
const char *tls_missing(bool links);
/* Makes the certificate of the servers and its issuer in the directory of the run. Returns the
 * arguments of the servers, ended by NULL. */
const char *const *tls_server_arguments(void);
/* Writes the list of addresses for clients: of the ports for TLS, or of the plain ones. Both lists
 * have the same `id` for each server, so that all clients take them for the same servers. */
void tls_write_urls(char *ret_urls, size_t size, bool tls);

#endif
