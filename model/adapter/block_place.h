// SPDX-License-Identifier: Apache-2.0
// The place of a block in the adapter, and a block of one's own in it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/adapter/adapter_config.h"
#include "model/gid/gid_match_if.h"
#include "model/gid/gid_table.h"
#include "model/gid/source_reader.h"
#include "model/icm/icm_map.h"
#include "model/payload/frame.h"
#include "model/payload/tlp.h"
#include "model/pcie/dma_if.h"
#include "model/pcie/function_listener_if.h"
#include "model/register_bus/interrupt_lines.h"
#include "model/sim/clock_domain.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"
#include "model/transport/requester/shared_memories.h"
#include "model/transport/responder/shared_memories.h"
#include "model/transport/traffic_counters.h"

namespace rnic::adapter {

/// What an adapter shares with the rest of the simulation.
struct environment {
  sim::timebase& base;
  sim::span_recorder& spans;
  sim::statistics& statistics;
  payload::frame_pool& frames;
  payload::tlp_pool& packets;
};

/// What a block of the user's own finds where a block of the adapter was: the channels that end there, the clock, the
/// parameters, and what the data sheet of that block names beside channels. A factory makes its block, a
/// sim::clocked_block of clock() below name(), and binds its ports; then the block has the place, and the one that was
/// there is never ticked again: nothing that it does can be seen. A block that has registers
/// (register_bus::cr_target_if, cr_parts), is reset (reset_target_if), does what registers of others say
/// (icm::translation_control_if), has a connector (mac::port_if, pcie::endpoint_if) or answers the endpoint
/// (pcie::register_file_if, function_listener_if) needs one that has these interfaces, too. All of this happens while
/// the adapter is built; a run does not know of it and pays nothing. Blocks of one's own are the first to go when the
/// adapter does: pools of what they have sent (payload::pool, of BlueFlame WQEs for instance) must outlive it.
class block_place {
 public:
  /// What the blocks at the rim have beside channels.
  struct rim_access {
    /// Ports, command and requester: firmware's interrupt inputs, with a pulse parameters().command.notice_ps after a
    /// change.
    register_bus::interrupt_lines& notices;
    pcie::register_file_if& bar0;                 ///< pcie: who answers reads of BAR0
    pcie::register_file_if& bar2;                 ///< pcie: the same of BAR2
    pcie::function_listener_if& functions;        ///< pcie: who is told of resets of functions, and of their number
    const std::vector<std::string>& dma_clients;  ///< pcie: names of blocks in channels, in the order of their turns
  };
  /// What blocks have that does not go through a channel. Each is for those whose data sheets name it.
  struct beside_channels {
    gid::source_access sources;  ///< gather and answer_transmit: the pipeline's look-ups of sources
    std::array<const gid::gid_table*, 2> gids;
    icm::icm_map& icm;
    /// The requester has one side of each, and of the other descriptor_fetch the port to write descriptors, gather two
    /// to read what was withdrawn, scatter one of the lists.
    transport::requester_memories& requester;
    /// The responder has one side of each, and of the other receive_fetch the port to write what is received; parsers,
    /// answer_transmit and cnm_receiver read the register.
    transport::responder_memories& responder;
    transport::traffic_table& sent;      ///< gather and answer_transmit: count_into
    transport::traffic_table& received;  ///< requester and responder: count_into
    gid::gid_match_if* match;            ///< parser: the port's, and of the other port's table,
    gid::gid_match_if* other_match;      ///< where it has one; nullptr elsewhere
    unsigned port;                       ///< parser and port: 0 or 1
    rim_access rim;
  };
  enum class direction : std::uint8_t { in, out };
  struct end {
    sim::channel* channel;
    direction to;
    bool bound = false;
  };

  /// Every channel of `clock` that ends at `of` is an end of the place.
  block_place(sim::clocked_block& of, std::string adapter, const config& parameters, const environment& around,
              beside_channels more);

  /// Of the block that was there, "a.adapter.scheduler": stages of messages are known by it, and counters, which are
  /// free since those of the other block are forgotten. Lives as long as the adapter. A block of one's own is called
  /// name() + ".own", or what one likes instead of own.
  const std::string& name() const { return of_.name(); }
  sim::clock_domain& clock() const { return of_.domain(); }
  /// Of the whole adapter, and what is one number in several places is the same in all of them.
  const config& parameters() const { return parameters_; }
  const environment& around() const { return around_; }
  const beside_channels& beside() const { return more_; }

  /// The channels that end here, in order of construction. Not all of them are there in each configuration.
  const std::vector<end>& ends() const { return ends_; }
  /// Whether the channel with this name in the adapter ("doorbell_to_scheduler_sends") ends here.
  bool has(const std::string& channel) const;

  /// A port of the new block is to be the end of this channel. Throws sim::config_error where no such channel ends
  /// here in this direction, or where it carries something else.
  template <class T>
  void bind(const std::string& channel, sim::fifo_in<T>& port) {
    bind_to<T>(find(channel, direction::in), port);
  }
  template <class T>
  void bind(const std::string& channel, sim::fifo_out<T>& port) {
    bind_to<T>(find(channel, direction::out), port);
  }
  /// A port with requests and responses: "scatter_to_translation_requests" and "translation_to_scatter_responses" of
  /// scatter's translation.
  template <class Port>
  void bind(const std::string& requests, const std::string& responses, Port& port) {
    bind(requests, port.request);
    bind(responses, port.response);
  }

  /// Gives the place to `block`. Throws sim::config_error where a channel that ends here was not bound.
  void give_to(sim::clocked_block& block);

 private:
  end& find(const std::string& channel, direction to);
  [[noreturn]] void refuse(const std::string& what) const;
  template <class T, class Port>
  void bind_to(end& e, Port& port) {
    auto* channel = dynamic_cast<sim::fifo<T>*>(e.channel);
    if (channel == nullptr) refuse(e.channel->name() + " carries other items than this port");
    if (e.bound) refuse(e.channel->name() + " is bound twice");
    e.bound = true;
    bindings_.push_back([channel, &port] { port.bind(*channel); });
  }

  sim::clocked_block& of_;
  const std::string adapter_;
  const config& parameters_;
  const environment& around_;
  const beside_channels more_;
  std::vector<end> ends_;
  std::vector<std::function<void()>> bindings_;
};

/// Makes a block and binds its ports to those of the place.
using block_factory = std::function<std::unique_ptr<sim::clocked_block>(block_place& place)>;

/// By name of the block that they are put in the place of: scheduler, doorbell, requester, descriptor_fetch, gather,
/// scatter, ack_timers, read_engine (or requester_read_engine, responder_read_engine), responder, receive_fetch,
/// atomic_unit, read_generator, answer_transmit, cnp_sender, cnm_receiver, multicast, steering, translation,
/// completion, parser1, parser2, icrc_insert, icrc_check, port1, port2, pcie, command.
using own_blocks = std::map<std::string, block_factory>;

}  // namespace rnic::adapter
