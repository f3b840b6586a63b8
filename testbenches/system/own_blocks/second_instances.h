// SPDX-License-Identifier: Apache-2.0
// Second instances of the model's own blocks, bound as a block of a user's own is.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "model/adapter/block_place.h"
#include "model/command/command_block.h"
#include "model/ethernet/steering.h"
#include "model/icm/translation.h"
#include "model/mac/port.h"
#include "model/parser/parser.h"
#include "model/pcie/endpoint.h"
#include "model/pcie/pcie_core.h"
#include "model/transport/requester/requester.h"
#include "model/transport/responder/read_generator.h"
#include "model/transport/responder/responder.h"

namespace rnic::system_test {

inline std::string second_name(const adapter::block_place& place) { return place.name() + ".own"; }

struct second_parser final : parser::parser {
  explicit second_parser(adapter::block_place& place)
      : parser(second_name(place), place.clock(), place.parameters().parser, *place.beside().gids[place.beside().port],
               *place.beside().match, place.beside().responder.roce_v2_port, place.around().spans,
               place.around().statistics) {
    const std::string port = std::to_string(place.beside().port + 1), own = "parser" + port;
    if (place.beside().other_match != nullptr)
      also_look_up(*place.beside().gids[1 - place.beside().port], *place.beside().other_match);
    place.bind("port" + port + "_to_" + own + "_frames", mac_in);
    place.bind(own + "_to_icrc_check_frames", roce_out);
    place.bind(own + "_to_steering_frames", ethernet_out);
    place.bind(own + "_to_port" + port + "_departures", departures);
  }
};

struct second_port final : mac::port {
  explicit second_port(adapter::block_place& place)
      : port(second_name(place), place.clock(), port_config_of(place.parameters(), place.beside().port),
             place.around().frames, place.around().spans) {
    announce(place.around().statistics);
    const std::string number = std::to_string(place.beside().port + 1), own = "port" + number;
    place.bind("icrc_insert_to_" + own + "_frames", tx_in);
    place.bind(own + "_to_requester_credits", credits_out[0]);
    place.bind(own + "_to_answer_transmit_credits", credits_out[1]);
    place.bind(own + "_to_parser" + number + "_frames", rx_out);
    place.bind(own + "_to_cnm_receiver_cnms", cnm_out);
    place.bind("icrc_check_to_" + own + "_departures", departures[0]);
    place.bind("steering_to_" + own + "_departures", departures[1]);
    place.bind("parser" + number + "_to_" + own + "_departures", departures[2]);
    bind_firmware(place.beside().rim.notices, place.parameters().command.notice_ps);
  }
};

struct second_endpoint final : pcie::endpoint {
  explicit second_endpoint(adapter::block_place& place)
      : endpoint(second_name(place), place.clock(), place.parameters().pcie, clients(place), place.beside().rim.bar0,
                 place.beside().rim.bar2, place.around().packets, place.around().spans, place.around().statistics),
        core_(pcie::core_domain::of(*this, place.around().spans)) {
    place.bind("pcie_to_command_registers", command_out);
    place.bind("pcie_to_doorbell_writes", doorbell_out);
    place.bind("completion_to_pcie_interrupts", dma().msix());
    for (unsigned client = 0; client < clients(place); ++client) {
      const std::string& block = place.beside().rim.dma_clients[client];
      place.bind(block + "_to_pcie_dma_requests", dma().client(client).request);
      place.bind("pcie_to_" + block + "_dma_responses", dma().client(client).response);
      if (block == "gather" || block == "read_generator")
        place.around().statistics.add(name() + ".dma." + block + ".full_cycles", dma().clients().full_cycles(client));
    }
    on_function_change(place.beside().rim.functions);
  }

