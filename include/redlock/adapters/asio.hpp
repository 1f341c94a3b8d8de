/* SPDX-License-Identifier: MIT
 * Adapter for Asio: an io_context drives a client in embedded or hybrid mode. C++11. It uses
 * Boost.Asio (1.74 or later), or Asio without Boost (1.18 or later) if ASIO_STANDALONE is defined.
 * Not part of redlock.h.
 *
 *     redlock::asio_adapter adapter(context);
 *     int rc = adapter.attach(rl);
 *     context.run(); // callbacks run in it
 *     adapter.detach(); // before redlock_free(rl)
 *
 * The destructor detaches, too.
 *
 * Since 0.2.0. */
#ifndef REDLOCK_ADAPTERS_ASIO_HPP
#define REDLOCK_ADAPTERS_ASIO_HPP

#ifdef ASIO_STANDALONE
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#else
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#endif
#include <memory>
#include <redlock/redlock.h>
#include <utility>

namespace redlock
{

/* Connects one client with one io_context. It may be moved; all its functions and the io_context
 * run on one thread at a time (on several threads: give it the executor of a strand). */
class asio_adapter
{
#ifdef ASIO_STANDALONE
    using descriptor = ::asio::posix::stream_descriptor;
    using error_code = ::asio::error_code;
    using io_context = ::asio::io_context;
#else
    using descriptor = ::boost::asio::posix::stream_descriptor;
    using error_code = ::boost::system::error_code;
    using io_context = ::boost::asio::io_context;
#endif

  public:
    using executor_type = descriptor::executor_type;

    /* Creates an adapter without a client. context, executor: where callbacks run; the io_context
     * must outlive the adapter. */
    explicit asio_adapter(io_context &context) : asio_adapter(context.get_executor())
    {
    }
    explicit asio_adapter(const executor_type &executor) : state_(std::make_shared<state>(executor))
    {
    }

    asio_adapter(asio_adapter &&) noexcept = default;

    /* Detaches this adapter and takes over the other one's client. */
    asio_adapter &operator=(asio_adapter &&other) noexcept
    {
        if (this != &other) {
            detach();
            state_ = std::move(other.state_);
        }
        return *this;
    }

    /* Detaches the adapter. */
    ~asio_adapter()
    {
        detach();
    }

    /* Has the io_context drive a client: from now on it waits for the client's descriptor and runs
     * redlock_process(), so callbacks run in run(). The waiting keeps run() running. Never waits
     * itself. After a failure the adapter is as before.
     *
     * rl: in embedded or hybrid mode; borrowed until the adapter is detached.
     * EINVAL: rl is NULL, or the adapter is attached already, or was moved from.
     * EMODE: threaded mode.
     * EFORKED.
     * ESYS: Asio cannot wait for the descriptor. */
    int attach(redlock_t *rl)
    {
        if (!state_ || state_->rl != nullptr)
            return REDLOCK_EINVAL;
        int fd = redlock_get_fd(rl);
        if (fd < 0)
            return fd;
        error_code error;
        state_->fd.assign(fd, error);
        if (error)
            return REDLOCK_ESYS;
        state_->rl = rl;
        wait(state_, ++state_->attachment);
        return REDLOCK_OK;
    }

    /* Ends what attach() has begun; does nothing without a client. To be called before
     * redlock_free(); also in a callback. Never waits. */
    void detach() noexcept
    {
        if (state_)
            release(*state_);
    }

  private:
    /* What the adapter shares with the wait that is under way. */
    struct state {
        explicit state(const executor_type &executor) : fd(executor)
        {
        }
        descriptor fd;           /* the client's descriptor, while rl is not NULL */
        redlock_t *rl = nullptr; /* borrowed; NULL: not attached */
        unsigned attachment = 0; /* number of the last attach(): earlier waits end */
    };

    /* Ends the wait and gives the descriptor back, which belongs to the client. */
    static void release(state &attached) noexcept
    {
        if (attached.rl == nullptr)
            return;
        attached.rl = nullptr;
        attached.fd.release();
    }

    /* Waits until the descriptor is readable, runs redlock_process(), and waits again. Ends if that
     * fails, which it does in a forked child, or if the adapter is detached meanwhile, also if it
     * is attached again. */
    static void wait(const std::shared_ptr<state> &attached, unsigned attachment)
    {
        attached->fd.async_wait(descriptor::wait_read, [=](const error_code &error) {
            if (error || !is_attached(*attached, attachment))
                return;
            if (redlock_process(attached->rl) != REDLOCK_OK)
                release(*attached);
            else if (is_attached(*attached, attachment))
                wait(attached, attachment);
        });
    }

    /* Returns whether this attachment is the present one. */
    static bool is_attached(const state &attached, unsigned attachment)
    {
        return attached.rl != nullptr && attached.attachment == attachment;
    }

    std::shared_ptr<state> state_; /* NULL: moved from */
};

} // namespace redlock

#endif
