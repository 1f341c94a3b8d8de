/* SPDX-License-Identifier: MIT
 * Reads certificates and keys from files, and sets all that the connections of a client have in
 * common. */
#include "node/tls_parts.h"
#include "platform/errno_text.h"
#include "redlock/redlock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_FILE    "it is neither a file nor a directory; a pipe can be read only once"
#define PATH_SHOWN 250 /* bytes of a path in a reason: its end, because the reason follows */

/* Where the reason of a failure is written. */
struct reason {
    char *text;
    size_t size;
    int result; /* of the failure, as rl_tls_load() returns it */
};

/* Writes "<what> <path>: <why>", where <why> is the text or, if it is NULL, the last error of
 * OpenSSL. Returns false. */
static bool refuse(struct reason *reason, const char *what, const char *path, const char *why)
{
    unsigned long code = why != NULL ? 0 : ERR_peek_last_error(); /* which initialises OpenSSL */
    const char *words = why != NULL                        ? why
                        : ERR_GET_LIB(code) == ERR_LIB_SYS ? rl_errno_text(ERR_GET_REASON(code))
                                                           : ERR_reason_error_string(code);
    size_t len = strlen(path), cut = len > PATH_SHOWN ? len - PATH_SHOWN : 0;

    snprintf(reason->text, reason->size, "%s %s%s: %s", what, cut > 0 ? "..." : "", path + cut,
             words != NULL ? words : "unknown error");
    return false;
}

/* Returns in words that the security level of OpenSSL does not permit a certificate; NULL: the
 * error is another one. */
static const char *text_of_weakness(unsigned long code)
{
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;

    if (reason == SSL_R_EE_KEY_TOO_SMALL || reason == SSL_R_CA_KEY_TOO_SMALL)
        return RL_TLS_SHORT_KEY;
    return reason == SSL_R_CA_MD_TOO_WEAK ? RL_TLS_WEAK_DIGEST : NULL;
}

/* As refuse(), after OpenSSL could not read what it looked for in a file. Then `why` says what is
 * missing, because OpenSSL's own text is "PEM lib". For most other errors, the text is OpenSSL's.
 */
static bool refuse_content(struct reason *reason, const char *what, const char *path,
                           const char *why)
{
    unsigned long code = ERR_peek_last_error();
    bool is_missing = ERR_GET_REASON(code) == ERR_R_PEM_LIB ||
                      (ERR_GET_LIB(code) == ERR_LIB_X509 &&
                       ERR_GET_REASON(code) == X509_R_NO_CERTIFICATE_OR_CRL_FOUND);

    return refuse(reason, what, path, is_missing ? why : text_of_weakness(code));
}

/* Implements the callback that OpenSSL calls for the passphrase of a private key. There is none:
 * without this function OpenSSL would ask for it on the terminal. Notes in `asked`, a bool, that
 * there should be one; NULL: does not. */
static int refuse_passphrase(char *buffer, int size, int writing, void *asked)
{
    (void)buffer;
    (void)size;
    (void)writing;
    if (asked != NULL)
        *(bool *)asked = true;
    return -1;
}

/* Returns REDLOCK_ENOMEM or REDLOCK_ESYS if an errno says nothing about the file, so that another
 * try may succeed; else REDLOCK_EINVAL. */
static int result_of_errno(int error)
{
    bool passing = error == EMFILE || error == ENFILE || error == EIO || error == ESTALE ||
                   error == EINTR || error == EAGAIN;

    return error == ENOMEM ? REDLOCK_ENOMEM : passing ? REDLOCK_ESYS : REDLOCK_EINVAL;
}

/* Checks that a file can be opened, because OpenSSL does not say why it cannot, and that it is no
 * pipe, whose end OpenSSL might wait for. Between this check and OpenSSL's reading, the file may be
 * exchanged. */
static bool check_file(const char *what, const char *path, struct reason *reason)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat found;

    if (fd < 0 || fstat(fd, &found) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        reason->result = result_of_errno(error);
        return refuse(reason, what, path, rl_errno_text(error));
    }
    close(fd);
    if (S_ISDIR(found.st_mode))
        return refuse(reason, what, path, "it is a directory");
    return S_ISREG(found.st_mode) || refuse(reason, what, path, NO_FILE);
}

/* Checks that a variable of the environment, through which OpenSSL takes the path of a file, does
 * not name a pipe or the like. OpenSSL does without a file that it cannot read. */
static bool check_variable(const char *name, struct reason *reason)
{
    const char *path = secure_getenv(name);
    struct stat found, null;

    if (path == NULL || stat(path, &found) != 0 || S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))
        return true;
    /* The usual way to name an empty file. */
    if (S_ISCHR(found.st_mode) && stat("/dev/null", &null) == 0 && found.st_rdev == null.st_rdev)
        return true;
    return refuse(reason, name, path, NO_FILE);
}

