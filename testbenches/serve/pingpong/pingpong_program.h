// SPDX-License-Identifier: Apache-2.0
// What the ping-pong programs have in common, whatever their queue pairs are.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <systemc>

#include "testbenches/serve/pingpong/pingpong.h"

namespace rnic::serve {

/// What ibv_xsrq_pingpong says.
inline constexpr std::size_t xsrq_message_bytes = 66;

/// Hands completions to `take` until as many messages as asked for are sent and received.
template <class Take>
void exchange_all(host_driver::device& device, ibv_cq* cq, const pingpong_options& o, const pingpong_result& r,
                  Take take) {
  std::array<ibv_wc, 8> done{};
  while (r.received < o.iterations || r.sent < o.iterations) {
    const int n = device.wait_cq(cq, static_cast<int>(done.size()), done.data(), o.patience_ps);
    hosts::require(n, "poll_cq");
    if (n == 0) throw peer_failure("the peer does not send any more");
    for (int i = 0; i < n; ++i) take(done[static_cast<std::size_t>(i)]);
  }
}

/// A message of a tool that sends zeroes.
inline void check_zeroes(const ibv_wc& wc, const app_buffer& buffer, std::uint32_t size, pingpong_result& r) {
  if (wc.byte_len != size)
    throw peer_failure(fmt::format("a message of {} bytes came instead of {}", wc.byte_len, size));
  r.wrong_bytes += static_cast<std::uint64_t>(
      std::count_if(buffer.at(), buffer.at(size), [](std::uint8_t byte) { return byte != 0; }));
}

/// One run of a program against one peer. Afterwards the program stays for a while: a peer that missed an
/// acknowledgement asks again.
template <class Program>
pingpong_result run_program(served_host& host, address_exchange& exchange, const pingpong_options& options) {
  pingpong_result r;
  Program program(host, exchange, options);
  try {
    program.run(r);
    r.ok = r.wrong_bytes == 0;
    if (!r.ok) r.error = fmt::format("{} bytes arrived changed", r.wrong_bytes);
    sc_core::wait(sc_core::sc_time::from_value(linger_ps));
  } catch (const peer_failure& e) {
    r.error = e.what();
  }
  return r;
}

}  // namespace rnic::serve
