// SPDX-License-Identifier: Apache-2.0
// The stream of rdma-core's rsockets (librdmacm/rsocket.c, version 1): WRITEs with immediate data into a buffer of two
// halves that the receiver gives away in turns, and credits for its receives.
#pragma once

#include <cstdint>
#include <deque>

#include "testbenches/serve/cm/rdma_connection.h"
#include "testbenches/serve/host/application.h"

namespace rnic::serve {

/// One end. In an SC_THREAD; what goes wrong with the peer is a peer_failure.
class rsocket_stream {
 public:
  /// The connection is prepared, and knows what to tell the peer.
  rsocket_stream(served_host& host, cm_service& service, const rdma_route& route);
  rdma_connection& connection() { return connection_; }
  /// The connection is there: takes what the peer told.
  void open();
  /// Returns when all is posted; `bytes` any number.
  void send(const std::uint8_t* data, std::size_t bytes);
  void receive(std::uint8_t* data, std::size_t bytes);
  /// Everything that was sent has arrived; then both directions end, and the connection.
  void shut_down();

 private:
  static constexpr unsigned queue = 384, controls = 4;  // messages; as the library's
  static constexpr std::uint32_t half = 1u << 17, ring = 2 * half, place_bytes = 16;
  struct place {
    std::uint64_t address = 0;
    std::uint32_t key = 0, length = 0;
  };
  place target(unsigned slot) const;
  void set_target(unsigned slot, const place& p) const;
  bool can_send() const;
  void post_message(std::uint64_t id, std::uint32_t word, std::uint64_t to, std::uint32_t key, const ibv_sge& from);
  void look();
  void heard(const ibv_wc& wc);
  void give_credits();
  void consumed(std::uint32_t bytes);

  host_driver::device& device_;
  verbs_objects objects_;
  host_driver::completion_queue* cq_ = nullptr;
  host_driver::queue_pair* qp_ = nullptr;
  app_buffer out_, in_, targets_, control_;  // targets_: where the peer says that there is room, two places
  place peer_targets_;                       // and where we say it
  unsigned peer_slot_ = 1, slot_ = 0;
  std::uint32_t out_at_ = 0, out_free_ = ring;
  std::uint32_t in_at_ = 0, in_there_ = 0, freed_ = half, free_at_ = half;
  std::deque<std::uint32_t> messages_;  // received ones, what is left of each
  std::uint16_t sent_ = 0, allowed_ = 0, taken_ = 0, credits_at_ = queue / 2;
  unsigned room_ = queue - controls, controls_ = controls, next_control_ = 0;
  bool ended_ = false, leaving_ = false;  // by the peer; by us
  rdma_connection connection_;
};

}  // namespace rnic::serve