/* Checks the variable that names openssl.cnf. */
bool rl_tls_check_environment(char *error, size_t size)
{
    struct reason reason = {error, size, REDLOCK_EINVAL};

    return check_variable("OPENSSL_CONF", &reason);
}

/* Returns whether OpenSSL finds a file of this name in a directory: the hash of an issuer's name in
 * 8 hexadecimal digits, a dot, and a number. */
static bool is_hashed(const char *name)
{
    for (unsigned i = 0; i < 8; i++)
        if (!isxdigit((unsigned char)name[i]))
            return false;
    return name[8] == '.' && isdigit((unsigned char)name[9]);
}

/* Sets *ret_found to whether a directory has a file that OpenSSL would find. Returns 0, or an errno
 * if the directory cannot be read. */
static int search_folder(const char *path, bool *ret_found)
{
    DIR *folder = opendir(path);
    const struct dirent *entry = NULL;

    *ret_found = false;
    if (folder == NULL)
        return errno;
    while ((entry = readdir(folder)) != NULL && !is_hashed(entry->d_name))
        ;
    closedir(folder);
    *ret_found = entry != NULL;
    return 0;
}

/* Checks that a directory has a file that OpenSSL would find. */
static bool check_folder(const char *what, const char *path, struct reason *reason)
{
    bool found;
    int error = search_folder(path, &found);

    if (error != 0) {
        reason->result = result_of_errno(error);
        return refuse(reason, what, path, rl_errno_text(error));
    }
    return found || refuse(reason, what, path,
                           "the directory has no certificate under the name by which OpenSSL looks "
                           "for it; run openssl rehash on it");
}

/* Returns whether the file or the directories of the system have issuers. */
bool rl_tls_has_system_issuers(X509_STORE *store)
{
    const char *folders = secure_getenv(X509_get_default_cert_dir_env());
    char folder[RL_FILE_MAX + 1];
    bool found = sk_X509_OBJECT_num(X509_STORE_get0_objects(store)) > 0;

    if (folders == NULL)
        folders = X509_get_default_cert_dir();
    while (!found && *folders != '\0') {
        size_t len = strcspn(folders, ":");
        if (len < sizeof folder) {
            memcpy(folder, folders, len);
            folder[len] = '\0';
            (void)search_folder(folder, &found);
        }
        folders += len + (folders[len] == ':');
    }
    return found;
}

/* Loads the issuers that are trusted. A directory is one of the form that `openssl rehash` makes:
 * OpenSSL looks a certificate up in it when it needs it. */
static bool load_issuers(SSL_CTX *native, const struct rl_tls_settings *settings,
                         struct reason *reason)
{
    static const char WHAT[] = "certificates of issuers";
    const char *path = settings->cacert;
    struct stat found;

    if (path == NULL && settings->verify == RL_TLS_VERIFY_NONE)
        return true;
    if (path == NULL)
        return check_variable(X509_get_default_cert_file_env(), reason) &&
               (SSL_CTX_set_default_verify_paths(native) == 1 ||
                refuse(reason, WHAT, "of the system", NULL));
    bool folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
    if (!(folder ? check_folder : check_file)(WHAT, path, reason))
        return false;
    return SSL_CTX_load_verify_locations(native, folder ? NULL : path, folder ? path : NULL) == 1 ||
           refuse_content(reason, WHAT, path,
                          "it has no certificate in PEM format, or a damaged one");
}

