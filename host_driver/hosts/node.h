// SPDX-License-Identifier: Apache-2.0
// One host: memory, root complex, adapter with its firmware, driver.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "firmware/bus/firmware_runner.h"
#include "firmware/firmware_config.h"
#include "host_driver/bond.h"
#include "host_driver/bus/systemc_bus.h"
#include "host_driver/device.h"
#include "host_driver/functions/master.h"
#include "model/adapter/adapter.h"
#include "model/fabric/cable.h"
#include "model/host/bus_setup.h"
#include "model/host/host_memory.h"
#include "model/host/root_complex.h"
#include "model/sim/parameter.h"
#include "rtl/harness/twin.h"

namespace rnic::host_driver::dcb {
class service;
}

namespace rnic::hosts {

/// Type of the report, an error, with which a shadow ends a run (SC_REPORT_ERROR): its message is rtl::difference's.
inline constexpr const char* rtl_difference = "/rnic/rtl/difference";

/// What the blocks with a twin in RTL are on one side of a system: as on both, or adapter::implementation + 1.
struct rtl_of_side {
  static constexpr const char* names = "as_both, model, rtl, shadow";
  sim::parameter<std::uint8_t> icrc{0, {names, "design: rtl.icrc of one side; a system of one adapter is a"}};
  sim::parameter<std::uint8_t> gid{0, {names, "design: rtl.gid of one side"}};

