// SPDX-License-Identifier: Apache-2.0
#include "model/adapter/adapter.h"

#include <algorithm>
#include <utility>

#include "model/transport/congestion/qcn_cr.h"

namespace rnic::adapter {

namespace {

constexpr unsigned hand_over = 2;  // one item a cycle from a pipeline to the next
// Descriptor fetch, responder, completion, scatter, gather, READ generator, receive fetch.
constexpr unsigned translation_clients = 7;

sim::clock_period core_period(std::uint32_t khz) { return {1'000'000'000, khz, 0}; }

/// Half the core's rate, half a core period beside its edges: never on one of them.
sim::clock_period firmware_period(std::uint32_t khz) { return {2'000'000'000, khz, 500'000'000 / khz}; }

/// What is one number in several places: the datapath's width, room in the ports' egress queues, and the link that
/// software reads about.
config consistent(config c) {
  c.requester.egress_frames = c.responder.egress_frames = c.port.egress_frames;
  c.requester.port_mtu = c.port.mtu;
  c.pcie.space.device_id = c.who.device_id;
  c.pcie.space.vf_device_id = c.who.vf_device_id;
  c.pcie.space.link_generation = c.pcie.link.generation;
  c.pcie.space.link_width = c.pcie.link.width;
  c.congestion.line_mbps = {c.rate_mbps(0), c.rate_mbps(1)};
  if (c.pcie.core.khz == c.clock_khz) c.pcie.core.khz = 0;  // one clock
  c.requester.congestion = c.responder.congestion = c.congestion;
  c.requester.read_engine = c.responder.read_engine = c.read_engine;
  for (unsigned* width : {&c.requester.datapath_bytes, &c.responder.bytes_per_cycle, &c.multicast.bytes_per_cycle,
                          &c.parser.bytes_per_cycle, &c.steering.bytes_per_cycle, &c.port.datapath_bytes,
                          &c.pcie.dma.fill_bytes_per_cycle})
    *width = c.datapath_bytes;
  c.requester.response_overhead_cycles = c.responder.beat_overhead_cycles;
  if (c.pcie.core.interface_bytes == 0) c.pcie.core.interface_bytes = c.datapath_bytes;
  return c;
}

std::vector<std::unique_ptr<transport::read_engine>> make_read_engines(const std::string& adapter,
                                                                       sim::clock_domain& clock, bool shared,
                                                                       sim::statistics& stats) {
  std::vector<std::unique_ptr<transport::read_engine>> all;
  const auto make = [&](const char* name) {
    all.push_back(std::make_unique<transport::read_engine>(adapter + name, clock, stats));
  };
  if (shared) {
    make(".read_engine");
  } else {
    make(".requester_read_engine");
    make(".responder_read_engine");
  }
  return all;
}

}  // namespace

adapter::adapter(const sc_core::sc_module_name& module_name, const environment& env, const config& cfg,
                 const icrc_engine_factory& icrc_engine, const gid_match_factory& gid_match,
                 const gid_source_factory& gid_source, const own_blocks& own)
    : sc_core::sc_module(module_name),
      name_(sc_core::sc_module::name()),
      config_(consistent(sim::checked(cfg, name_))),
      core_(name_ + ".clock", env.base, core_period(config_.clock_khz)),
      firmware_clock_(name_ + ".firmware_clock", env.base, firmware_period(config_.clock_khz)),
      command_(name_ + ".command", core_, config_.command),
      firmware_dma_(name_ + ".firmware_dma", core_),
      firmware_port_(name_ + ".firmware_port", firmware_clock_, config_.firmware_port, cr_bus_, firmware_dma_),
      endpoint_(name_ + ".pcie", core_, config_.pcie, static_cast<unsigned>(dma_client::count), command_access_,
                no_registers_, env.packets, env.spans, env.statistics),
      pcie_core_(pcie::core_domain::of(endpoint_, env.spans)),
      translation_(name_ + ".translation", core_, config_.translation, icm_map_, translation_clients),
      icm_registers_(icm_map_, translation_),
      doorbell_(name_ + ".doorbell", core_, config_.doorbell, env.spans, env.statistics),
      scheduler_(name_ + ".scheduler", core_, config_.scheduler, env.spans, env.statistics),
      read_engines_(make_read_engines(name_, core_, config_.shared_read_engine, env.statistics)),
      requester_memories_(config_.requester),
      responder_memories_(config_.responder),
      requester_(name_ + ".requester", core_, config_.requester, icm_map_, {&gids_[0], &gids_[1]}, requester_memories_,
                 env.frames, env.spans, env.statistics),
      descriptor_fetch_(name_ + ".descriptor_fetch", core_, requester_memories_.descriptors, env.spans, env.statistics),
      gather_(name_ + ".gather", core_, config_.requester, make_gid_sources(name_ + ".gather", gid_source),
              requester_memories_.withdrawn, env.spans, env.statistics),
      scatter_(name_ + ".scatter", core_, config_.requester.scatter_jobs, requester_memories_.lists, env.spans,
               env.statistics),
      ack_timers_(name_ + ".ack_timers", core_, config_.requester.timers, config_.requester.log_qps, env.statistics),
      responder_(name_ + ".responder", core_, config_.responder, icm_map_, {&gids_[0], &gids_[1]}, responder_memories_,
                 env.frames, env.spans, env.statistics),
      receive_fetch_(name_ + ".receive_fetch", core_, config_.responder.receive_fetches, responder_memories_.received,
                     env.statistics),
      read_generator_(name_ + ".read_generator", core_, config_.responder, env.frames, env.spans, env.statistics),
      atomic_unit_(name_ + ".atomic_unit", core_, config_.responder.atomics, env.spans, env.statistics),
      answer_transmit_(name_ + ".answer_transmit", core_, config_.responder,
                       make_gid_sources(name_ + ".answer_transmit", gid_source), responder_memories_.roce_v2_port,
                       env.spans, env.statistics),
      cnp_sender_(name_ + ".cnp_sender", core_, config_.responder.congestion.notification,
                  config_.responder.answer.waiting, env.statistics),
      cnm_receiver_(name_ + ".cnm_receiver", core_, config_.congestion.qcn, {&gids_[0], &gids_[1]},
                    responder_memories_.roce_v2_port, env.statistics),
      multicast_(name_ + ".multicast", core_, config_.multicast, icm_map_, env.frames, env.spans, env.statistics),
      steering_(name_ + ".steering", core_, config_.steering, icm_map_, {&gids_[0], &gids_[1]}, env.frames,
                env.statistics),
      completion_(name_ + ".completion", core_, config_.completion, icm_map_, 2, 2, &env.spans),
      icrc_insert_(name_ + ".icrc_insert", core_, 2, icrc_engine(name_ + ".icrc_insert", core_), env.spans),
      icrc_check_(name_ + ".icrc_check", core_, config_.ports, icrc_engine(name_ + ".icrc_check", core_), env.spans) {
  for (unsigned i = 0; i < config_.ports; ++i) {
    const std::string number = std::to_string(i + 1);
    ports_.push_back(std::make_unique<mac::port>(name_ + ".port" + number, core_, port_config_of(config_, i),
                                                 env.frames, env.spans));
    ports_.back()->announce(env.statistics);
    connectors_.push_back(ports_.back().get());
    const std::string parser = name_ + ".parser" + number;
    gid_matches_.push_back(gid_match ? gid_match(parser, core_, gids_[i]) : nullptr);
    if (gid_matches_[i] == nullptr) gid_matches_[i] = std::make_unique<gid::gid_match>(config_.gid_match, gids_[i]);
    parsers_.push_back(std::make_unique<parser::parser>(parser, core_, config_.parser, gids_[i], *gid_matches_[i],
                                                        responder_memories_.roce_v2_port, env.spans, env.statistics));
  }
  for (unsigned i = 0; config_.ports == 2 && i < 2; ++i) {  // the model's also where the parsers' own are RTL
    gid_matches_.push_back(std::make_unique<gid::gid_match>(config_.gid_match, gids_[1 - i]));
    parsers_[i]->also_look_up(gids_[1 - i], *gid_matches_.back());
  }
  announce(env.statistics);
  name_parameters();
  bind_descriptors();
  bind_transmit();
  bind_answers();
  bind_read_engine();
  bind_receive();
  bind_ethernet();
  bind_departures();
  bind_memory();
  bind_registers();
  bind_reset();
  for (const auto& [block, make] : own) put_in(block, make, env);
  pcie_socket_ = std::make_unique<pcie::endpoint_socket>("pcie_socket", *slot_, env.base);
  for (unsigned i = 0; i < ports_.size(); ++i)
    port_sockets_.push_back(std::make_unique<payload::ethernet_port_socket>(
        std::string(ports_[i]->basename()) + "_socket", *connectors_[i], env.base));
}

gid::source_access adapter::make_gid_sources(const std::string& block, const gid_source_factory& make) {
  gid::source_access access;
  access.shared = config_.gid_source.source_ports == 1;
  access.turn = gid_sources_.empty() ? 0 : 1;
  for (unsigned port = 0; port < gids_.size(); ++port) {
    auto made = make ? make(block + ".gid_source" + std::to_string(port + 1), core_, gids_[port]) : nullptr;
    if (made == nullptr) made = std::make_unique<gid::gid_source>(config_.gid_source, gids_[port]);
    access.by_port[port] = made.get();
    gid_sources_.push_back(std::move(made));
  }
  return access;
}

std::vector<const sim::clock_domain*> adapter::clocks() const {
  std::vector<const sim::clock_domain*> all{&core_};
  if (pcie_core_) all.push_back(&pcie_core_->clock());
  return all;
}

void adapter::end_of_elaboration() {
  if (pcie_socket_->bound()) pcie_socket_->connect();
  if (!slot_->connected()) throw sim::config_error(std::string(pcie_socket_->name()) + ": not bound");
  for (const auto& s : port_sockets_) s->connect();
  if (std::none_of(connectors_.begin(), connectors_.end(), [](const mac::port_if* p) { return p->attached(); }))
    throw sim::config_error(std::string(port_sockets_[0]->transmit.name()) + ": not bound, no port has a cable");
}

/// Under which path the parameters of a block are.
void adapter::name_parameters() {
  const auto name = [this](sc_core::sc_object& block, const std::string& path) {
    parameter_paths_.emplace_back("parameters", path);
    block.add_attribute(parameter_paths_.back());
  };
  name(*this, "adapter");
  name(command_, "adapter.firmware");
  name(firmware_port_, "adapter.firmware");
  name(endpoint_, "adapter.pcie");
  if (pcie_core_) name(pcie_core_->core(), "adapter.pcie");
  name(translation_, "adapter.translation");
  name(doorbell_, "adapter.doorbell");
  name(scheduler_, "adapter.scheduler");
  name(requester_, "adapter.requester");
  name(descriptor_fetch_, "adapter.requester");
  name(gather_, "adapter.requester");
  name(scatter_, "adapter.requester");
  name(ack_timers_, "adapter.requester.timers");
  name(responder_, "adapter.responder");
  name(receive_fetch_, "adapter.responder");
  for (const auto& e : read_engines_) name(*e, "adapter");
  name(read_generator_, "adapter.responder");
  name(atomic_unit_, "adapter.responder.atomics");
  name(answer_transmit_, "adapter.responder");
  name(cnp_sender_, "adapter.congestion.notification");
  name(cnm_receiver_, "adapter.congestion.qcn");
  name(multicast_, "adapter.multicast");
  name(steering_, "adapter.steering");
  name(completion_, "adapter.completion");
  name(icrc_insert_, "rtl");
  name(icrc_check_, "rtl");
  for (const auto& p : parsers_) name(*p, "adapter.parser");
  for (const auto& p : ports_) name(*p, "adapter.port");
}

template <class T>
sim::fifo<T>& adapter::connect(const std::string& name, sim::fifo_out<T>& from, sim::fifo_in<T>& to, unsigned depth,
                               unsigned latency) {
  auto made = std::make_shared<sim::fifo<T>>(name_ + "." + name, core_, depth, latency);
  channels_.push_back(made);
  from.bind(*made);
  to.bind(*made);
  return *made;
}

void adapter::connect_dma(dma_client client, const std::string& block, pcie::dma_port& port) {
  auto& engine = endpoint_.dma().client(static_cast<unsigned>(client));
  dma_clients_[static_cast<std::size_t>(client)] = block;
  connect(block + "_to_pcie_dma_requests", port.request, engine.request, config_.descriptor_depth);
  connect("pcie_to_" + block + "_dma_responses", engine.response, port.response, config_.descriptor_depth);
}

void adapter::connect_translation(unsigned client, const std::string& block, icm::translate_port& port) {
  connect(block + "_to_translation_requests", port.request, translation_.request[client], config_.descriptor_depth);
  connect("translation_to_" + block + "_responses", translation_.response[client], port.response,
          config_.descriptor_depth);
}

void adapter::connect_keys(unsigned client, const std::string& block, icm::key_port& port) {
  icm::key_engine& engine = translation_.keys();
  const unsigned depth = config_.descriptor_depth;
  connect(block + "_to_keys_requests", port.request, engine.request[client], depth);
  connect("keys_to_" + block + "_responses", engine.response[client], port.response, depth);
}

template <class Port>
void adapter::connect_revocations(unsigned holder, const std::string& block, Port& port) {
  icm::key_engine& engine = translation_.keys();
  connect("keys_to_" + block + "_revocations", engine.revoke[holder], port.revoke, config_.descriptor_depth);
  connect(block + "_to_keys_revoked", port.revoked, engine.revoked[holder], config_.descriptor_depth);
}

/// Software's doorbells to completions.
void adapter::bind_descriptors() {
  const unsigned depth = config_.descriptor_depth;
  connect("pcie_to_command_registers", endpoint_.command_out, command_.mmio, config_.channel_depth);
  connect("pcie_to_doorbell_writes", endpoint_.doorbell_out, doorbell_.in, config_.channel_depth);
  connect("doorbell_to_scheduler_sends", doorbell_.send_out, scheduler_.doorbell_in, depth);
  connect("doorbell_to_completion_arms", doorbell_.queue_out, completion_.doorbell, depth);
  connect("scheduler_to_requester_grants", scheduler_.grant_out, requester_.grant_in, depth);
  connect("requester_to_scheduler_reports", requester_.report_out, scheduler_.report_in, depth);
  connect("requester_to_descriptor_fetch_jobs", requester_.descriptor_out, descriptor_fetch_.job_in, hand_over);
  // Room for all that can be under way, since what is read ahead stays there while nobody waits for it.
  connect("descriptor_fetch_to_requester_results", descriptor_fetch_.result_out, requester_.descriptor_in,
          2 * config_.requester.processing_units);
  connect("requester_to_ack_timers_commands", requester_.timer_out, ack_timers_.commands, hand_over);
  connect("ack_timers_to_requester_expirations", ack_timers_.expirations, requester_.timer_in, hand_over);
  connect("responder_to_receive_fetch_jobs", responder_.fetches.job, receive_fetch_.job_in, hand_over);
  connect("receive_fetch_to_responder_results", receive_fetch_.result_out, responder_.fetches.result, hand_over);
  connect("requester_to_completion_cqes", requester_.cqe_out, completion_.cqe[0], depth);
  connect("responder_to_completion_cqes", responder_.cqe_out, completion_.cqe[1], depth);
  connect("requester_to_completion_events", requester_.event_out, completion_.event[0], depth);
  connect("responder_to_completion_events", responder_.event_out, completion_.event[1], depth);
  connect("requester_to_responder_errors", requester_.error_out, responder_.error_in, depth);
  connect("responder_to_requester_errors", responder_.error_out, requester_.error_in, depth);
  connect("requester_to_read_generator_congestion", requester_.notice_out, read_generator_.notice_in, depth);
  using cnp = transport::cnp_sender;
  connect("requester_to_cnp_sender_cnps", requester_.cnp_out, cnp_sender_.notices[cnp::requester], depth);
  connect("responder_to_cnp_sender_cnps", responder_.cnp_out, cnp_sender_.notices[cnp::responder], depth);
  using cnm = transport::cnm_receiver;
  connect("cnm_receiver_to_requester_notices", cnm_receiver_.notices[cnm::requests], requester_.cnm_in, hand_over);
  connect("cnm_receiver_to_read_generator_notices", cnm_receiver_.notices[cnm::responses],
          read_generator_.pacing.cnm_in, hand_over);
  connect("completion_to_requester_losses", completion_.losses[0], requester_.lost_in, depth);
  connect("completion_to_responder_losses", completion_.losses[1], responder_.lost_in, depth);
  connect("completion_to_pcie_interrupts", completion_.msix, endpoint_.dma().msix(), depth);
}

void adapter::bind_transmit() {
  connect("requester_to_gather_packets", requester_.packet_out, gather_.job_in, hand_over);
  connect("requester_to_gather_pieces", requester_.piece_out, gather_.piece_in, 2 * transport::gather_job::most_pieces);
  connect("requester_to_gather_verdicts", requester_.verdict_out, gather_.verdict_in, hand_over);
  connect("gather_to_requester_events", gather_.event_out, requester_.gather_event_in, hand_over);
  connect("gather_to_requester_addresses", gather_.address_out, requester_.address_in, config_.descriptor_depth);
  // Both channels are the transmit pipeline as well: a register for each of its cycles.
  const unsigned pipeline =
      config_.channel_depth + config_.gid_source.source_cycles + config_.requester.transmit.cycles();
  connect("gather_to_requester_left", gather_.left_out, requester_.left_in, pipeline);
  connect("gather_to_icrc_insert_frames", gather_.tx_out, icrc_insert_.inputs[0], pipeline);
  using source = transport::egress_source;
  const unsigned credits = config_.descriptor_depth;
  for (unsigned i = 0; i < ports_.size(); ++i) {
    const std::string port = ports_[i]->basename();
    connect("icrc_insert_to_" + port + "_frames", icrc_insert_.outputs[i], ports_[i]->tx_in, config_.channel_depth)
        .forward_by(sim::forwarding::cut_through);
    auto& returned = ports_[i]->credits_out;
    connect(port + "_to_requester_credits", returned[static_cast<unsigned>(source::requester)], requester_.credit_in[i],
            credits);
    connect(port + "_to_answer_transmit_credits", returned[static_cast<unsigned>(source::responder)],
            answer_transmit_.credit_in[i], credits);
  }
}

/// Each half asks its engine, which is the same one where they share it.
void adapter::bind_read_engine() {
  using engine = transport::read_engine;
  const auto bind = [this](engine& to, engine::user user, const std::string& name, const std::string& what,
                           transport::read_engine_port& port) {
    const std::string block = to.basename();
    connect(name + "_to_" + block + "_" + what + "requests", port.request, to.request[user], hand_over);
    connect(block + "_to_" + name + "_" + what + "grants", to.grant[user], port.grant, hand_over);
  };
  bind(*read_engines_.front(), engine::requester, "requester", "", requester_.read_engine);
  bind(*read_engines_.front(), engine::responses, "requester", "response_", requester_.response_engine);
  bind(*read_engines_.back(), engine::responder, "responder", "", responder_.read_engine);
  bind(*read_engines_.back(), engine::generator, "read_generator", "", read_generator_.read_engine);
}

void adapter::bind_answers() {
  connect("responder_to_read_generator_commands", responder_.reads.command, read_generator_.command_in, hand_over);
  connect("read_generator_to_responder_reports", read_generator_.report_out, responder_.reads.report, hand_over);
  connect("read_generator_to_atomic_unit_jobs", read_generator_.atomic_out, atomic_unit_.job_in, hand_over);
  connect("atomic_unit_to_read_generator_outcomes", atomic_unit_.outcome_out, read_generator_.outcome_in, hand_over);
  struct user {
    transport::answer_port* port;
    std::string block, what;
  } const users[transport::answer_transmit::users] = {{&read_generator_.answers, "read_generator", "responses"},
                                                      {&responder_.acknowledgements, "responder", "acknowledgements"},
                                                      {&cnp_sender_.answers, "cnp_sender", "notifications"}};
  for (unsigned i = 0; i < transport::answer_transmit::users; ++i) {
    const user& u = users[i];
    connect(u.block + "_to_answer_transmit_" + u.what, u.port->job, answer_transmit_.from[i].job, hand_over);
    connect("answer_transmit_to_" + u.block + "_" + u.what + "_room", answer_transmit_.from[i].room, u.port->room,
            transport::answer_transmit::room_depth(config_.responder));
  }
  // The channel is the pipeline as well: a register for each of its cycles.
  connect("answer_transmit_to_icrc_insert_frames", answer_transmit_.tx_out, icrc_insert_.inputs[1],
          config_.channel_depth + config_.gid_source.source_cycles + config_.responder.answer.cycles());
}

void adapter::bind_receive() {
  for (unsigned i = 0; i < ports_.size(); ++i) {
    const std::string port = ports_[i]->basename(), parser = parsers_[i]->basename();
    connect(port + "_to_" + parser + "_frames", ports_[i]->rx_out, parsers_[i]->mac_in, hand_over)
        .forward_by(sim::forwarding::cut_through);
    connect(port + "_to_cnm_receiver_cnms", ports_[i]->cnm_out, cnm_receiver_.cnms[i], config_.channel_depth);
    connect(parser + "_to_icrc_check_frames", parsers_[i]->roce_out, icrc_check_.inputs[i], config_.channel_depth)
        .forward_by(sim::forwarding::cut_through);
  }
  connect("icrc_check_to_responder_requests", icrc_check_.requests, responder_.rx_in, config_.channel_depth);
  connect("icrc_check_to_multicast_datagrams", icrc_check_.groups, multicast_.in, config_.channel_depth);
  connect("multicast_to_responder_copies", multicast_.out, responder_.copies_in, config_.channel_depth);
  // The channel is the receive pipeline of responses as well: a register for each of its cycles.
  const unsigned response_cycles = config_.requester.response.cycles();
  connect("icrc_check_to_requester_responses", icrc_check_.responses, requester_.rx_in,
          config_.channel_depth + response_cycles, response_cycles);
  connect("requester_to_scatter_jobs", requester_.scatter_out, scatter_.job_in, hand_over);
  connect("scatter_to_requester_reports", scatter_.done_out, requester_.scatter_in, hand_over);
}

/// Frames that are not RoCE: to the receive queues of Ethernet queue pairs.
void adapter::bind_ethernet() {
  connect("steering_to_responder_frames", steering_.out, responder_.ethernet_in, config_.channel_depth);
  for (unsigned i = 0; i < ports_.size(); ++i)
    connect(std::string(parsers_[i]->basename()) + "_to_steering_frames", parsers_[i]->ethernet_out, steering_.rx_in[i],
            config_.channel_depth)
        .forward_by(sim::forwarding::cut_through);
}

/// What has left the ports' ingress buffers: until then all that waits behind them has its room there.
void adapter::bind_departures() {
  const unsigned depth = config_.descriptor_depth;
  for (unsigned i = 0; i < ports_.size(); ++i) {
    auto& to = ports_[i]->departures;
    const std::string port = ports_[i]->basename(), parser = parsers_[i]->basename();
    connect("icrc_check_to_" + port + "_departures", icrc_check_.departures[i], to[0], depth);
    connect("steering_to_" + port + "_departures", steering_.departures[i], to[1], depth);
    connect(parser + "_to_" + port + "_departures", parsers_[i]->departures, to[2], depth);
  }
}

void adapter::bind_memory() {
  connect_translation(0, "descriptor_fetch", descriptor_fetch_.translate);
  connect_translation(1, "responder", responder_.translate);
  connect_translation(2, "completion", completion_.pages.port);
  connect_dma(dma_client::descriptor_fetch, "descriptor_fetch", descriptor_fetch_.dma);
  connect_translation(3, "scatter", scatter_.translate);
  connect_translation(4, "gather", gather_.translate);
  connect_translation(5, "read_generator", read_generator_.translate);
  connect_translation(6, "receive_fetch", receive_fetch_.translate);
  connect_revocations(0, "gather", gather_.keys);
  connect_revocations(1, "responder", responder_.keys);
  connect_revocations(2, "scatter", scatter_.keys);
  connect_dma(dma_client::gather, "gather", gather_.dma);
  connect_dma(dma_client::scatter, "scatter", scatter_.dma);
  connect_dma(dma_client::requester_context, "requester_contexts", requester_.contexts().dma);
  connect_dma(dma_client::responder_write, "responder_write", responder_.dma_write);
  connect_dma(dma_client::receive_fetch, "receive_fetch", receive_fetch_.dma);
  connect_dma(dma_client::read_generator, "read_generator", read_generator_.dma_read);
  connect_dma(dma_client::atomic_unit_read, "atomic_unit_read", atomic_unit_.dma_read);
  connect_dma(dma_client::atomic_unit_write, "atomic_unit_write", atomic_unit_.dma_write);
  connect_dma(dma_client::responder_context, "responder_contexts", responder_.contexts().dma);
  connect_dma(dma_client::responder_history, "responder_histories", responder_.histories().dma);
  connect_dma(dma_client::responder_srq, "responder_srqs", responder_.srqs().dma);
  connect_dma(dma_client::multicast_group, "multicast_groups", multicast_.groups().dma);
  connect_dma(dma_client::steering_group, "steering_groups", steering_.groups().dma);
  connect_keys(0, "requester", requester_.keys);
  connect_keys(1, "responder", responder_.keys);
  connect_dma(dma_client::translation, "translation", translation_.dma);
  connect_dma(dma_client::keys, "keys", translation_.keys().dma);
  connect_dma(dma_client::completion, "completion", completion_.dma);
  connect_dma(dma_client::completion_cq, "completion_cq_cache", completion_.cqs.dma);
  connect_dma(dma_client::completion_eq, "completion_eq_cache", completion_.eqs.dma);
  connect_dma(dma_client::firmware, "firmware_dma", firmware_dma_.dma);
}

/// Firmware's way to the blocks.
void adapter::bind_registers() {
  using register_bus::cr_base;
  cr_bus_.map(cr_base::icm, icm_registers_);
  cr_bus_.map(cr_base::doorbell, doorbell_);
  const auto transport_base = static_cast<std::uint32_t>(cr_base::transport);
  cr_bus_.map(transport_base, transport::cr::responder_offset, requester_);
  cr_bus_.map(transport_base + transport::cr::responder_offset, transport::cr::responder_offset, responder_);
  cr_bus_.map(transport_base + transport::cr::multicast_offset, transport::cr::responder_offset, multicast_);
  cr_bus_.map(transport_base + transport::cr::answer_offset, transport::cr::responder_offset, answer_transmit_);
  cr_bus_.map(transport_base + transport::cr::generator_offset, transport::cr::responder_offset,
              *read_generator_.registers()[0]);
  cr_bus_.map(transport_base + transport::cr::cnm_offset, transport::cr::responder_offset, cnm_receiver_);
  cr_bus_.map(cr_base::completion, completion_);
  cr_bus_.map(cr_base::traffic, traffic_);
  cr_bus_.map(cr_base::scheduler, scheduler_);
  gather_.count_into(traffic_.requests_sent);
  answer_transmit_.count_into(traffic_.answers_sent);
  requester_.count_into(traffic_.answers_received);
  responder_.count_into(traffic_.requests_received);
  for (unsigned i = 0; i < ports_.size(); ++i) {
    cr_bus_.map(cr_base::gid, i, gids_[i]);
    cr_bus_.map(cr_base::mac, i, *ports_[i]);
    cr_bus_.map(cr_base::steering, i, *steering_.registers()[i]);
  }
  cr_bus_.map(cr_base::command, command_);
  cr_bus_.map(cr_base::pcie, endpoint_);
  command_.bind_firmware(firmware_port_.notices);
  firmware_dma_.bind_answers(firmware_port_.dma_answers);
  for (const auto& p : ports_) p->bind_firmware(firmware_port_.notices, config_.command.notice_ps);
  requester_.bind_firmware(firmware_port_.notices, config_.command.notice_ps);
  firmware_port_.bind_icm([this](std::uint64_t address) { return icm_map_.translate(address); });
}

/// What the reset register and a function-level reset reach. DMA stops first; firmware starts it again when the blocks
/// have come to rest.
void adapter::bind_reset() {
  endpoint_.on_function_change(command_access_);
  std::vector<register_bus::reset_target_if*> targets{
      &endpoint_, &command_,   &doorbell_,   &scheduler_, &requester_,       &responder_,   &completion_,
      &steering_, &multicast_, &cnp_sender_, &traffic_,   &answer_transmit_, &cnm_receiver_};
  for (unsigned i = 0; i < ports_.size(); ++i) {
    targets.push_back(&gids_[i]);
    targets.push_back(ports_[i].get());
  }
  for (register_bus::reset_target_if* t : targets) firmware_port_.add_reset_target(*t);
}

/// Counters of the blocks that do not announce their own when they are made.
void adapter::announce(sim::statistics& to) const {
  command_.announce(to);
  to.add(name_ + ".registers.unclaimed", cr_bus_.unclaimed());
  translation_.announce(to);
  completion_.announce(to);
  icrc_insert_.announce(to);
  icrc_check_.announce(to);
  for (const auto& [client, block] :
       {std::pair{dma_client::gather, "gather"}, std::pair{dma_client::read_generator, "read_generator"}})
    to.add(endpoint_.name() + ".dma." + block + ".full_cycles",
           endpoint_.dma().clients().full_cycles(static_cast<unsigned>(client)));
}

}  // namespace rnic::adapter
