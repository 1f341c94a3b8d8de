/* SPDX-License-Identifier: MIT
 * transfer FROM TO: moves an amount between two accounts under one lock on both, in C++17.
 *
 * The lock is extended while the work lasts, and a flag is set if it is lost. Before the effect,
 * the program checks that the lock is held for long enough.
 *
 * The servers come from REDLOCK_SERVERS. Exit status: 0 done; 75 another client held one of the
 * accounts for the whole wait; 69 another error of the lock, such as no quorum; 1 the lock was lost
 * or too little time was left, and nothing was done; 64 wrong arguments.
 *
 *     c++ -std=c++17 transfer.cc $(pkg-config --cflags --libs redlock) -o transfer
 *     redlock sandbox -- ./transfer alice bob */
#include <redlock/redlock.hpp>

#include <atomic>
#include <cstdlib>
#include <iostream>

using namespace std::chrono_literals;

static constexpr auto margin = 1s; /* longer than the effect can take */

/* Moves the amount while both accounts are locked. Returns the exit status. */
static int transfer(redlock::client &client, const std::string &from, const std::string &to)
{
    auto lost = std::make_shared<std::atomic_bool>(false); /* shared with a thread of the library */
    redlock::options opts(10s);
    opts.wait = 2s;
    opts.auto_extend = true;
    opts.on_lost = [lost] { *lost = true; };

    return redlock::with(client, {"account:" + from, "account:" + to}, opts, [&](auto &lock) {
        std::cout << "both accounts are held for " << lock.valid_for().count() << " ms\n";
        /* ... prepare what has no effect outside this process, and stop early if *lost ... */
        if (*lost || !lock.owns_lock(margin)) {
            std::cerr << "too late: nothing was done\n";
            return 1;
        }
        std::cout << "moved from " << from << " to " << to << "\n";
        return 0;
    });
}

/* Creates the client, makes the transfer and shuts the client down. */
int main(int argc, char **argv)
{
    const char *servers = std::getenv("REDLOCK_SERVERS");
    if (argc != 3 || !servers) {
        std::cerr << "usage: transfer FROM TO, with REDLOCK_SERVERS set\n";
        return 64;
    }
    try {
        redlock::client client(servers);
        const int status = transfer(client, argv[1], argv[2]);
        std::error_code ignored; /* a delete that was not sent: the key expires */
        client.shutdown(1s, ignored);
        return status;
    } catch (const redlock::error &error) {
        std::cerr << error.what() << "\n"; /* the line of the report: which server said what */
        return error.code() == redlock::errc::contended ? 75 : 69;
    }
}
