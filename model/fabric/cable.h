// SPDX-License-Identifier: Apache-2.0
// A cable between two connectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/payload/frame_port.h"
#include "model/sim/crossing.h"
#include "model/sim/span.h"
#include "model/sim/types.h"

namespace rnic::fabric {

/// Says what happens to a frame on the way: for tests of loss and damage.
class cable_fault_if {
 public:
  enum class fate : std::uint8_t { pass, lose };
  virtual ~cable_fault_if() = default;
  /// `from` as in frame_observer_if. May change the bytes or the FCS of `f` (its length must stay in the buffer).
  virtual fate on_frame(unsigned from, payload::frame& f) = 0;
};

/// A device in the middle of a cable: frames enter it and go on from it now, later, changed, more than once or never.
class cable_element_if {
 public:
  virtual ~cable_element_if() = default;
  /// Where the frames of end `from` go on to, at times that do not decrease. Called once for each end.
  virtual void connect(unsigned from, payload::frame_sink_if& onward) = 0;
  /// A frame of end `from`, `last_bit` in the future; both ends without order between them.
  virtual void enter(unsigned from, payload::frame_ptr frame, sim::time_ps last_bit) = 0;
};

/// Full-duplex point-to-point link without state: delivers each frame when its last bit is at the other end. The
/// connectors must outlive it and take frames only while it exists.
class cable {
 public:
  struct config {
    std::uint32_t metres = 3;            ///< direct attach copper (calibration 5, latency budget)
    std::uint32_t ps_per_metre = 5'050;  ///< 5.05 ns/m (calibration 5)
    std::uint32_t hop_ps = 0;            ///< of a cut-through switch on the way that has nothing else to do
  };

  cable(payload::frame_port_if& first, payload::frame_port_if& second) : cable(first, second, config{}) {}
  cable(payload::frame_port_if& first, payload::frame_port_if& second, const config& cfg);
  cable(const cable&) = delete;
  cable& operator=(const cable&) = delete;

  /// Where an observer looks: at what was sent, or behind the element that was inserted.
  enum class tap : std::uint8_t { before, behind };
  /// Observers must outlive the traffic. Behind an element, times are those at which a frame would have been sent to
  /// arrive as it does.
  void add_observer(payload::frame_observer_if& observer, tap where = tap::before) {
    (where == tap::before ? observers_ : behind_).push_back(&observer);
  }
  /// Puts a device into the cable, before the traffic; it must outlive it. At most one.
  void insert(cable_element_if& element);
  /// Messages' spans tell of their time on the cable from now on, as stage "cable" of a block "FIRST_to_SECOND" or
  /// "SECOND_to_FIRST"; else it is part of what the receiver's port tells.
  void follow(sim::span_recorder& spans, const std::string& first, const std::string& second);
  void set_fault(cable_fault_if* fault) { fault_ = fault; }
  /// Pulls the cable out, or plugs it in again: frames on it and frames sent meanwhile are lost, and both ports see it
  /// at time `at`, which is in the future.
  void set_live(bool live, sim::time_ps at);

  sim::time_ps propagation_ps() const { return propagation_; }
  const std::uint64_t& frames(unsigned from) const { return ends_[from].frames; }
  const std::uint64_t& lost(unsigned from) const { return ends_[from].lost; }

 private:
  class end : public payload::frame_sink_if, private sim::crossing {
   public:
    void deliver(payload::frame_ptr frame, sim::time_ps last_bit) override;
    cable* owner = nullptr;
    unsigned from = 0;
    std::uint64_t frames = 0;
    std::uint64_t lost = 0;

   private:
    void cross() override;
    void enter(payload::frame_ptr frame, sim::time_ps last_bit);
    std::vector<std::pair<payload::frame_ptr, sim::time_ps>> waiting_;  // for cross()
    std::size_t crossed_ = 0;                                           // of them
  };
  /// The second half of the way, behind the element.
  class half : public payload::frame_sink_if {
   public:
    void deliver(payload::frame_ptr frame, sim::time_ps last_bit) override;
    cable* owner = nullptr;
    unsigned from = 0;
    payload::frame_sink_if* peer = nullptr;
    std::string block;  // of spans
  };

  sim::time_ps propagation_;
  end ends_[2];
  half halves_[2];
  std::vector<payload::frame_observer_if*> observers_, behind_;
  cable_fault_if* fault_ = nullptr;
  cable_element_if* element_ = nullptr;
  sim::span_recorder* spans_ = nullptr;
  payload::frame_port_if* ports_[2];
};

}  // namespace rnic::fabric