  void list(sim::fields& are) {
    are("icrc", icrc);
    are("gid", gid);
  }
};

/// A block that is RTL, or RTL beside its model.
struct rtl_block {
  std::string name;  ///< full name
  const sim::clock_domain* clock = nullptr;
  rtl::traceable* waveform = nullptr;  ///< lives as long as the adapter
};

struct node_config {
  adapter::config adapter;
  firmware::firmware_config firmware;
  host::host_memory::config memory;
  host::root_complex_config root_complex;
  host::bus_setup::config bus_setup;
  host_driver::systemc_bus::config bus;
  std::array<rtl_of_side, 2> sides;  ///< of a system
  /// Ports that get a cable (connector()), mask: bit 0 is port 1.
  unsigned cabled = 1;
  /// Slot and ports are TLM-2.0 sockets; else plain calls do the same.
  sim::parameter<bool> tlm_sockets{false, "design: PCIe and Ethernet through TLM-2.0 sockets: same results"};
  /// Clock of the root complex.
  sim::parameter<std::uint32_t> uncore_khz{
      1'000'000, {10'000, 10'000'000, "kHz", "design: the root complex writes memory once in a cycle"}};
  host_driver::config driver = host_driver::config::small();
  /// That the host's driver enables, each with a driver of its own in memory of its own.
  sim::parameter<unsigned> functions{0, {0, 126, "virtual functions", "adapter control plane 8.7; --functions"}};
  /// Whose driver programs get (device()).
  sim::parameter<unsigned> function{0, {0, 126, "number", "design: of --functions, 0 is the physical function"}};
  std::vector<host_driver::function_settings> function_settings;  ///< from function 1 on
  /// Blocks of the user's own, each in the place of the one that adapter.icrc or adapter.gid says; empty: that one.
  adapter::icrc_engine_factory icrc_engine;
  adapter::gid_match_factory gid_match;
  adapter::gid_source_factory gid_source;
  /// The same of whole blocks, by name ("scheduler"): model/adapter/block_place.h.
  adapter::own_blocks blocks;

  /// The host's; announce() has the other prefixes.
  void list(sim::fields& are) {
    are("uncore_khz", uncore_khz);
    are("", root_complex);
    are("", memory);
    are("", bus_setup);
    are("", bus);
    are("functions", functions);
    are("function", function);
  }
};

/// Default for hosts with port 1 in use: everything of a profile, a driver with small tables.
node_config make_node_config(const std::string& profile);
/// The node on one side of a system: 0 is "a" (also the only one), 1 is "b".
node_config of_side(node_config c, unsigned side);
/// What of a configuration cannot work as it is meant, a line each: a port that is to stop its peer and has too little
/// room for what still comes, or whose pauses end before they are repeated.
std::vector<std::string> warnings(const node_config& c);
/// The line about pauses of `quanta` of which too little is left; `of`: the port.
std::string short_pauses(const std::string& of, std::uint16_t quanta, const mac::refresh_margin& m);
/// Announces every parameter of a node.
void announce(sim::parameter_set& to, node_config& c);

/// `number` (1, 2, ...) makes MAC addresses and GUIDs of the hosts differ.
class node : public sc_core::sc_module {
 public:
  node(const sc_core::sc_module_name& module_name, const adapter::environment& env, const node_config& cfg,
       unsigned number);
  ~node() override;

  /// What happens before programs run on a host: its firmware sizes and places the BARs and sets payload and read
  /// request size, then the driver opens the device, and serves virtual functions, whose drivers open theirs. To be
  /// called in an SC_THREAD. 0 or a negative errno; throws sim::config_error for a device ID that the driver does not
  /// know.
  int start();

  adapter::adapter& nic() { return adapter_; }
  /// Where the cable of a port (1, 2) goes, one of node_config::cabled.
  payload::frame_port_if& connector(unsigned port = 1);
  /// Of node_config::function.
  host_driver::device& device() { return device(program_function_); }
  host_driver::bus_if& bus() { return bus(program_function_); }
  /// Of function 0 to node_config::functions.
  host_driver::device& device(unsigned function);
  host_driver::bus_if& bus(unsigned function);
  /// By what numbers the device of device() knows these ports of the adapter: those of them that it has.
  std::vector<unsigned> own_ports(const std::vector<unsigned>& physical) const;
  unsigned functions() const { return static_cast<unsigned>(guests_.size()); }
  /// With config::bond: who follows the links, else nullptr.
  host_driver::bond* bond() const { return bond_.get(); }
  /// bond()->enslave(), and the processes that it needs; ready for programs. start() does it, and a program may behind
  /// bond()->release(). 0 or a negative errno; throws sim::config_error for a device that cannot be bonded.
  int start_bond();
  /// With virtual functions: who serves them.
  host_driver::function_master& master() { return *master_; }
  /// The agent of data centre bridging of a port with a cable, after start(); nullptr when there is none.
  host_driver::dcb::service* dcb(unsigned port = 1);
  host::host_memory& memory() { return memory_; }
  /// Of programs that go on at the same time.
  host_driver::program_turns& turns() { return turns_; }
  host::root_complex& root() { return root_; }
  /// In order of construction.
  const std::vector<rtl_block>& rtl() const { return rtl_; }
  bool has_sockets() const { return sockets_ != nullptr; }

 private:
  node(const sc_core::sc_module_name& module_name, const adapter::environment& env, const node_config& agreed,
       unsigned number, int);
  struct sockets;
  /// A virtual function as its host has it.
  struct guest {
    guest(unsigned function, const node_config& c, sim::timebase& base, host::host_memory& memory,
          host_driver::program_turns& turns);
    host_driver::systemc_bus bus;
    host_driver::device device;
  };
  /// Interrupts go to the function's bus.
  struct interrupt_router final : host::interrupt_controller_if {
    explicit interrupt_router(node& of) : owner(of) {}
    void interrupt(std::uint16_t function, std::uint64_t address, std::uint32_t data, sim::time_ps at) override;
    void line(bool asserted, sim::time_ps at) override;
    node& owner;
  };
  guest& guest_of(unsigned function);
  void check_function_settings() const;
  int start_functions();
  int start_dcb();
  void tell_dcb_of_links();

  sim::clock_domain uncore_;
  host::host_memory memory_;
  host::root_complex root_;
  host::bus_setup bus_setup_;
  std::vector<rtl_block> rtl_;
  adapter::adapter adapter_;
  firmware::firmware_runner firmware_;
  host_driver::program_turns turns_;
  host_driver::systemc_bus bus_;
  host_driver::device device_;
  interrupt_router router_{*this};
  std::vector<std::unique_ptr<guest>> guests_;
  std::unique_ptr<host_driver::function_master> master_;
  std::unique_ptr<host_driver::bond> bond_;
  bool was_bonded_ = false;
  std::vector<host_driver::function_settings> function_settings_;
  host_driver::function_ports function_ports_;
  unsigned program_function_ = 0;
  unsigned cabled_ = 0;
  std::vector<std::unique_ptr<host_driver::dcb::service>> dcb_;  // by port, of those with a cable
  std::unique_ptr<sockets> sockets_;
};

}  // namespace rnic::hosts
