// SPDX-License-Identifier: Apache-2.0
// Every number of an adapter, block by block.
#pragma once

#include <array>
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
  std::uint16_t device_id = 0x1007;     ///< ConnectX-3 Pro (adapter control plane 1.1)
  std::uint16_t vf_device_id = 0x1004;  ///< its virtual functions
  std::array<std::uint16_t, 3> firmware{2, 42, 5000};
  std::string board = "MT_1090111019";  ///< up to 16 characters
};

/// What a block with a twin in RTL is: shadow is the model with the RTL beside it, whose first difference ends the run.
enum class implementation : std::uint8_t { model, rtl, shadow };

struct config {
  std::string profile = "connectx3pro_40g";  ///< of which the values are, where nobody changes them
  identity who;
  std::uint32_t clock_khz = 427'000;  ///< core clock (calibration 5: hca_core_clock)
  unsigned ports = 2;                 ///< Ethernet ports, 1 or 2
  unsigned datapath_bytes =
      16;  ///< that every block and channel of the core clock takes a cycle (calibration 5: 128 bit)
  /// Items of each channel between two blocks (design: covers the longest stall of a neighbour's pipeline).
  unsigned channel_depth = 16;
  /// Items of the channels for doorbells, grants, completions and DMA requests. 3 at least: one store to a BlueFlame
  /// buffer may end two descriptors and begin a third.
  unsigned descriptor_depth = 64;
  bool shared_read_engine = true;               ///< requester and responder do READs and atomics on one engine
  implementation icrc = implementation::model;  ///< its two engines
  implementation gid = implementation::model;   ///< the match of each port, and the look-ups of sources

  command::command_block::config command;
  command::firmware_port::config firmware_port;
  pcie::endpoint_config pcie;
  icm::translation_config translation;
  doorbell::config doorbell;
  scheduler::config scheduler;
  transport::congestion_config congestion;  ///< of both halves of the transport
  transport::requester_config requester;
  transport::responder_config responder;
  transport::multicast_config multicast;
  completion::completion_config completion;
  parser::parser::config parser;
  gid::match_config gid_match;    ///< of each port; its cycles are part of the receive pipeline
  gid::source_config gid_source;  ///< of each port and transmit pipeline, which begins with its cycles
  ethernet::steering::config steering;
  mac::port::config port;  ///< of every port; index is set by the adapter
};

/// "connectx3pro_40g", "connectx5_100g": all that there are.
const std::vector<std::string>& profile_names();
/// Throws sim::config_error that lists the names for any other one.
config profile(const std::string& name);

/// Announces every parameter under "adapter." with range, unit and the source of its profile's value.
void announce(sim::parameter_set& to, config& c);

}  // namespace rnic::adapter
