// SPDX-License-Identifier: Apache-2.0
// The block diagram as code: which blocks an adapter has, and which channel leads from where to where.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/adapter/adapter_config.h"
#include "model/adapter/block_place.h"
#include "model/command/firmware_dma.h"
#include "model/ethernet/steering.h"
#include "model/gid/gid_match.h"
#include "model/gid/gid_source.h"
#include "model/gid/gid_table.h"
#include "model/icm/icm_map.h"
#include "model/icm/icm_registers.h"
#include "model/mac/port_if.h"
#include "model/payload/ethernet_socket.h"
#include "model/pcie/endpoint_if.h"
#include "model/pcie/endpoint_socket.h"
#include "model/pcie/pcie_core.h"
#include "model/register_bus/cr_bus.h"
#include "model/sim/clock_domain.h"
#include "model/transport/congestion/cnm_receiver.h"
#include "model/transport/congestion/cnp_sender.h"
#include "model/transport/multicast/multicast.h"
#include "model/transport/read_engine/read_engine.h"
#include "model/transport/requester/ack_timers.h"
#include "model/transport/requester/descriptor_fetch.h"
#include "model/transport/requester/gather.h"
#include "model/transport/requester/requester.h"
#include "model/transport/requester/scatter.h"
#include "model/transport/responder/answer_transmit.h"
#include "model/transport/responder/atomic_unit.h"
#include "model/transport/responder/read_generator.h"
#include "model/transport/responder/receive_fetch.h"
#include "model/transport/responder/responder.h"
#include "model/transport/traffic_counters.h"
#include "model/transport/transport_cr.h"

namespace rnic::adapter {

/// Makes the engine of the icrc block with this full name.
using icrc_engine_factory =
    std::function<std::unique_ptr<icrc::icrc_engine_if>(const std::string& block, const sim::clock_domain& clock)>;

/// Makes the GID match of the parser with this full name, over the entries of its port; nullptr: the model's.
using gid_match_factory = std::function<std::unique_ptr<gid::gid_match_if>(
    const std::string& parser, const sim::clock_domain& clock, const gid::gid_table& entries)>;

/// Makes the look-up of sources with this full name, over the tables of a port; nullptr: the model's.
using gid_source_factory = std::function<std::unique_ptr<gid::gid_source_if>(
    const std::string& name, const sim::clock_domain& clock, const gid::gid_table& entries)>;

/// One adapter. Only construction and binding: all behaviour is in the blocks.
///
/// Its blocks, clock domains and channels are its children in SystemC's hierarchy: "requester", "clock",
/// "doorbell_to_scheduler_sends" (from where, to where, what). Statistics have the names of their blocks
/// (statistics::of), and the attribute "parameters" of a block (sc_attribute<std::string>) is the path below which its
/// parameters are (parameter_set::of): those of one configuration, which several adapters may share.
class adapter : public sc_core::sc_module {
 public:
  /// `icrc_engine` makes the engines of the icrc blocks: the model's, or verilated RTL; `gid_match`, where it is given,
  /// the matches of the parsers, `gid_source` the look-ups of the transmit pipelines. `own` are put in the places of
  /// blocks (block_place.h).
  adapter(const sc_core::sc_module_name& module_name, const environment& env, const config& cfg,
          const icrc_engine_factory& icrc_engine, const gid_match_factory& gid_match = {},
          const gid_source_factory& gid_source = {}, const own_blocks& own = {});

  /// The outside: the slot and the ports. Elaboration ends with an error that names it when the slot or every port
  /// is bound to nothing (sim::config_error, out of sc_start); one of two ports that is not cabled has no link.
  /// bench::node may connect endpoint and ports by plain calls instead, which do the same and cost less.
  pcie::endpoint_socket& pcie_socket() { return *pcie_socket_; }
  payload::ethernet_port_socket& port_socket(unsigned index) { return *port_sockets_[index]; }

  /// What a slot is connected to, and a cable: the block of one's own where one has the place.
  pcie::endpoint_if& pcie() { return *slot_; }
  mac::port_if& connector(unsigned index) { return *connectors_[index]; }
  command::firmware_port& firmware_port() { return firmware_port_; }
  mac::port& port(unsigned index) { return *ports_[index]; }  ///< the model's, whoever has its place
  gid::gid_table& gids(unsigned index) { return gids_[index]; }
  unsigned num_ports() const { return static_cast<unsigned>(ports_.size()); }
  const sim::clock_domain& clock() const { return core_; }
  /// Clocks of the blocks: the adapter's, and that of the PCIe core where it has one of its own.
  std::vector<const sim::clock_domain*> clocks() const;
  const transport::requester& requester() const { return requester_; }
  const transport::responder& responder() const { return responder_; }
  const ethernet::steering& steering() const { return steering_; }
  const icm::translation& translation() const { return translation_; }

