// SPDX-License-Identifier: Apache-2.0
// The capture of a system: of the frames on one cable, or of all ports.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "model/fabric/cable.h"
#include "model/sim/statistics.h"
#include "tlm/capture.h"
#include "tlm/port_capture.h"

namespace rnic::hosts {

/// A file whose name ends in .pcapng has all ports (tlm::port_capture), another one is of one cable
/// (tlm::capture_writer).
class system_capture {
 public:
  static bool has_all_ports(const std::string& path);
  /// `path` empty: no capture. Throws tlm::capture_error.
  system_capture(const std::string& path, const tlm::capture_writer::config& config);

  /// nullptr: it is not of one cable.
  tlm::capture_writer* of_cable() { return cable_.get(); }
  /// nullptr: it is not of all ports.
  tlm::port_capture* of_ports() { return ports_.get(); }
  /// Adds the ports at both ends of a cable, to a capture that has all ports: what each sends, and what arrives.
  /// Without a name an end is no port of the system, as the real peer's behind a link is.
  void add(fabric::cable& c, const std::string& first, const std::string& second);
  /// NAME.frames and NAME.wrong_fcs; nothing without a capture.
  void add_counters(sim::statistics& to, const std::string& name) const;
  /// Throws tlm::capture_error when anything could not be written.
  void close();

 private:
  class tap final : public payload::frame_observer_if {
   public:
    tap(tlm::port_capture& to, const int (&ports)[2], bool arrive, sim::time_ps cable)
        : to_(to), ports_{ports[0], ports[1]}, arrive_(arrive), cable_(cable) {}
    void observe(unsigned from, const payload::frame& f, sim::time_ps first_bit, sim::time_ps) override {
      const int port = ports_[arrive_ ? 1 - from : from];
      if (port == no_port) return;
      if (arrive_)
        to_.received(static_cast<unsigned>(port), f, first_bit, cable_);
      else
        to_.sent(static_cast<unsigned>(port), f, first_bit);
    }

    static constexpr int no_port = -1;

   private:
    tlm::port_capture& to_;
    int ports_[2];
    bool arrive_;
    sim::time_ps cable_;
  };

  std::unique_ptr<tlm::capture_writer> cable_;
  std::unique_ptr<tlm::port_capture> ports_;
  std::deque<tap> taps_;
};

}  // namespace rnic::hosts
