// SPDX-License-Identifier: Apache-2.0
// What a processing unit knows of the bytes of a send queue that are on chip, or on their way.
#pragma once

#include <cstdint>

#include "model/icm/contexts.h"
#include "model/transport/requester/descriptor_fetch.h"
#include "model/transport/requester/descriptor_memory.h"

namespace rnic::transport {

/// Registers of a unit beside its part of the descriptor memory, which holds one stretch of one send queue: `held()`
/// bytes from a WQE on, and behind them what was asked for. Places are bytes of that part.
class descriptor_window {
 public:
  using context = icm::requester_context;

  /// `unit`: whose part of the memory it is. To be called once.
  void attach(const descriptor_memory& memory, unsigned unit) {
    bytes_ = memory.read(unit);
    unit_ = static_cast<std::uint8_t>(unit);
  }

  bool is_of(std::uint32_t qpn) const { return qpn_ == qpn; }
  std::uint32_t held() const { return held_; }
  const std::uint8_t* at(std::uint32_t place) const { return bytes_ + place; }
  std::uint32_t place_of(const context& c, std::uint32_t index) const { return (index - index_) << c.log_sq_stride; }
  /// The first bytes of WQE `index` are here.
  bool holds(const context& c, std::uint32_t index) const { return reaches(c, index, held_); }
  /// What was asked for, and has not come, begins in WQE `index` or behind it, or has its first bytes.
  bool awaits(const context& c, std::uint32_t index) const { return under_way() && reaches(c, index, end_); }
  /// The header at `place` is that of a WQE which software has handed over.
  bool posted(const context& c, std::uint32_t place) const;
  /// The queue ends at `place`: its header is software's, and was read since the last age().
  bool ends_at(const context& c, std::uint32_t place) const { return place >= stale_ && !posted(c, place); }
  /// All headers from `place` to the end of what is held are those of WQEs.
  bool goes_on_behind(const context& c, std::uint32_t place) const;

  /// Holds nothing of any queue pair. What is on its way is nobody's.
  void forget();
  /// The queue pair has got a grant by doorbell: what was read before it does not say where the queue ends.
  void age() { stale_ = under_way() ? end_ : held_; }
  /// Wants `bytes` from WQE next_wqe on, in the place of what is held.
  void begin(const context& c, std::uint32_t bytes);
  /// Wants what is behind the held bytes, up to `end`. Nothing is on its way.
  void extend(std::uint32_t end);
  /// An extension that descriptor fetch has not taken is given up.
  void give_up();
  /// Not handed to descriptor fetch yet.
  bool wants() const { return state_ == state::wanted; }
  bool under_way() const { return state_ != state::idle; }
  /// Descriptor fetch has it, and will tell how it ended.
  bool asked() const { return state_ == state::asked; }
  /// For descriptor fetch.
  descriptor_job job(const context& c, sim::span_id span);
  /// False: it is of a stretch that was given up.
  bool take(const descriptor_result& r);
  /// How the last one ended: an extension keeps what is held when it fails.
  bool extended() const { return extending_; }
  bool failed() const { return failed_; }
  bool begins_with(std::uint32_t index) const { return index_ == index; }

 private:
  enum class state : std::uint8_t { idle, wanted, asked };
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};
  bool reaches(const context& c, std::uint32_t index, std::uint32_t end) const {
    const std::uint32_t ahead = index - index_;
    return qpn_ == c.qpn && ahead < descriptor_memory::unit_bytes && ahead << c.log_sq_stride < end;
  }

  const std::uint8_t* bytes_ = nullptr;
  std::uint32_t qpn_ = nobody, index_ = 0;  // WQE that it begins with
  std::uint32_t held_ = 0, end_ = 0;        // bytes; with what was asked for
  std::uint32_t stale_ = 0;                 // the first ones were read before the last grant by doorbell
  std::uint32_t generation_ = 0;
  std::uint8_t unit_ = 0;
  state state_ = state::idle;
  bool extending_ = false, failed_ = false;
};

/// Bytes of the ring that a WQE takes.
std::uint32_t ring_bytes(const icm::requester_context& c, unsigned size);
/// Of `want` bytes from a place of the ring on: no more than the ring or a unit's memory has.
std::uint32_t longest_read(const icm::requester_context& c, std::uint32_t want);

}  // namespace rnic::transport
