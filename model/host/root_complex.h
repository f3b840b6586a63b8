// SPDX-License-Identifier: Apache-2.0
// The slot: root port, memory controller as the device sees it, and the way of processor accesses to the device.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/host/host_memory.h"
#include "model/host/memory_timing.h"
#include "model/host/processor_port.h"
#include "model/payload/tlp.h"
#include "model/pcie/link.h"
#include "model/pcie/tlp_link_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/parameter.h"
#include "model/sim/ring.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"
#include "model/sim/timed_inbox.h"

namespace rnic::host {

/// Latencies are chosen such that with the link (model/pcie/link.h) the sums of calibration section 5 come out.
struct root_complex_config {
  pcie::link_config link;
  memory_timing_config memory;
  /// Processor to link, of a store to the device.
  sim::parameter<sim::time_ps> store_to_link_ps{48'000, {1, slow_ps, "ps", "calibration 5: 120 ns in all"}};
  /// Completion to processor register.
  sim::parameter<sim::time_ps> link_to_processor_ps{48'000, {1, slow_ps, "ps", "calibration 5"}};
  /// Completions end at multiples of it: 64, 128 or 256.
  sim::parameter<std::uint32_t> completion_bytes{256, {64, 256, "bytes", "calibration 5: 256 on IVB and later"}};
  sim::parameter<std::uint32_t> posted_headers{64, {1, 127, "packets", "design: credits given to the device"}};
  sim::parameter<std::uint32_t> posted_data{1024,
                                            {32, 2047, "units of 16 bytes", "design: credits given to the device"}};
  /// Reads of the device under way.
  sim::parameter<std::uint32_t> non_posted_headers{64, {1, 127, "packets", "design: credits given to the device"}};
  /// Processor operations between processor and link.
  sim::parameter<unsigned> store_buffer{32, {1, 1024, "stores", "design"}};
  unsigned processor_tags = 32;  ///< processor reads under way
  unsigned sends_per_cycle = 4;  ///< width of the transmit buffer: packets into it in a cycle (design)
  sim::time_ps completion_timeout_ps = 50'000'000'000;  ///< 50 ms (Base Specification 3.0, 2.8)
  std::uint16_t device_id = 0x0100;                     ///< bus 1, device 0: where the adapter is

  /// The link has one set of parameters for both of its ends, which are the adapter's.
  void list(sim::fields& are) {
    are("", memory);
    are("store_to_link_ps", store_to_link_ps);
    are("link_to_processor_ps", link_to_processor_ps);
    are("completion_bytes", completion_bytes);
    are("posted_headers", posted_headers);
    are("posted_data", posted_data);
    are("non_posted_headers", non_posted_headers);
    are("store_buffer", store_buffer);
  }
};

/// Takes the device's requests in the place of host_memory (platform_bridge.h).
class device_traffic_if {
 public:
  virtual ~device_traffic_if() = default;
  /// A memory read or write of the device, which is here at `arrival`. Each goes back once: a read to
  /// root_complex::answer, a write to root_complex::done_with.
  virtual void request(payload::tlp_ptr packet, sim::time_ps arrival) = 0;
};

/// Clocked in the host's domain (1 GHz uncore by default). Writes of the device become visible in order, one in a cycle
/// (memory_timing.h); reads find what is in memory when their first completion is sent, or up to store_to_link_ps
/// before the later ones are; accesses to what host_memory does not have are unsupported requests. The processor takes
/// one completion in a cycle. Approximation: reads of different latency classes do not queue for memory; the device's
/// header credits bound them.
///
/// Nothing is ticked for a write that nobody can see becoming visible: the bytes are there before anything looks at
/// them (sim::deferred_work), and the credit goes back with the time at which it does.
class root_complex : public sim::clocked_block,
                     public pcie::tlp_link_if,
                     public processor_port,
                     private sim::deferred_work,
                     private watch_listener {
 public:
  /// The pool must outlive everything that is bound to the link.
  root_complex(std::string name, sim::clock_domain& domain, const root_complex_config& c, host_memory& memory,
               payload::tlp_pool& pool, sim::span_recorder& spans, sim::statistics& stats);
  ~root_complex() override;

  /// Link-up, once, before time starts.
  void connect(pcie::tlp_link_if& peer);
  void set_interrupt_controller(interrupt_controller_if& target) { interrupts_ = &target; }
  host_memory& memory() { return memory_; }

  /// Before time starts: memory is not host_memory, but where `to` takes the requests.
  void forward(device_traffic_if& to) { outside_ = &to; }
  /// The data of a forwarded read, in `request` itself, or a status other than success. Completions leave from now on.
  void answer(payload::tlp_ptr request, payload::tlp_status status);
  /// A forwarded write has been done, or thrown away: its room is the device's again.
  void done_with(const payload::tlp& write) { return_credit(write, link_.now_ps()); }

  void deliver(payload::tlp_ptr packet, sim::time_ps arrival) override;
  void credit(const pcie::credit_amount& amount, sim::time_ps arrival) override { link_.credit(amount, arrival); }

  bool start_config_read(std::uint16_t function, std::uint16_t offset, std::uint32_t bytes, reader& to,
                         std::uint64_t token) override;
  bool start_config_write(std::uint16_t function, std::uint16_t offset, const void* data, std::uint32_t bytes,
                          reader& to, std::uint64_t token) override;
  bool start_mmio_read(std::uint64_t address, std::uint32_t bytes, reader& to, std::uint64_t token) override;
  bool mmio_store(std::uint64_t address, const void* data, std::uint32_t bytes, sim::span_id span) override;
  void wait_for_space(space_waiter& waiter) override { waiters_.push_back(&waiter); }

 private:
  struct operation {
    payload::tlp_ptr packet;
    reader* to = nullptr;
    std::uint64_t token = 0;
  };
  struct posted_write {
    payload::tlp_ptr packet;
    sim::cycle_t edge = 0;     // at which it becomes visible
    sim::time_ps visible = 0;  // time of that edge
    bool seen = false;         // this block is ticked then
  };
  struct device_read {
    payload::tlp_ptr request;
    sim::time_ps ready = 0;
    bool answered = false;  // the data is in the request
  };
  struct pending_read {
    reader* to = nullptr;
    std::uint64_t token = 0;
    std::uint32_t bytes = 0;
    std::uint32_t received = 0;
    sim::time_ps deadline = 0;
    std::array<std::uint8_t, 64> data{};
  };

  void tick() override;
  void take_write(payload::tlp_ptr packet, sim::time_ps arrival);
  void write_due();
  void write_unseen(sim::time_ps before);
  void catch_up(sim::time_ps before) override;
  void watch_added() override;
  bool is_seen(const payload::tlp& t) const;
  void write_memory(const payload::tlp& t, sim::time_ps at);
  void take_completion();
  void complete_read(std::uint16_t tag, payload::tlp_status status);
  void check_timeouts();
  void send();
  bool send_completion(sim::time_ps now);
  void send_ahead(sim::time_ps now);
  void put_completion(sim::time_ps at);
  void refuse(const payload::tlp& request, payload::tlp_status status, sim::time_ps at);
  void insert(device_read read);
  const std::uint8_t* data_of(const device_read& read) const;
  bool send_operation(sim::time_ps now);
  void wake_waiters();
  bool start(payload::tlp_type type, std::uint16_t function, std::uint64_t address, const void* data,
             std::uint32_t bytes, reader* to, std::uint64_t token, sim::span_id span);
  void return_credit(const payload::tlp& t, sim::time_ps given);

  root_complex_config config_;
  host_memory& memory_;
  memory_timing timing_;
  payload::tlp_pool& pool_;
  sim::span_recorder& spans_;
  pcie::link_transmitter link_;
  pcie::tlp_link_if* peer_ = nullptr;
  interrupt_controller_if* interrupts_ = nullptr;
  device_traffic_if* outside_ = nullptr;

  sim::ring<posted_write> posted_;                  // in their order
  sim::timed_inbox<payload::tlp_ptr> completions_;  // at the time at which the processor has them
  sim::timed_inbox<operation> operations_;          // at the time at which they reach the link
  sim::ring<device_read> reads_;                    // in the order of `ready`
  std::uint32_t read_done_ = 0;                     // bytes of the first read that are answered
  std::vector<pending_read> pending_;
  std::vector<std::uint16_t> free_tags_;
  std::vector<space_waiter*> waiters_;
  std::vector<space_waiter*> called_;
  unsigned operations_held_ = 0;
  bool operation_next_ = false;
  sim::time_ps check_at_ = ~sim::time_ps{0};

  std::uint64_t writes_ = 0, write_bytes_ = 0, read_requests_ = 0, read_bytes_ = 0, unsupported_writes_ = 0;
  std::uint64_t unsupported_reads_ = 0, malformed_ = 0, messages_ = 0, stores_ = 0, loads_ = 0, refused_ = 0;
  std::uint64_t unexpected_ = 0, timeouts_ = 0, poisoned_ = 0;
};

}  // namespace rnic::host
