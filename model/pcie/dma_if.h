// SPDX-License-Identifier: Apache-2.0
// How the blocks of the adapter reach host memory.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "model/payload/frame.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"

namespace rnic::pcie {

/// One read or write of host memory, any alignment, 1 byte to 2^31. The DMA engine splits it at the maximum read
/// request or payload size and at 4 KiB boundaries.
///
/// Order: requests of one client are started in the order of the channel. Writes of all clients reach host memory in
/// the order in which the engine started them (PCIe posted order); a client that needs another client's write to come
/// after its own asks for `notify` and passes the word on. A read does not wait for earlier writes of other clients.
struct dma_request {
  enum class kind : std::uint8_t { read, write };
  kind op = kind::read;
  bool notify = false;         ///< write: answer when the last packet has entered the posted queue
  std::uint16_t function = 0;  ///< 0 = physical function, n = virtual function n
  std::uint32_t length = 0;
  std::uint64_t address = 0;             ///< bus address
  std::uint64_t tag = 0;                 ///< given back in the answer
  std::uint8_t* destination = nullptr;   ///< read: on-chip buffer, filled as completions arrive
  const std::uint8_t* source = nullptr;  ///< write: bytes, which stay as they are until the engine has sent them;
                                         ///< nullptr: `bytes`
  payload::frame_ptr keep;               ///< write: frame that `source` points into, kept alive by the request
  std::array<std::uint8_t, 64> bytes{};  ///< write of up to 64 bytes by value
  sim::span_id span = 0;

  /// Over a request of before, in its place: as good as a new one, but for `bytes`.
  void renew(kind of) {
    op = of;
    notify = false;
    function = 0;
    length = 0;
    address = tag = 0;
    destination = nullptr;
    source = nullptr;
    keep.reset();
    span = 0;
  }
  /// Becomes `r`, whose frame it takes over; `bytes` where they are what is written.
  void take(dma_request& r) {
    op = r.op;
    notify = r.notify;
    function = r.function;
    length = r.length;
    address = r.address;
    tag = r.tag;
    destination = r.destination;
    source = r.source;
    keep = std::move(r.keep);
    if (source == nullptr) bytes = r.bytes;
    span = r.span;
  }
};

enum class dma_status : std::uint8_t { ok, unsupported_request, completer_abort, timeout, poisoned };

struct dma_response {
  std::uint64_t tag = 0;
  dma_status status = dma_status::ok;
};

/// A client's end of its pair of channels.
struct dma_port {
  explicit dma_port(sim::clocked_block& owner) : request(owner), response(owner) {}
  sim::fifo_out<dma_request> request;
  sim::fifo_in<dma_response> response;
};

/// Interrupt message: in order with the writes that were started before it.
struct msix_request {
  std::uint16_t function = 0;
  std::uint16_t vector = 0;
};

/// A write to one of the adapter's BARs, as the PCIe endpoint hands it to doorbell (BAR2) or command (BAR0).
/// Up to 64 bytes: processors combine stores to BlueFlame pages into whole lines.
struct mmio_write {
  std::uint16_t function = 0;
  std::uint64_t offset = 0;  ///< in the BAR
  std::uint32_t length = 0;
  std::array<std::uint8_t, 64> data{};
  sim::span_id span = 0;
};

/// Registers that software reads through a BAR. The endpoint asks in its own tick and answers the completion after its
/// latency; a register file never blocks. 4 or 8 bytes, naturally aligned, big-endian content as in memory order.
class register_file_if {
 public:
  virtual ~register_file_if() = default;
  virtual std::uint32_t read32(std::uint16_t function, std::uint64_t offset) = 0;
};

}  // namespace rnic::pcie
