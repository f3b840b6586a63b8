// SPDX-License-Identifier: Apache-2.0
// The driver's bus in simulated time: processor port and memory of model/host, waited for in SystemC threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "host_driver/bus/program_turns.h"
#include "host_driver/bus_if.h"
#include "model/host/host_memory.h"
#include "model/host/processor_port.h"
#include "model/sim/parameter.h"
#include "model/sim/timebase.h"

namespace rnic::host_driver {

/// One PCI function for the driver. Every call of bus_if comes from an SC_THREAD and may wait in it; several threads
/// may use one bus, and those of a host that go on at the same time do so in the order of their turns. Give it to the
/// root complex as interrupt controller, and bind() the root complex's port before use.
class systemc_bus : public sc_core::sc_module,
                    public bus_if,
                    public host::interrupt_controller_if,
                    private host::processor_port::reader,
                    private host::processor_port::space_waiter {
 public:
  struct config {
    std::uint16_t function = 0;                  ///< routing id's low byte: 0 is the physical function
    std::uint32_t first_vector = 0x40;           ///< interrupt data of MSI-X entry 0 (any free vector of the processor)
    std::uint64_t msi_address = host::msi_base;  ///< local APIC 0, fixed delivery (Intel SDM vol. 3, 11.11)
    std::uint64_t retry_ps = 10'000;             ///< when the root complex has too many reads under way
    sim::parameter<host::memory_class> buffers{
        host::memory_class::llc, {"llc, dram, remote", "design: where the memory of driver and programs lies"}};

    void list(sim::fields& are) { are("buffers", buffers); }
  };

  /// `turns`: of the host.
  systemc_bus(const sc_core::sc_module_name& name, sim::timebase& base, host::host_memory& memory, program_turns& turns,
              const config& cfg);
  ~systemc_bus() override;

  void bind(host::processor_port& port) { port_ = &port; }
  /// More processes than one use this bus all the time: run_ahead() is ignored.
  void share() { shared_ = true; }
  /// What the operating system tells the driver of a virtual function, whose own registers do not say it: vendor and
  /// device ID, and the address of BAR2.
  void assign(std::uint32_t id, std::uint64_t bar2);
  /// Processor time that was spent: work, not the waiting for memory, interrupts and registers.
  const std::uint64_t& busy_ps() const { return busy_ps_; }

  std::uint32_t config_read32(std::uint16_t offset) override;
  void config_write32(std::uint16_t offset, std::uint32_t value) override;
  std::uint32_t mmio_read32(unsigned bar, std::uint64_t offset) override;
  void mmio_write32(unsigned bar, std::uint64_t offset, std::uint32_t value) override;
  void mmio_write64(unsigned bar, std::uint64_t offset, std::uint64_t value) override;
  void mmio_write_combined(unsigned bar, std::uint64_t offset, const void* from, std::size_t bytes) override;
  dma_memory allocate(std::size_t bytes, std::size_t alignment) override;
  void release(const dma_memory& memory) override;
  void spend_ps(std::uint64_t ps) override;
  void sleep_ps(std::uint64_t ps) override;
  std::uint64_t now_ps() const override { return base_.now_ps(); }
  void run_ahead(bool on) override;
  bool wait_for_write(std::uint64_t bus_address, std::size_t bytes, std::uint64_t timeout_ps) override;
  void end_wait(std::uint64_t bus_address) override;
  bool wait_interrupt(unsigned vector, std::uint64_t timeout_ps) override;
  void interrupt_served(unsigned vector) override;
  bool enable_interrupt(unsigned vector) override;
  bool enable_line() override;
  void set_span(std::uint32_t span) override { span_ = span; }

  /// Root complex: a message-signalled interrupt has arrived. Those of other functions or vectors are counted and
  /// dropped.
  void interrupt(std::uint16_t function, std::uint64_t address, std::uint32_t data, sim::time_ps at) override;
  std::uint64_t foreign_interrupts() const { return foreign_interrupts_; }
  void line(bool asserted, sim::time_ps at) override;

 private:
  struct pending_read {
    program_turns::alarm done;
    bool completed = false;
    std::array<std::uint8_t, 64> data{};
  };
  struct watch : host::write_watcher {
    explicit watch(sim::timebase& b) : base(b) {}
    sim::timebase& base;
    program_turns::alarm written;
    bool hit = false, waits = false, ended = false;
    bool passing = false;  // the process is in timebase::pass() and needs no event
    std::uint64_t first = 0;
    std::size_t bytes = 0;
    void memory_written(std::uint64_t address, std::uint32_t bytes, sim::time_ps at) override;
  };
  struct vector_state {
    program_turns::alarm raised;
    bool pending = false;
    std::uint64_t served = 0;  // how often somebody has
  };

  void read_completed(std::uint64_t token, payload::tlp_status status, const std::uint8_t* data,
                      std::uint32_t bytes) override;
  void store_space() override;
  template <class Start>
  std::uint32_t split_access(Start start);
  void store(unsigned bar, std::uint64_t offset, const void* data, std::size_t bytes);
  void store_at(std::uint64_t address, const void* data, std::size_t bytes);
  std::uint64_t bar_address(unsigned bar);
  std::uint16_t find_msix();
  vector_state& vector_of(unsigned vector);
  void pass(std::uint64_t ps);
  template <class Done>
  bool wait_until(program_turns::alarm& alarm, std::uint64_t deadline, Done done);

  config cfg_;
  std::uint64_t busy_ps_ = 0;
  bool runs_ahead_ = false, shared_ = false;
  sim::timebase& base_;
  host::host_memory& memory_;
  program_turns& turns_;
  host::processor_port* port_ = nullptr;
  std::vector<std::unique_ptr<pending_read>> reads_;
  std::vector<pending_read*> free_reads_;
  std::vector<std::unique_ptr<watch>> watches_;
  std::vector<watch*> free_watches_;
  std::vector<std::unique_ptr<vector_state>> vectors_;
  program_turns::alarm space_;
  std::uint64_t stores_asked_ = 0, stores_done_ = 0;
  std::array<std::uint64_t, 6> bars_{};
  std::array<bool, 6> bar_known_{};
  std::uint16_t msix_ = 0;
  bool line_enabled_ = false, line_asserted_ = false;
  std::uint32_t assigned_id_ = 0;  // of a virtual function
  std::uint32_t span_ = 0;
  std::uint64_t foreign_interrupts_ = 0;
};

}  // namespace rnic::host_driver
