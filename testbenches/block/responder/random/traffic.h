// SPDX-License-Identifier: Apache-2.0
// What the peers send.
#pragma once

#include <cstdint>
#include <vector>

#include "testbenches/block/responder/random/peers.h"
#include "testbenches/block/responder/random/reference.h"

namespace rnic::transport::random_test {

/// What one peer sends to its queue pair: messages of all kinds, repetitions, packets that are lost or wrong. It
/// follows the reference, as a requester follows answers: mostly what comes next is what is expected.
class peer_program {
 public:
  /// `hostile`: much of it is wrong.
  peer_program(const setup& with, const queue_pair& q, reference& follows, dice& d, bool hostile);

  /// Makes all of its frames, and the reference takes them.
  void fill(peers::stream& s, payload::frame_pool& frames);

 private:
  enum class verb : std::uint8_t { send, write, read, atomic };
  enum class ending : std::uint8_t { plain, immediate, invalidate };
  struct message {
    verb what = verb::send;
    ending end = ending::plain;
    std::uint32_t sent = 0;  // bytes
    octets bytes;
    wire::reth reth;
    std::uint32_t immediate = 0, invalidated = 0;
  };
  struct attempt {
    request packet;
    bool repeated = false, needs_place = false;
  };

  void plain_frame(outgoing& o, payload::frame_pool& frames);
  bool next_request(outgoing& o, payload::frame_pool& frames);
  attempt draw();
  void follow(const attempt& a, bool was_accepted);

  request repetition();
  request datagram(request r);
  void begin_message();
  void choose_range(std::uint32_t length);
  request part_of_message(request r) const;
  request read(request r);
  request atomic(request r);
  void choose_shared_queue(request& r);
  void spoil(attempt& a);
  bool in_message() const { return follows_.of(q_).under_way != reference::state::message::none; }

  const setup& with_;
  const queue_pair& q_;
  reference& follows_;
  dice& dice_;
  const bool hostile_;
  message message_;
  std::vector<request> accepted_;
  std::uint32_t shared_queue_ = 0;  // XRC: that of the message
};

/// Traffic of all queue pairs.
void make_traffic(const setup& with, reference& follows, dice& d, peers& to, payload::frame_pool& frames);

}  // namespace rnic::transport::random_test
