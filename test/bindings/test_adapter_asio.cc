/* SPDX-License-Identifier: MIT
 * The adapter for Asio, in the cases of adapter_cases.h. Compiled with Boost.Asio, and with
 * ASIO_STANDALONE. */
#include "adapter_cases.h"

#include <chrono>
#include <redlock/adapters/asio.hpp>
#ifdef ASIO_STANDALONE
#include <asio/steady_timer.hpp>
namespace net = asio;
#define NAME "asio"
#else
#include <boost/asio/steady_timer.hpp>
namespace net = boost::asio;
#define NAME "boost_asio"
#endif

static net::io_context *context;
static redlock::asio_adapter *adapter;

/* Creates the loop. The adapter is moved, so that the moved one is under test. */
static void loop_open()
{
    context = new net::io_context(1);
    redlock::asio_adapter first(*context);
    adapter = new redlock::asio_adapter(std::move(first));
}

static int loop_attach(redlock_t *rl)
{
    return adapter->attach(rl);
}

static void loop_detach()
{
    adapter->detach();
}

static void loop_run(uint64_t limit_ms)
{
    net::steady_timer timer(*context, std::chrono::milliseconds(limit_ms));
    timer.async_wait([](const auto &error) {
        if (!error)
            context->stop();
    });
    context->restart();
    context->run();
    timer.cancel();
}

static void loop_stop()
{
    context->stop();
}

static void loop_close()
{
    delete adapter;
    delete context;
}

const struct adapter_loop adapter_loop = {NAME,     loop_open, loop_attach, loop_detach,
                                          loop_run, loop_stop, loop_close};

int main()
{
    return adapter_main();
}
