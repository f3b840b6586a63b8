// SPDX-License-Identifier: Apache-2.0
// Every number of an adapter, block by block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/command/command_block.h"
#include "model/command/firmware_port.h"
#include "model/completion/completion.h"
#include "model/doorbell/doorbell.h"
#include "model/ethernet/steering.h"
#include "model/gid/gid_source_if.h"
#include "model/icm/translation.h"
#include "model/icrc/icrc_block.h"
#include "model/mac/port.h"
#include "model/parser/parser.h"
#include "model/pcie/endpoint.h"
#include "model/scheduler/scheduler.h"
#include "model/sim/parameters.h"
#include "model/transport/congestion/config.h"
#include "model/transport/multicast/multicast.h"
#include "model/transport/requester/config.h"
#include "model/transport/responder/types.h"

namespace rnic::adapter {

/// How an adapter names itself to its driver: configuration space, QUERY_FW, QUERY_ADAPTER.
struct identity {
  sim::parameter<std::uint16_t> device_id{0x1007, {0, 0xffff, "", "adapter control plane 1.1: ConnectX-3 Pro"}};
  sim::parameter<std::uint16_t> vf_device_id{0x1004,
                                             {0, 0xffff, "", "adapter control plane 1.1: its virtual functions"}};
  sim::parameter<std::uint16_t> firmware_major{2, {0, 0xffff, "", "calibration 2.2: 2.42.5000"}};
  sim::parameter<std::uint16_t> firmware_minor{42, {0, 0xffff, "", "calibration 2.2: 2.42.5000"}};
  sim::parameter<std::uint16_t> firmware_subminor{5000, {0, 0xffff, "", "calibration 2.2: 2.42.5000"}};
  std::string board = "MT_1090111019";  ///< up to 16 characters

  void list(sim::fields& are) {
    are("device_id", device_id);
    are("vf_device_id", vf_device_id);
    are("firmware_major", firmware_major);
    are("firmware_minor", firmware_minor);
    are("firmware_subminor", firmware_subminor);
  }
};

/// What a block with a twin in RTL is: shadow is the model with the RTL beside it, whose first difference ends the run.
enum class implementation : std::uint8_t { model, rtl, shadow };
inline constexpr const char* implementation_names = "model, rtl, shadow";

struct config {
  std::string profile = "connectx3pro_40g";  ///< of which the values are, where nobody changes them
  identity who;
  sim::parameter<std::uint32_t> clock_khz{427'000,
                                          {1000, 10'000'000, "kHz", "calibration 5: hca_core_clock"}};  ///< core clock
  sim::parameter<unsigned> ports{2, {1, 2, "ports", "design: two-port card"}};
  /// That every block and channel of the core clock takes a cycle.
  sim::parameter<unsigned> datapath_bytes{
      16,
      {1, 256, "bytes",
       "calibration 5: 128 bit, C02; of every block from the DMA engine to gather, ports and responder"}};
  /// Of each channel between two blocks: covers the longest stall of a neighbour's pipeline.
  sim::parameter<unsigned> channel_depth{16, {1, 4096, "items", "design"}};
  /// Of the channels for doorbells, grants, completions and DMA requests.
  sim::parameter<unsigned> descriptor_depth{64, {1, 4096, "items", "design"}};
  sim::parameter<bool> shared_read_engine{true,
                                          "calibration 5: requester and responder do READs and atomics on one engine"};
  /// Its two engines.
  sim::parameter<implementation> icrc{
      implementation::model,
      {implementation_names,
       "design: the ICRC engines are the model's, verilated RTL, or the model's with the RTL compared in every cycle"}};
  /// The match of each port, and the look-ups of sources.
  sim::parameter<implementation> gid{
      implementation::model,
      {implementation_names,
       "design: GID matches and look-ups of sources: the model's, verilated RTL, or RTL beside the model"}};

  command::command_block::config command;
  command::firmware_port::config firmware_port;
  pcie::endpoint_config pcie;
  icm::translation_config translation;
  doorbell::config doorbell;
  scheduler::config scheduler;
  transport::congestion_config congestion;    ///< of both halves of the transport
  transport::read_engine_config read_engine;  ///< for the responses of both
  transport::requester_config requester;
  transport::responder_config responder;
  transport::multicast_config multicast;
  completion::completion_config completion;
  parser::parser::config parser;
  gid::match_config gid_match;    ///< of each port; its cycles are part of the receive pipeline
  gid::source_config gid_source;  ///< of each port and transmit pipeline, which begins with its cycles
  ethernet::steering::config steering;
  mac::port_config port;  ///< of every port; index is set by the adapter
  /// What port 2 has of its own.
  struct second_port {
    sim::parameter<std::uint32_t> rate_mbps{0, {0, 400'000, "Mb/s", "design: of port 2; 0: as adapter.port's"}};

    void list(sim::fields& are) { are("rate_mbps", rate_mbps); }
  } port2;

  /// Line rate of port `index` (from 0).
  std::uint32_t rate_mbps(unsigned index) const {
    return index == 1 && port2.rate_mbps != 0 ? port2.rate_mbps : port.rate_mbps;
  }

  /// What is below "adapter". Whether a block is RTL has names of its own (announce).
  void list(sim::fields& are) {
    are("identity", who);
    are("clock_khz", clock_khz);
    are("ports", ports);
    are("datapath_bytes", datapath_bytes);
    are("channel_depth", channel_depth);
    are("descriptor_depth", descriptor_depth);
    are("shared_read_engine", shared_read_engine);
    are("read_engine", read_engine);
    are("firmware", command);
    are("firmware", firmware_port);
    are("pcie", pcie);
    are("translation", translation);
    are("doorbell", doorbell);
    are("scheduler", scheduler);
    are("congestion", congestion);
    are("requester", requester);
    are("responder", responder);
    are("multicast", multicast);
    are("completion", completion);
    are("parser", parser);
    are("gid", gid_match);
    are("gid", gid_source);
    are("steering", steering);
    are("port", port);
    are("port2", port2);
    are("port.roce_v2", parser.roce_v2);
  }
};

/// Configuration of port `index` (from 0): `port` with what is its own.
inline mac::port_config port_config_of(const config& c, unsigned index) {
  mac::port_config own = c.port;
  own.index = static_cast<std::uint8_t>(index);
  own.rate_mbps = c.rate_mbps(index);
  return own;
}

/// "connectx3pro_40g", "connectx5_100g": all that there are.
const std::vector<std::string>& profile_names();
/// Throws sim::config_error that lists the names for any other one.
config profile(const std::string& name);

/// Announces every parameter under "adapter." with range, unit and the source of its profile's value.
void announce(sim::parameter_set& to, config& c);

}  // namespace rnic::adapter
