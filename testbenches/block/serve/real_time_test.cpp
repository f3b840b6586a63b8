// SPDX-License-Identifier: Apache-2.0
// Simulation and sockets share one thread, whatever one of them has to do.
#include "testbenches/serve/links/real_time.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <systemc>

namespace rnic::serve {
namespace {

using std::chrono::steady_clock;

struct bench {
  void stop_after(std::chrono::milliseconds real) {
    end.expires_after(real);
    end.async_wait([this](const boost::system::error_code&) { clock.stop(); });
  }
  boost::asio::io_context io;
  sim::timebase base;
  real_time clock{base, io};
  boost::asio::steady_timer end{io};
};

TEST(real_time, handlers_that_never_end_hold_up_neither_timers_nor_the_simulation) {
  bench b;
  const auto started = steady_clock::now();
  bool timer = false;
  boost::asio::steady_timer soon(b.io, std::chrono::milliseconds(20));
  soon.async_wait([&](const boost::system::error_code&) { timer = true; });
  sc_core::sc_spawn([&] {
    for (unsigned events = 0; events < 20 || !timer; ++events) sc_core::wait(1, sc_core::SC_MS);
    b.clock.stop();
  });
  std::function<void()> flood = [&] {
    if (steady_clock::now() - started < std::chrono::seconds(8)) boost::asio::post(b.io, flood);
  };
  flood();
  b.clock.start_clock();
  b.clock.run();
  EXPECT_LT(steady_clock::now() - started, std::chrono::seconds(6));
}

TEST(real_time, time_that_is_lost_is_told_when_it_is) {
  bench b;
  std::uint64_t told = 0;
  b.clock.when_lost([&](std::uint64_t us) { told += us; });
  sc_core::sc_spawn([] {
    for (;;) sc_core::wait(1, sc_core::SC_MS);
  });
  boost::asio::steady_timer late(b.io, std::chrono::milliseconds(20));
  late.async_wait([](const boost::system::error_code&) {  // the machine stands still
    const auto until = steady_clock::now() + std::chrono::milliseconds(100);
    while (steady_clock::now() < until) {
    }
  });
  b.clock.start_clock();
  b.stop_after(std::chrono::milliseconds(200));
  b.clock.run();
  EXPECT_GT(told, 50'000u);
  EXPECT_GE(b.clock.lost_us(), told);
}

}  // namespace
}  // namespace rnic::serve
