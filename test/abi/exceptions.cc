/* SPDX-License-Identifier: MIT
 * A C++ program with a callback that throws; the argument selects which. The exit status is 42 if
 * the C++ runtime ended the program where the exception was thrown, and 1 if the exception passed
 * through the library. */
#include <poll.h>
#include <redlock/redlock.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

static std::string which; /* the callback that throws */
static bool finished;     /* the last operation has ended */

/* Throws if the argument of the program is `name`. */
static void throw_if(const char *name)
{
    if (which == name)
        throw std::runtime_error(name);
}

/* Event function; throws at a WAITING event in the cases event and event-on-the-thread. */
static void on_event(redlock_t *, const redlock_event_t *event, void *)
{
    if (event->kind == REDLOCK_EVENT_WAITING) {
        throw_if("event");
        throw_if("event-on-the-thread");
    }
}

/* Callback of the acquisition; throws in the cases of its name. */
static void on_done(redlock_t *, int, redlock_lock_t *, const redlock_report_t *, void *)
{
    finished = which != "shutdown";
    throw_if("done");
    throw_if("done-hybrid");
    throw_if("done-in-free");
}

/* Callback of the shutdown; throws in the case shutdown. */
static void on_shut_down(redlock_t *, int, redlock_lock_t *, const redlock_report_t *, void *)
{
    finished = true;
    throw_if("shutdown");
}

/* Function for redlock_with(); throws in the case body. */
static int body(redlock_lock_t *, void *)
{
    throw_if("body");
    return 0;
}

/* Log function; throws in the case log. */
static void on_log(int, const char *, void *)
{
    throw_if("log");
}

/* malloc() of the client; throws in the case malloc. */
static void *allocate(size_t size, void *)
{
    if (which == "malloc")
        throw std::bad_alloc();
    return malloc(size);
}

/* realloc() of the client; throws in the case realloc. */
static void *reallocate(void *ptr, size_t size, void *)
{
    if (which == "realloc")
        throw std::bad_alloc();
    return realloc(ptr, size);
}

/* free() of the client; throws in the case free. */
static void deallocate(void *ptr, void *)
{
    throw_if("free");
    free(ptr);
}

/* Returns the mode of the client (REDLOCK_MODE_*) in which the callback of the case runs. */
static int mode_of_case()
{
    if (which == "event-on-the-thread" || which == "body")
        return REDLOCK_MODE_THREADED;
    return which == "done-hybrid" ? REDLOCK_MODE_HYBRID : REDLOCK_MODE_EMBEDDED;
}

/* Returns a REDLOCK_OK. Prints any other code and ends the program with status 2. */
static int check(int error)
{
    if (error != REDLOCK_OK) {
        printf("%s\n", redlock_error_name(error));
        exit(2);
    }
    return error;
}

/* Runs the client's loop until the last operation has ended, or nothing happens for 10 s. */
static void run_loop(redlock_t *rl)
{
    struct pollfd fd = {redlock_get_fd(rl), POLLIN, 0};

    while (!finished && poll(&fd, 1, 10000) > 0)
        check(redlock_process(rl));
}

/* Makes the calls that lead to the callback of the case. */
static void run(redlock_t *rl)
{
    redlock_opts_t opts = redlock_opts(1000);

    if (which == "body") {
        check(redlock_with(rl, "exceptions", &opts, nullptr, nullptr, body, nullptr));
        return;
    }
    if (which.compare(0, 5, "event") == 0)
        opts.wait_ms = 10000;
    check(redlock_acquire_start(rl, "exceptions", &opts, on_done, nullptr));
    if (which == "done-in-free")
        return;
    if (which == "shutdown")
        check(redlock_shutdown_start(rl, 0, on_shut_down, nullptr));
    if (which == "event-on-the-thread")
        pause();
    run_loop(rl);
}

/* Creates a client of the servers in REDLOCK_SERVERS, uses it and frees it. */
static void use_client()
{
    const redlock_allocator_t allocator = {sizeof allocator, allocate, reallocate, deallocate,
                                           nullptr};
    redlock_config_t *config = nullptr;
    redlock_t *rl = nullptr;

    check(redlock_config_new(&config, &allocator));
    check(redlock_config_add_nodes(config, getenv("REDLOCK_SERVERS")));
    check(redlock_config_set_mode(config, mode_of_case()));
    check(redlock_config_set_event(config, on_event, nullptr));
    check(redlock_config_set_log(config, REDLOCK_LOG_DEBUG, on_log, nullptr));
    check(redlock_new(&rl, config));
    redlock_config_free(config);
    try {
        run(rl);
    } catch (const std::exception &) {
        printf("redlock_process: %s\n", redlock_error_name(redlock_process(rl)));
        throw;
    }
    redlock_free(rl);
}

/* Runs the case in the first argument. Exits with 42 where the C++ runtime ends the program. */
int main(int, char **argv)
{
    which = argv[1];
    std::set_terminate([] { _exit(42); });
    try {
        use_client();
    } catch (const std::exception &caught) {
        printf("passed through the library: %s\n", caught.what());
        return 1;
    }
    return 0;
}