 private:
  static unsigned clients(const adapter::block_place& place) {
    return static_cast<unsigned>(place.beside().rim.dma_clients.size());
  }
  std::unique_ptr<pcie::core_domain> core_;
};

struct second_command final : command::command_block {
  explicit second_command(adapter::block_place& place)
      : command_block(second_name(place), place.clock(), place.parameters().command) {
    announce(place.around().statistics);
    place.bind("pcie_to_command_registers", mmio);
    bind_firmware(place.beside().rim.notices);
  }
};

/// What `block` asks: the engine that both halves of the transport share, or that of its `half`.
inline std::string read_engine_of(const adapter::block_place& place, const std::string& block,
                                  const std::string& half) {
  return place.has(block + "_to_read_engine_requests") ? "read_engine" : half + "_read_engine";
}

struct second_requester final : transport::requester {
  explicit second_requester(adapter::block_place& place)
      : requester(second_name(place), place.clock(), place.parameters().requester, place.beside().icm,
                  place.beside().gids, place.beside().requester, place.around().frames, place.around().spans,
                  place.around().statistics) {
    place.bind("scheduler_to_requester_grants", grant_in);
    place.bind("requester_to_scheduler_reports", report_out);
    place.bind("requester_to_descriptor_fetch_jobs", descriptor_out);
    place.bind("descriptor_fetch_to_requester_results", descriptor_in);
    place.bind("requester_to_gather_packets", packet_out);
    place.bind("requester_to_gather_pieces", piece_out);
    place.bind("requester_to_gather_verdicts", verdict_out);
    place.bind("gather_to_requester_left", left_in);
    place.bind("gather_to_requester_events", gather_event_in);
    place.bind("gather_to_requester_addresses", address_in);
    place.bind("icrc_check_to_requester_responses", rx_in);
    place.bind("requester_to_scatter_jobs", scatter_out);
    place.bind("scatter_to_requester_reports", scatter_in);
    place.bind("requester_to_ack_timers_commands", timer_out);
    place.bind("ack_timers_to_requester_expirations", timer_in);
    place.bind("requester_to_completion_cqes", cqe_out);
    place.bind("requester_to_completion_events", event_out);
    place.bind("completion_to_requester_losses", lost_in);
    place.bind("requester_to_responder_errors", error_out);
    place.bind("responder_to_requester_errors", error_in);
    place.bind("requester_to_read_generator_congestion", notice_out);
    place.bind("requester_to_cnp_sender_cnps", cnp_out);
    place.bind("cnm_receiver_to_requester_notices", cnm_in);
    for (unsigned i = 0; i < ports; ++i) {
      const std::string credits = "port" + std::to_string(i + 1) + "_to_requester_credits";
      if (place.has(credits)) place.bind(credits, credit_in[i]);
    }
    const std::string engine = read_engine_of(place, "requester", "requester");
    place.bind("requester_to_" + engine + "_requests", read_engine.request);
    place.bind(engine + "_to_requester_grants", read_engine.grant);
    place.bind("requester_to_" + engine + "_response_requests", response_engine.request);
    place.bind(engine + "_to_requester_response_grants", response_engine.grant);
    place.bind("requester_to_keys_requests", "keys_to_requester_responses", keys);
    place.bind("requester_contexts_to_pcie_dma_requests", "pcie_to_requester_contexts_dma_responses", contexts().dma);
    count_into(place.beside().received);
    bind_firmware(place.beside().rim.notices, place.parameters().command.notice_ps);
  }
};

struct second_responder final : transport::responder {
  explicit second_responder(adapter::block_place& place)
      : responder(second_name(place), place.clock(), place.parameters().responder, place.beside().icm,
                  place.beside().gids, place.beside().responder, place.around().frames, place.around().spans,
                  place.around().statistics) {
    place.bind("icrc_check_to_responder_requests", rx_in);
    place.bind("steering_to_responder_frames", ethernet_in);
    place.bind("multicast_to_responder_copies", copies_in);
    place.bind("responder_to_translation_requests", "translation_to_responder_responses", translate);
    const std::string engine = read_engine_of(place, "responder", "responder");
    place.bind("responder_to_" + engine + "_requests", read_engine.request);
    place.bind(engine + "_to_responder_grants", read_engine.grant);
    place.bind("responder_to_keys_requests", "keys_to_responder_responses", keys);
    place.bind("keys_to_responder_revocations", keys.revoke);
    place.bind("responder_to_keys_revoked", keys.revoked);
    place.bind("responder_to_completion_cqes", cqe_out);
    place.bind("responder_to_completion_events", event_out);
    place.bind("completion_to_responder_losses", lost_in);
    place.bind("responder_to_requester_errors", error_out);
    place.bind("requester_to_responder_errors", error_in);
    place.bind("responder_to_cnp_sender_cnps", cnp_out);
    place.bind("responder_to_answer_transmit_acknowledgements", acknowledgements.job);
    place.bind("answer_transmit_to_responder_acknowledgements_room", acknowledgements.room);
    place.bind("responder_to_read_generator_commands", reads.command);
    place.bind("read_generator_to_responder_reports", reads.report);
    place.bind("responder_to_receive_fetch_jobs", fetches.job);
    place.bind("receive_fetch_to_responder_results", fetches.result);
    place.bind("responder_write_to_pcie_dma_requests", "pcie_to_responder_write_dma_responses", dma_write);
    place.bind("responder_contexts_to_pcie_dma_requests", "pcie_to_responder_contexts_dma_responses", contexts().dma);
    place.bind("responder_histories_to_pcie_dma_requests", "pcie_to_responder_histories_dma_responses",
               histories().dma);
    place.bind("responder_srqs_to_pcie_dma_requests", "pcie_to_responder_srqs_dma_responses", srqs().dma);
    count_into(place.beside().received);
  }
};

struct second_read_generator final : transport::read_generator {
  explicit second_read_generator(adapter::block_place& place)
      : read_generator(second_name(place), place.clock(), place.parameters().responder, place.around().frames,
                       place.around().spans, place.around().statistics) {
    place.bind("responder_to_read_generator_commands", command_in);
    place.bind("read_generator_to_responder_reports", report_out);
    place.bind("read_generator_to_answer_transmit_responses", answers.job);
    place.bind("answer_transmit_to_read_generator_responses_room", answers.room);
    place.bind("read_generator_to_translation_requests", "translation_to_read_generator_responses", translate);
    place.bind("read_generator_to_pcie_dma_requests", "pcie_to_read_generator_dma_responses", dma_read);
    place.bind("read_generator_to_atomic_unit_jobs", atomic_out);
    place.bind("atomic_unit_to_read_generator_outcomes", outcome_in);
    const std::string engine = read_engine_of(place, "read_generator", "responder");
    place.bind("read_generator_to_" + engine + "_requests", read_engine.request);
    place.bind(engine + "_to_read_generator_grants", read_engine.grant);
    place.bind("requester_to_read_generator_congestion", notice_in);
    place.bind("cnm_receiver_to_read_generator_notices", pacing.cnm_in);
  }
};

struct second_steering final : ethernet::steering {
  explicit second_steering(adapter::block_place& place)
      : steering(second_name(place), place.clock(), place.parameters().steering, place.beside().icm,
                 place.beside().gids, place.around().frames, place.around().statistics) {
    place.bind("steering_to_responder_frames", out);
    for (unsigned i = 0; i < ports; ++i) {
      const std::string port = std::to_string(i + 1);
      if (!place.has("parser" + port + "_to_steering_frames")) continue;
      place.bind("parser" + port + "_to_steering_frames", rx_in[i]);
      place.bind("steering_to_port" + port + "_departures", departures[i]);
    }
    place.bind("steering_groups_to_pcie_dma_requests", "pcie_to_steering_groups_dma_responses", groups().dma);
  }
};

struct second_translation final : icm::translation {
  explicit second_translation(adapter::block_place& place)
      : translation(second_name(place), place.clock(), place.parameters().translation, place.beside().icm,
                    clients(place)) {
    announce(place.around().statistics);
    unsigned client = 0;
    for (const std::string& block : blocks(place)) {
      place.bind(block + "_to_translation_requests", request[client]);
      place.bind("translation_to_" + block + "_responses", response[client]);
      ++client;
    }
    place.bind("translation_to_pcie_dma_requests", "pcie_to_translation_dma_responses", dma);
    place.bind("keys_to_pcie_dma_requests", "pcie_to_keys_dma_responses", keys().dma);
    const std::string users[] = {"requester", "responder"}, holders[] = {"gather", "responder", "scatter"};
    for (unsigned i = 0; i < 2; ++i) {
      place.bind(users[i] + "_to_keys_requests", keys().request[i]);
      place.bind("keys_to_" + users[i] + "_responses", keys().response[i]);
    }
    for (unsigned i = 0; i < 3; ++i) {
      place.bind("keys_to_" + holders[i] + "_revocations", keys().revoke[i]);
      place.bind(holders[i] + "_to_keys_revoked", keys().revoked[i]);
    }
  }

 private:
  /// Clients in their order, which is that of the ends.
  static std::vector<std::string> blocks(const adapter::block_place& place) {
    const std::string behind = "_to_translation_requests";
    std::vector<std::string> all;
    for (const adapter::block_place::end& e : place.ends()) {
      const std::string name = e.channel->name().substr(e.channel->name().rfind('.') + 1);
      if (name.size() > behind.size() && name.compare(name.size() - behind.size(), behind.size(), behind) == 0)
        all.push_back(name.substr(0, name.size() - behind.size()));
    }
    return all;
  }
  static unsigned clients(const adapter::block_place& place) { return static_cast<unsigned>(blocks(place).size()); }
};

}  // namespace rnic::system_test