/* Loads the private key of the client's certificate, which is loaded already. */
static bool load_key(SSL_CTX *native, const struct rl_tls_settings *settings, struct reason *reason)
{
    static const char WHAT[] = "private key";
    const char *path = settings->key != NULL ? settings->key : settings->cert;
    bool encrypted = false;

    if (!check_file(WHAT, path, reason))
        return false;
    SSL_CTX_set_default_passwd_cb_userdata(native, &encrypted);
    bool loaded = SSL_CTX_use_PrivateKey_file(native, path, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(native, NULL);
    unsigned long code = ERR_peek_last_error();
    bool is_other =
        ERR_GET_LIB(code) == ERR_LIB_X509 && ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH;
    if (loaded ? SSL_CTX_check_private_key(native) != 1 : is_other)
        return refuse(reason, WHAT, path, "it does not belong to the certificate");
    if (!loaded && encrypted)
        return refuse(reason, WHAT, path,
                      "it is encrypted, and the library asks for no passphrase: store it without "
                      "one, readable by this user only");
    return loaded || refuse_content(reason, WHAT, path,
                                    settings->key != NULL
                                        ? "it has no private key in PEM format"
                                        : "it has no private key in PEM format: name the file "
                                          "of the key, too");
}

/* Loads the certificate of the client and its private key, if they are named. */
static bool load_own(SSL_CTX *native, const struct rl_tls_settings *settings, struct reason *reason)
{
    static const char WHAT[] = "certificate";
    const char *cert = settings->cert;

    if (cert == NULL)
        return true;
    if (!check_file(WHAT, cert, reason))
        return false;
    if (SSL_CTX_use_certificate_chain_file(native, cert) != 1)
        return refuse_content(reason, WHAT, cert,
                              "it has no certificate in PEM format, or a damaged one");
    return load_key(native, settings, reason);
}

/* Sets what does not depend on files. A SET must not be replayed, so there is no early data; what
 * OpenSSL read ahead stays in memory that is freed while a connection is idle. */
static bool set_options(SSL_CTX *native, const struct rl_tls_settings *settings)
{
    bool verified = settings->verify != RL_TLS_VERIFY_NONE;

    SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(native, 1);
    SSL_CTX_set_default_passwd_cb(native, refuse_passphrase);
    SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(native, rl_tls_keep_session);
    SSL_CTX_set_verify(native, verified ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                       verified ? rl_tls_judge_certificate : NULL);
    /* A file openssl.cnf of the system may require more. */
    return SSL_CTX_get_min_proto_version(native) >= TLS1_2_VERSION ||
           SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION) == 1;
}

/* Returns REDLOCK_ENOMEM if an error of OpenSSL says that it has lacked memory, REDLOCK_ESYS if it
 * could not open or read a file for a reason that may pass, else REDLOCK_OK. */
static int result_of_error(unsigned long code)
{
    if (ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE)
        return REDLOCK_ENOMEM;
    int result =
        ERR_GET_LIB(code) == ERR_LIB_SYS ? result_of_errno(ERR_GET_REASON(code)) : REDLOCK_EINVAL;
    return result == REDLOCK_EINVAL ? REDLOCK_OK : result;
}

/* Returns what kept OpenSSL from reading the files, as result_of_error(). Without memory it may
 * report success, with ciphers missing or an issuer that it takes for invalid from then on; or its
 * last error is only that a file has no content. So all errors count, and are removed. `before`:
 * the last error of the program, if there was one: then only the last error counts, if it is
 * another one. */
static int result_of_errors(unsigned long before)
{
    unsigned long code = ERR_peek_last_error();
    int result = code != before ? result_of_error(code) : REDLOCK_OK;

    while (before == 0 && result != REDLOCK_ENOMEM && (code = ERR_get_error()) != 0)
        result = result_of_error(code) != REDLOCK_OK ? result_of_error(code) : result;
    return result;
}

/* Makes an OpenSSL object with what the settings name. Returns false with the reason if it cannot
 * be used. */
static bool make(const struct rl_tls_settings *settings, SSL_CTX **ret_native,
                 struct reason *reason)
{
    unsigned long before = ERR_peek_last_error();
    SSL_CTX *native = *ret_native = SSL_CTX_new(TLS_client_method());

    if (native == NULL || !set_options(native, settings)) {
        /* Without memory OpenSSL may fail here without an error. */
        reason->result = ERR_peek_last_error() == before ? REDLOCK_ENOMEM : REDLOCK_EINVAL;
        return refuse(reason, "the OpenSSL library", "cannot be used", NULL);
    }
    return load_issuers(native, settings, reason) && load_own(native, settings, reason);
}

/* Makes an OpenSSL object from the files of the settings. Returns REDLOCK_OK; REDLOCK_EINVAL or
 * REDLOCK_ESYS with a reason in `error`; or REDLOCK_ENOMEM without one. */
int rl_tls_load(const struct rl_tls_settings *settings, SSL_CTX **ret_native, char *error,
                size_t size)
{
    struct reason reason = {error, size, REDLOCK_EINVAL};
    unsigned long before = ERR_peek_last_error();
    int result = REDLOCK_OK;

    ERR_set_mark();
    if (!make(settings, ret_native, &reason))
        result = reason.result;
    int obstacle = result_of_errors(before);
    if (obstacle == REDLOCK_ENOMEM || (obstacle == REDLOCK_ESYS && result != REDLOCK_OK))
        result = obstacle;
    if (result == REDLOCK_ENOMEM)
        error[0] = '\0';
    if (result != REDLOCK_OK) {
        SSL_CTX_free(*ret_native);
        *ret_native = NULL;
    }
    ERR_pop_to_mark();
    return result;
}
