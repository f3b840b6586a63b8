// SPDX-License-Identifier: Apache-2.0
// Packets of READ responses whose payload is on its way from host memory.
#pragma once

#include <cstdint>
#include <vector>

#include "model/icm/translation_if.h"
#include "model/payload/frame.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/ring.h"
#include "model/transport/responder/types.h"

namespace rnic::transport {

/// Part of the READ generator: translation and reads of a response packet's bytes, straight into its frame; translation
/// of an atomic's. One that
/// nobody wants any more keeps its place until memory has answered what it was asked for.
class read_gathers {
 public:
  struct packet {
    payload::frame_ptr frame;
    std::uint32_t offset = 0, length = 0;         ///< in the response, bytes
    std::uint16_t job = no_link, next = no_link;  ///< job: none when free, or wanted by nobody
    std::uint16_t flow = no_link, function = 0;
    std::uint32_t key = 0;
    sim::span_id span = 0;
    std::uint8_t open = 0;  ///< translation, a place in the queue of reads, and reads under way
    bool translating = false, dropped = false;
    bool address_only = false;  ///< of an atomic, which is read elsewhere
    std::uint8_t nak = 0, event = 0;
    icm::translate_response where;
    unsigned next_segment = 0;
  };

  read_gathers(sim::clocked_block& owner, unsigned places, payload::frame_pool& frames, icm::translate_port& translate,
               pcie::dma_port& read);

  bool full() const { return free_.empty(); }
  packet& operator[](std::uint16_t g) { return packets_[g]; }
  const packet& operator[](std::uint16_t g) const { return packets_[g]; }
  payload::frame_ptr frame() { return frames_.get(); }
  /// A place with an empty frame. Not while full().
  std::uint16_t begin();
  /// Asks where its bytes are; a request must be possible. `q`: all but the tag.
  void translate(std::uint16_t g, icm::translate_request q);
  /// They are there: it stands in the queue of reads.
  void found(std::uint16_t g, const icm::translate_response& where);
  void free(std::uint16_t g);

  /// In each tick. The place that something has happened to, or no_link.
  std::uint16_t take_address();
  std::uint16_t take_memory(const pcie::dma_response& r);
  /// One read of the first in the queue.
  std::uint16_t read();

  /// Whether something translated under `key` may still touch memory.
  bool uses_key(std::uint32_t key) const;

 private:
  sim::clocked_block& owner_;
  payload::frame_pool& frames_;
  icm::translate_port& translate_;
  pcie::dma_port& dma_;
  std::vector<packet> packets_;
  std::vector<std::uint16_t> free_;
  sim::ring<std::uint16_t> reading_;
};

}  // namespace rnic::transport