 private:
  /// Clients of the DMA engine.
  enum class dma_client : unsigned {
    descriptor_fetch,
    requester_context,
    gather,
    scatter,
    responder_write,
    receive_fetch,
    read_generator,
    atomic_unit_read,
    atomic_unit_write,
    responder_context,
    responder_history,
    responder_srq,
    multicast_group,
    translation,
    completion,
    completion_cq,
    completion_eq,
    firmware,
    keys,
    steering_group,
    count
  };
  /// UAR pages are write-only.
  class no_registers final : public pcie::register_file_if {
   public:
    std::uint32_t read32(std::uint16_t, std::uint64_t) override { return 0; }
  };

  /// What the endpoint calls of the command block, whichever has its place.
  class command_access final : public pcie::register_file_if, public pcie::function_listener_if {
   public:
    explicit command_access(command::command_block& block) : registers(&block), functions(&block) {}
    std::uint32_t read32(std::uint16_t function, std::uint64_t offset) override {
      return registers->read32(function, offset);
    }
    void function_level_reset(std::uint16_t function) override { functions->function_level_reset(function); }
    void functions_enabled() override { functions->functions_enabled(); }

    pcie::register_file_if* registers;
    pcie::function_listener_if* functions;
  };

  /// Store-and-forward, unless what it returns is told otherwise.
  template <class T>
  sim::fifo<T>& connect(const std::string& name, sim::fifo_out<T>& from, sim::fifo_in<T>& to, unsigned depth,
                        unsigned latency = 1);
  void connect_dma(dma_client client, const std::string& block, pcie::dma_port& port);
  void connect_translation(unsigned client, const std::string& block, icm::translate_port& port);
  void connect_keys(unsigned client, const std::string& block, icm::key_port& port);
  template <class Port>
  void connect_revocations(unsigned holder, const std::string& block, Port& port);
  gid::source_access make_gid_sources(const std::string& block, const gid_source_factory& make);
  void announce(sim::statistics& to) const;
  void name_parameters();
  void end_of_elaboration() override;
  void bind_descriptors();
  void bind_transmit();
  void bind_answers();
  void bind_read_engine();
  void bind_receive();
  void bind_departures();
  void bind_ethernet();
  void bind_memory();
  void bind_registers();
  void bind_reset();
  std::map<std::string, sim::clocked_block*> places();
  block_place::beside_channels beside(const std::string& block);
  void put_in(const std::string& name, const block_factory& make, const environment& env);

  const std::string name_;  // full name
  config config_;
  sim::clock_domain core_;
  sim::clock_domain firmware_clock_;
  no_registers no_registers_;
  std::array<gid::gid_table, 2> gids_;
  std::vector<std::unique_ptr<gid::gid_match_if>> gid_matches_;   // by port; behind them those of the other's table
  std::vector<std::unique_ptr<gid::gid_source_if>> gid_sources_;  // by transmit pipeline and port
  icm::icm_map icm_map_;
  register_bus::cr_bus cr_bus_;

  command::command_block command_;
  command_access command_access_{command_};
  command::firmware_dma firmware_dma_;
  command::firmware_port firmware_port_;
  pcie::endpoint endpoint_;
  std::unique_ptr<pcie::core_domain> pcie_core_;  // where it has a clock of its own
  icm::translation translation_;
  icm::icm_registers icm_registers_;
  doorbell::doorbell doorbell_;
  scheduler::scheduler scheduler_;
  std::vector<std::unique_ptr<transport::read_engine>> read_engines_;  // one for both halves, or one of each
  transport::requester_memories requester_memories_;
  transport::responder_memories responder_memories_;
  transport::requester requester_;
  transport::descriptor_fetch descriptor_fetch_;
  transport::gather gather_;
  transport::scatter scatter_;
  transport::ack_timers ack_timers_;
  transport::responder responder_;
  transport::receive_fetch receive_fetch_;
  transport::read_generator read_generator_;
  transport::atomic_unit atomic_unit_;
  transport::answer_transmit answer_transmit_;
  transport::cnp_sender cnp_sender_;
  transport::cnm_receiver cnm_receiver_;
  transport::multicast multicast_;
  transport::traffic_counters traffic_;
  ethernet::steering steering_;
  completion::completion completion_;
  icrc::icrc_insert icrc_insert_;
  icrc::icrc_check icrc_check_;
  std::vector<std::unique_ptr<parser::parser>> parsers_;
  std::vector<std::unique_ptr<mac::port>> ports_;
  pcie::endpoint_if* slot_ = &endpoint_;
  std::vector<mac::port_if*> connectors_;  // by port
  std::vector<std::string> dma_clients_ =
      std::vector<std::string>(static_cast<std::size_t>(dma_client::count));  // by dma_client
  std::unique_ptr<pcie::endpoint_socket> pcie_socket_;
  std::vector<std::unique_ptr<payload::ethernet_port_socket>> port_sockets_;
  std::vector<std::unique_ptr<sim::clocked_block>> own_blocks_;
  std::vector<std::shared_ptr<void>> channels_;
  std::deque<sc_core::sc_attribute<std::string>> parameter_paths_;  // where they are, they stay: blocks point to them
};

}  // namespace rnic::adapter
