// SPDX-License-Identifier: Apache-2.0
// What the firmware of a PC does to a PCI function before its driver sees it.
#pragma once

#include <array>
#include <cstdint>

#include "model/host/processor_port.h"
#include "model/sim/parameter.h"

namespace rnic::host {

/// Sizes and places BAR0 and BAR2 (64-bit memory), sets payload and read request size, and leaves memory space and bus
/// mastering as asked; all with configuration cycles, one after the other. start() once, then done() becomes true.
class bus_setup : public processor_port::reader {
 public:
  struct config {
    std::uint64_t window = 0x38'0000'0000;  ///< bus addresses for BARs, above all of host_memory's by default
    /// The host's limit; the device's lower one wins.
    sim::parameter<std::uint32_t> max_payload{256, {128, 4096, "bytes", "calibration 5: MPS 256"}};
    sim::parameter<std::uint32_t> max_read_request{512, {128, 4096, "bytes", "calibration 5: MRRS 512"}};
    bool enable = true;  ///< memory space and bus master, as a driver's pci_enable does

    void list(sim::fields& are) {
      are("max_payload_bytes", max_payload);
      are("max_read_request_bytes", max_read_request);
    }
  };
  struct result {
    bool present = false;
    std::uint16_t vendor = 0, device = 0;
    std::array<std::uint64_t, 6> bar_address{};  ///< by BAR index; 0: not implemented
    std::array<std::uint64_t, 6> bar_bytes{};
    std::uint16_t express = 0, msix = 0;  ///< capability offsets, 0: none
  };
  class listener {
   public:
    virtual ~listener() = default;
    virtual void bus_ready(const result& r) = 0;
  };

  explicit bus_setup(processor_port& port) : bus_setup(port, config{}) {}
  /// Throws sim::config_error for a size that PCI Express has not: they are powers of two.
  bus_setup(processor_port& port, const config& c);

  /// Begins; `to`, when given, is called in the root complex's tick at the end.
  void start(listener* to = nullptr);
  bool done() const { return step_ == step::done; }
  const result& found() const { return result_; }

 private:
  enum class step : std::uint8_t {
    idle,
    identity,
    size_low,
    size_high,
    read_low,
    read_high,
    place_low,
    place_high,
    capability_pointer,
    capability,
    express_capability,
    device_control,
    set_device_control,
    enable,
    done
  };
  void read_completed(std::uint64_t token, payload::tlp_status status, const std::uint8_t* data,
                      std::uint32_t bytes) override;
  void read(step next, std::uint16_t offset);
  void write(step next, std::uint16_t offset, std::uint32_t value, std::uint32_t bytes = 4);
  void next_bar(unsigned bar);
  void place_bar();
  void walk(std::uint32_t value);
  void enable();
  void finish();
  std::uint16_t bar_offset() const { return static_cast<std::uint16_t>(0x10 + 4 * bar_); }

  processor_port& port_;
  config config_;
  result result_;
  listener* listener_ = nullptr;
  step step_ = step::idle;
  unsigned bar_ = 0;
  std::uint32_t low_ = 0;
  std::uint64_t next_address_ = 0;
  std::uint16_t capability_ = 0;
  unsigned hops_ = 0;
  std::uint32_t payload_code_ = 0;
};

}  // namespace rnic::host
