// SPDX-License-Identifier: Apache-2.0
#include "model/transport/responder/responder.h"

namespace rnic::transport {

namespace {

const responder_config& checked(const responder_config& c, const std::string& name) {
  if (c.bytes_per_cycle == 0) throw sim::config_error(name + ".bytes_per_cycle: must be 1 or more");
  return sim::checked(c, name);
}

}  // namespace

responder::responder(std::string name, sim::clock_domain& domain, const responder_config& config,
                     const icm::icm_map& map, const std::array<const gid::gid_table*, 2>& gids,
                     responder_memories& shared, payload::frame_pool& frames, sim::span_recorder& spans,
                     sim::statistics& stats)
    : clocked_block(name, domain),
      rx_in(*this),
      ethernet_in(*this),
      copies_in(*this),
      dma_write(*this),
      translate(*this),
      keys(*this),
      cqe_out(*this),
      event_out(*this),
      error_out(*this),
      error_in(*this),
      lost_in(*this),
      cnp_out(*this),
      acknowledgements(*this, config.answer.waiting),
      reads(*this, config),
      fetches(*this, config, shared.received),
      config_(checked(config, this->name())),
      contexts_(this->name() + ".contexts", *this, config.contexts, map, icm::table::qpc, 128),
      histories_(this->name() + ".histories", *this, config.histories, map, icm::table::rdmarc, 0),
      rings_(*this, config_.history_ports, histories_),
      slots_(*this, config.slots),
      backlog_(rings_),
      flows_(*this, config_, contexts_, backlog_, slots_, drops_),
      writes_(dma_write),
      completions_(*this, config_, cqe_out, event_out, writes_, spans),
      receives_(this->name() + ".srqs", *this, config_, map, fetches, completions_),
      places_(*this, config_, registers_, translate, flows_, slots_),
      marked_(config_.congestion.notification, frames, cnp_out),
      answers_(*this, config_, flows_, acknowledgements, reads, frames, spans),
      parked_(*this, config_, flows_, answers_, acknowledgements),
      withdrawal_(*this, keys, slots_, writes_, reads, completions_),
      held_(*this, config_, flows_, contexts_, backlog_, rings_, reads, answers_, writes_, spans),
      errors_(*this, config_, flows_, contexts_, slots_, places_, receives_, completions_, answers_, drops_, fetches),
      returns_(*this, flows_, reads, rings_, answers_, withdrawal_, completions_, errors_, drops_),
      commit_(*this, flows_, slots_, writes_, completions_, withdrawal_, answers_, held_, rings_, errors_, drops_,
              spans),
      intake_(*this, config_, slots_, places_, receives_, drops_, spans),
      requests_(*this, registers_, {gids[0], gids[1]}, intake_, places_, receives_, drops_),
      plain_(*this, registers_, gids, contexts_, flows_, intake_, receives_, drops_),
      admission_(*this, config_, registers_, {rx_in, copies_in, ethernet_in}, flows_, slots_, places_, receives_,
                 requests_, plain_, marked_, read_engine, drops_, spans),
      control_(
          *this, registers_, shared.roce_v2_port,
          {flows_, contexts_, histories_, backlog_, receives_, completions_, answers_, parked_, held_, reads, errors_},
          {{0x00, completions_.errors.local_length},
           {0x08, completions_.errors.local_operation},
           {0x18, completions_.errors.local_protection},
           {0x20, completions_.errors.flushed},
           {0x48, completions_.errors.remote_invalid},
           {0x50, completions_.errors.remote_access},
           {0x68, requests_.rnr()},
           {0x100, requests_.out_of_sequence()},
           {0x118, drops_.no_wqe},
           {0x130, requests_.duplicates()}}) {
  show_inputs();
  announce(stats);
}

void responder::show_inputs() {
  translate.response.show_in(filled_, of_translations);
  fetches.result.show_in(filled_, of_descriptors);
  keys.response.show_in(filled_, of_keys);
  error_in.show_in(filled_, of_errors);
  lost_in.show_in(filled_, of_lost);
  reads.report.show_in(filled_, of_reports);
  acknowledgements.room.show_in(filled_, of_room);
  rx_in.show_in(filled_, of_requests);
  copies_in.show_in(filled_, of_copies);
  ethernet_in.show_in(filled_, of_plain);
  dma_write.response.show_in(filled_, of_written);
}

void responder::announce(sim::statistics& stats) {
  const std::string& n = name();
  admission_.announce(stats, n);
  requests_.announce(stats, n);
  stats.add(n + ".reads_held", backlog_.kept());
  withdrawal_.announce(stats, n);
  answers_.announce(stats, n);
  parked_.announce(stats, n);
  stats.add(n + ".context_waits", flows_.context_waits);
  flows_.ports().announce(stats);
  rings_.ports().announce(stats);
  receives_.contexts().ports().announce(stats);
  const std::pair<const char*, const std::uint64_t*> drops[] = {{"no_qp", &drops_.no_qp},
                                                                {"state", &drops_.state},
                                                                {"service", &drops_.service},
                                                                {"address", &drops_.address},
                                                                {"pkey", &drops_.pkey},
                                                                {"qkey", &drops_.qkey},
                                                                {"mad_length", &drops_.mad_length},
                                                                {"length", &drops_.length},
                                                                {"halted", &drops_.halted},
                                                                {"error", &drops_.error},
                                                                {"sequence", &drops_.sequence},
                                                                {"duplicate_read", &drops_.duplicate_read},
                                                                {"duplicate_atomic", &drops_.duplicate_atomic},
                                                                {"no_wqe", &drops_.no_wqe},
                                                                {"unreliable", &drops_.unreliable},
                                                                {"ethernet_no_wqe", &drops_.ethernet_no_wqe},
                                                                {"ethernet_vlan", &drops_.ethernet_vlan},
                                                                {"ethernet_function", &drops_.ethernet_function},
                                                                {"function", &drops_.function},
                                                                {"vlan", &drops_.vlan}};
  for (const auto& [reason, counter] : drops) stats.add(n + ".drop." + reason, *counter);
  plain_.announce(stats, n);
  completions_.announce(stats, n);
  marked_.announce(n, stats);
  contexts_.announce(stats);
  histories_.announce(stats);
  receives_.contexts().on_chip().announce(stats);
}

void responder::tick() {
  contexts_.service();
  read_engine.work();
  histories_.service();
  if (holds(of_translations) && translate.response.can_pop()) places_.translated(translate.response.pop());
  if (holds(of_descriptors) && fetches.result.can_pop()) take_fetched();
  if (holds(of_written)) writes_.work();
  if (holds(of_keys)) withdrawal_.take_answer();
  if (holds(of_errors)) errors_.take(error_in);
  if (holds(of_lost)) errors_.take(lost_in);
  if (holds(of_reports)) returns_.work();
  if (holds(of_room)) acknowledgements.work();
  fetches.work();
  receives_.work();
  if (!slots_.empty()) commit_.work();
  answers_.send();
  errors_.poll();
  errors_.attend();
  held_.work();
  receives_.work_flushes();
  completions_.work();
  errors_.tell(error_out);
  withdrawal_.work();
  parked_.park();
  flows_.leave();
  parked_.bring_back();
  control_.work();
  answers_.hand();
  reads.work(writes_.done());
  places_.work();
  if (holds(of_requests) || holds(of_copies) || holds(of_plain) || admission_.waits()) admission_.work();
  held_.watch();
  commit_.watch();
  parked_.watch();
}

/// To whom it goes is in its place.
void responder::take_fetched() {
  const receive_fetch_result r = fetches.result.pop();
  if (r.place.in == receive_place::part::error_record)
    errors_.fetched(r);
  else
    receives_.fetched(r);
}

}  // namespace rnic::transport
