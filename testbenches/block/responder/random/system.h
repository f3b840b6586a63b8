// SPDX-License-Identifier: Apache-2.0
// The responder, the blocks that work for it, and their random neighbours.
#pragma once

#include <array>
#include <deque>
#include <string>

#include "model/gid/gid_cr.h"
#include "testbenches/block/responder/random/host_memory.h"
#include "testbenches/block/responder/random/key_engine.h"
#include "testbenches/block/responder/random/peers.h"
#include "testbenches/block/responder/random/queues.h"
#include "testbenches/block/responder/random/setup.h"
#include "testbenches/block/responder/random/translator.h"

namespace rnic::transport::random_test {

/// Puts a channel between two blocks.
template <class Out, class Fifo, class In>
void connect(Out& from, Fifo& through, In& to) {
  from.bind(through);
  to.bind(through);
}

/// The responder's half of an adapter, with the channels inside of it.
struct half {
  half(sim::clock_domain& d, const responder_config& c)
      : memories(c),
        requests("responder", d, c, map, {&gids[0], &gids[1]}, memories, frames, spans, stats),
        fetches("receive_fetch", d, c.receive_fetches, memories.received, stats),
        engine("read_engine", d, stats),
        reads("read_generator", d, c, frames, spans, stats),
        atomics("atomic_unit", d, c.atomics, spans, stats),
        notifications("cnp_sender", d, c.congestion.notification, c.answer.waiting, stats),
        answers("answer_transmit", d, c, {{&sources[0], &sources[1]}}, memories.roce_v2_port, spans, stats),
        fetch_jobs("fetch_jobs", d, 2),
        fetch_results("fetch_results", d, 2),
        engine_requests{{{"read_requests", d, 2}, {"piece_requests", d, 2}}},
        engine_grants{{{"read_grants", d, 2}, {"piece_grants", d, 2}}},
        commands("commands", d, 2),
        reports("reports", d, 2),
        atomic_jobs("atomic_jobs", d, 2),
        atomic_outcomes("atomic_outcomes", d, 2) {
    connect(requests.fetches.job, fetch_jobs, fetches.job_in);
    connect(fetches.result_out, fetch_results, requests.fetches.result);
    connect(requests.reads.command, commands, reads.command_in);
    connect(reads.report_out, reports, requests.reads.report);
    connect(reads.atomic_out, atomic_jobs, atomics.job_in);
    connect(atomics.outcome_out, atomic_outcomes, reads.outcome_in);
    read_engine_port* const users[] = {&requests.read_engine, &reads.read_engine};
    const unsigned places[] = {read_engine::responder, read_engine::generator};
    for (unsigned i = 0; i < 2; ++i) {
      connect(users[i]->request, engine_requests[i], engine.request[places[i]]);
      connect(engine.grant[places[i]], engine_grants[i], users[i]->grant);
    }
    answer_port* const senders[] = {&reads.answers, &requests.acknowledgements, &notifications.answers};
    for (unsigned i = 0; i < answer_transmit::users; ++i) {
      connect(senders[i]->job, answer_jobs.emplace_back("answers" + std::to_string(i), d, 2), answers.from[i].job);
      connect(answers.from[i].room,
              answer_rooms.emplace_back("room" + std::to_string(i), d, answer_transmit::room_depth(c)),
              senders[i]->room);
    }
    map.layout(icm::table::qpc) = {0, 256, 12};
    map.map(0, contexts_at, 0x10000);
    map.layout(icm::table::rdmarc) = {0x100000, sizeof(icm::rdma_resources), 12};
    map.map(0x100000, histories_at, 0x20000);
    map.layout(icm::table::srqc) = {0x200000, 64, 6};
    map.map(0x200000, shared_contexts_at, 0x1000);
    gids[0].cr_write(gid::cr::mac_word(0, 0), gid::cr::mac_valid | 0x0200);
    gids[0].cr_write(gid::cr::mac_word(0, 1), 0x00000001);
    gids[0].cr_write(gid::cr::gid_word(2, 2), 0xffff);
    gids[0].cr_write(gid::cr::gid_word(2, 3), 0x0a000001);
    gids[0].cr_write(gid::cr::gid_word(2, 4), gid::cr::gid_valid | 2u << gid::cr::gid_type_shift);
  }
  blocks_under_test blocks() { return {requests, fetches, reads, atomics, answers}; }

  icm::icm_map map;
  std::array<gid::gid_table, 2> gids;
  std::array<gid::gid_source, 2> sources{gid::gid_source({}, gids[0]), gid::gid_source({}, gids[1])};
  payload::frame_pool frames;
  sim::span_recorder spans;
  sim::statistics stats;
  responder_memories memories;
  responder requests;
  receive_fetch fetches;
  read_engine engine;
  read_generator reads;
  atomic_unit atomics;
  cnp_sender notifications;
  answer_transmit answers;

  sim::fifo<receive_job> fetch_jobs;
  sim::fifo<receive_fetch_result> fetch_results;
  std::array<sim::fifo<read_engine_request>, 2> engine_requests;
  std::array<sim::fifo<read_engine_grant>, 2> engine_grants;
  sim::fifo<read_command> commands;
  sim::fifo<read_report> reports;
  sim::fifo<atomic_job> atomic_jobs;
  sim::fifo<atomic_outcome> atomic_outcomes;
  std::deque<sim::fifo<answer_job>> answer_jobs;
  std::deque<sim::fifo<answer_room>> answer_rooms;
};

/// The half with everything around it.
struct system {
  static constexpr sim::time_ps cycle_ps = 2000;
  system(const sim::timebase::options& options, const setup& with)
      : base(options),
        core("core", base, sim::clock_period::from_khz(1'000'000'000 / cycle_ps)),
        how(with.how),
        regions(with.regions()),
        tested(core, with.parameters),
        memory(core, tested.blocks(), how, regions),
        translation(core, tested.blocks(), how, regions),
        keys(core, tested.requests, how, regions),
        software(core, tested.requests, how),
        ports(core, tested.blocks(), how) {
    with.write_to(memory.bytes);
  }

  /// Up to the middle between two edges.
  void run(sim::cycle_t cycles) {
    const sim::time_ps now = sc_core::sc_time_stamp().value();
    const sim::time_ps end = (now / cycle_ps + cycles) * cycle_ps + cycle_ps / 2;
    sc_core::sc_start(sc_core::sc_time::from_value(end - now));
  }
  std::array<const journal*, 5> journals() const {
    return {&memory.seen, &translation.seen, &keys.seen, &software.seen, &ports.seen};
  }
  sim::cycle_t last_active() const {
    sim::cycle_t last = 0;
    for (const journal* j : journals()) last = std::max(last, j->last_active());
    return last;
  }

  sim::timebase base;
  sim::clock_domain core;
  behaviour how;
  region_table regions;
  half tested;
  host_memory memory;
  translator translation;
  key_engine keys;
  queues software;
  peers ports;
};

}  // namespace rnic::transport::random_test
