// SPDX-License-Identifier: Apache-2.0
// What the perftest tools (version 5.70 and later) tell each other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "host_driver/gid_rules.h"
#include "testbenches/serve/perftest/conversation.h"

namespace rnic::serve::perftest {

/// One queue pair and the memory behind it, as the tools tell each other.
struct destination {
  std::uint16_t lid = 0;    ///< RoCE has none
  std::uint32_t reads = 1;  ///< READs and atomics that its responder takes at a time
  std::uint32_t qpn = 0, psn = 0, rkey = 0;
  std::uint64_t address = 0;
  host_driver::gid_bytes gid{};
  std::uint32_t srqn = 0;
};
// Over TCP 107 characters, with a zero behind them on the line; over a connection of rdma_cm a structure of C,
// big-endian, with 4 bytes of nothing before the address and an index of the sender's at its end.
std::string to_text(const destination& d);
std::optional<destination> parse_destination(const std::string& text);
std::string to_bytes(const destination& d);
destination destination_of(const std::string& bytes);

/// What a bandwidth test reports.
struct report {
  std::uint64_t size = 0, iterations = 0;  ///< bytes of a message; messages of a queue pair
  double peak = 0, average = 0;            ///< 2^20 bytes per second
  double rate = 0;                         ///< 10^6 messages per second
};

/// The steps of the conversation. In each both sides tell the same kind of thing, the client first; so both must take
/// the same steps. In an SC_THREAD; what goes wrong is a peer_failure.
class exchange {
 public:
  exchange(std::unique_ptr<conversation> peer, bool client) : peer_(std::move(peer)), client_(client) {}
  /// Called every few milliseconds while a peer at work is waited for; what it throws ends that.
  void set_meanwhile(std::function<void()> look) { meanwhile_ = std::move(look); }
  bool peer_closed() { return peer_->peer_closed(); }
  /// "speaks perftest 6.28, this host 6.06" after agree(), when they are not the same; else nothing.
  const std::string& versions() const { return versions_; }

  /// What both can do.
  struct agreement {
    std::uint32_t cycle_bytes = 4096;  ///< memory through which short messages go in turns
    std::uint32_t line_bytes = 64;     ///< of a cache line: where messages begin
    unsigned mtu = 1024;
  };
  /// The tools understand each other from version 5.70 on; the failure of an older one names both.
  agreement agree(const agreement& own);
  /// `at_work`: the peer runs the test before it tells; waits as long as it is there.
  destination tell(const destination& own, bool at_work = false);
  report tell(const report& own);  ///< waits as for a peer at work
  void end(const destination& own);
  /// Nothing more will be said.
  void close() { peer_->end(client_); }

 private:
  static constexpr std::size_t text_bytes = 108, version_bytes = 16;
  std::string swap(const std::string& own, const char* what, bool at_work = false);
  std::uint64_t swap(std::uint64_t own, std::size_t bytes, const char* what, bool at_work = false);
  double swap(double own, const char* what);
  void agree_on_version();
  std::string in_brackets() const;

  std::unique_ptr<conversation> peer_;
  bool client_;
  std::function<void()> meanwhile_;
  std::string versions_;
};

}  // namespace rnic::serve::perftest
