// SPDX-License-Identifier: Apache-2.0
// Two hosts that exchange plain frames over raw packet queue pairs, driven from one program.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/two_nodes.h"
#include "testbenches/system/ethernet/frames.h"

namespace rnic::system_test {

inline constexpr std::uint64_t station_us = sim::ps_per_us;
using frames::bytes;

/// A received frame and what its completion says.
struct arrival {
  ibv_wc wc{};
  host_driver::ethernet_receive plain;
  bytes frame;
};

/// What a send request asks for.
struct send_options {
  unsigned flags = IBV_SEND_SIGNALED;
  std::uint16_t tci = 0;
  std::vector<std::uint32_t> cuts;  ///< where the frame is cut into segments of the request
  std::uint64_t id = 1;
};

/// A raw packet queue pair with memory of its own for what it sends and receives.
class station {
 public:
  struct options {
    unsigned receives = 16;
    unsigned receive_bytes = 10240;
    unsigned receive_sges = 1;
    unsigned inline_bytes = 0;
    host_driver::queue_pair::ethernet_options ethernet;
    const std::uint32_t* qpn = nullptr;
    ibv_pd* pd = nullptr;  ///< nullptr: one of its own
    ibv_cq* receive_cq = nullptr;
    bool start = true;
  };
  station(hosts::endpoint& at, const options& o);
  explicit station(hosts::endpoint& at) : station(at, options{}) {}

  host_driver::device& dev() const { return *at_.device; }
  host_driver::queue_pair* qp() const { return qp_; }
  hosts::endpoint& at() { return at_; }
  const hosts::buffer& send_buffer() const { return sends_; }

  void to_rts();
  void post_receives(unsigned count);
  /// Copies the frame into the send buffer and posts it.
  void send(const bytes& frame, const send_options& o = {});
  void send_segmented(const bytes& header, const bytes& body, unsigned mss, const send_options& o = {});
  int post(ibv_send_wr& wr);
  ibv_wc wait_sent();
  /// The next frame; a test failure when there is none within `timeout_ps`.
  arrival receive(std::uint64_t timeout_ps = 100 * station_us);
  /// A frame that has arrived; without bytes when there is none.
  arrival poll();
  /// Nothing arrives for a while.
  bool silent();
  ibv_qp_state state() const;
  /// A rule for this address (IBV_FLOW_ATTR_NORMAL), or of another type without one.
  host_driver::steering_flow* steer(const bytes& mac, ibv_qp* to = nullptr);
  host_driver::steering_flow* steer_all(ibv_flow_attr_type type);

 private:
  arrival take(ibv_wc wc, const host_driver::ethernet_receive& plain);

  hosts::endpoint at_;
  options options_;
  host_driver::completion_queue *send_cq_ = nullptr, *receive_cq_ = nullptr;
  host_driver::queue_pair* qp_ = nullptr;
  hosts::buffer sends_, receives_;
  unsigned next_receive_ = 0, next_send_ = 0;
};

/// Runs `body` after both drivers have opened their devices.
void run_stations(hosts::two_nodes& system, const std::function<void()>& body);
inline hosts::two_nodes_config station_system() {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  return c;
}
/// Sum over both adapters of the counters whose names end in `part`; throws when there are none.
std::uint64_t tally(hosts::two_nodes& system, const std::string& part);

/// Addresses of the frames in frames.h.
inline const bytes frames_destination{2, 0, 0, 0, 0x0b, 1};
inline const bytes broadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
/// `frame` as it is on a wire: not shorter than 60 bytes.
bytes padded(bytes frame);
bytes with_destination(bytes frame, const bytes& mac);

}  // namespace rnic::system_test
