// SPDX-License-Identifier: Apache-2.0
// The parts of the responder behind its checks, by themselves, with memory, translation and the next blocks around
// them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "model/sim/timebase.h"
#include "model/transport/responder/commit.h"
#include "model/transport/responder/error_state.h"
#include "model/transport/responder/held_reads.h"
#include "model/transport/responder/packet_intake.h"
#include "model/transport/responder/place_lookup.h"
#include "model/transport/responder/read_returns.h"
#include "model/transport/responder/receive_fetch.h"

namespace rnic::transport::test::parts {

using cycle = sim::cycle_t;
using action = responder_slot::action;

inline constexpr std::uint32_t first_qpn = 0x48, srqn = 5;
inline constexpr std::uint64_t ring_bus = 0x3000, record_bus = 0x2000, srqc_bus = 0x8000, rings_bus = 0x9000;
inline constexpr unsigned entry_bytes = 64;

/// The parts, in the order of the responder's tick. What a test does in a cycle it does in the place of the checks.
struct block : sim::clocked_block {
  block(sim::clock_domain& d, const responder_config& c, const icm::icm_map& map, payload::frame_pool& frames,
        sim::span_recorder& spans, sim::statistics& stats)
      : clocked_block("parts", d),
        cfg(c),
        dma_write(*this),
        translate(*this),
        keys(*this),
        cqe(*this),
        event(*this),
        error(*this),
        out(*this, cfg.answer.waiting),
        reads(*this, cfg),
        fetches(*this, cfg, received),
        contexts("parts.contexts", *this, cfg.contexts, map, icm::table::qpc, 128),
        rings("parts.histories", *this, cfg.histories, map, icm::table::rdmarc, 0),
        histories(*this, cfg.history_ports, rings),
        received(cfg),
        slots(*this, cfg.slots),
        backlog(histories),
        flows(*this, cfg, contexts, backlog, slots, drops),
        writes(dma_write),
        completions(*this, cfg, cqe, event, writes, spans),
        receives("parts.srqs", *this, cfg, map, fetches, completions),
        places(*this, cfg, registers, translate, flows, slots),
        answers(*this, cfg, flows, out, reads, frames, spans),
        withdrawal(*this, keys, slots, writes, reads, completions),
        held(*this, cfg, flows, contexts, backlog, histories, reads, answers, writes, spans),
        errors(*this, cfg, flows, contexts, slots, places, receives, completions, answers, drops, fetches),
        commits(*this, flows, slots, writes, completions, withdrawal, answers, held, histories, errors, drops, spans),
        returns(*this, flows, reads, histories, answers, withdrawal, completions, errors, drops),
        intake(*this, cfg, slots, places, receives, drops, spans) {
    answers.announce(stats, name());
    completions.announce(stats, name());
  }

  const responder_config cfg;
  responder_registers registers;
  drop_counters drops;
  pcie::dma_port dma_write;
  icm::translate_port translate;
  icm::key_port keys;
  sim::fifo_out<completion::cqe_request> cqe;
  sim::fifo_out<completion::event_request> event;
  sim::fifo_out<qp_error> error;
  answer_port out;
  read_port reads;
  receive_port fetches;
  icm::context_cache<icm::responder_context> contexts;
  icm::context_cache<icm::rdma_resources> rings;
  history_memory histories;
  receive_memory received;
  slot_table slots;
  read_backlog backlog;
  flow_table flows;
  payload_writes writes;
  completion_port completions;
  receive_descriptors receives;
  place_lookup places;
  acknowledgement answers;
  key_withdrawal withdrawal;
  held_reads held;
  error_state errors;
  commit commits;
  read_returns returns;
  packet_intake intake;

  std::function<void()> in_cycle = [] {};
  std::vector<std::pair<cycle, std::size_t>> slots_left;  ///< how many packets wait, where that changes

 private:
  void tick() override {
    wake_next();
    rings.service();
    if (translate.response.can_pop()) places.translated(translate.response.pop());
    if (fetches.result.can_pop()) receives.fetched(fetches.result.pop());
    writes.work();
    withdrawal.take_answer();
    returns.work();
    out.work();
    fetches.work();
    receives.work();
    commits.work();
    answers.send();
    receives.work_flushes();
    completions.work();
    withdrawal.work();
    answers.hand();
    reads.work(writes.done());
    places.work();
    in_cycle();
    const std::size_t left = waiting();
    if (slots_left.empty() ? left != 0 : slots_left.back().second != left) slots_left.emplace_back(now(), left);
  }
  std::size_t waiting() const {
    std::size_t n = 0;
    for (std::uint16_t i = slots.first(); i != no_link; i = slots[i].next) ++n;
    return n;
  }
};

/// Everything around them. Virtual addresses are those of memory.
struct world : sim::clocked_block {
  explicit world(sim::clock_domain& d) : clocked_block("world", d) {}

  sim::fifo_in<pcie::dma_request> write{*this}, read{*this}, srq_read{*this}, ring_read{*this};
  sim::fifo_out<pcie::dma_response> written{*this}, read_done{*this}, srq_read_done{*this}, ring_read_done{*this};
  struct translation_client {
    sim::fifo_in<icm::translate_request> in;
    sim::fifo_out<icm::translate_response> out;
    std::deque<std::pair<cycle, icm::translate_response>> open{};
  };
  /// Of the parts, and of receive fetch.
  translation_client places{sim::fifo_in<icm::translate_request>{*this}, sim::fifo_out<icm::translate_response>{*this}};
  translation_client buffers{sim::fifo_in<icm::translate_request>{*this},
                             sim::fifo_out<icm::translate_response>{*this}};
  sim::fifo_in<completion::cqe_request> cqe{*this};
  sim::fifo_in<completion::event_request> event{*this};
  sim::fifo_in<answer_job> job{*this};
  sim::fifo_out<answer_room> room{*this};
  sim::fifo_in<read_command> command{*this};
  sim::fifo_out<read_report> report{*this};
  sim::fifo_out<icm::key_revocation> revoke{*this};
  sim::fifo_in<icm::key_revocation> revoked{*this};

  unsigned write_every = 1, cqe_every = 1, room_every = 1;  ///< takes one in one of so many cycles
  unsigned read_cycles = 20, write_cycles = 10, translate_cycles = 5;
  bool gives_room = true;
  std::uint32_t held_key = 0;  ///< translation does not answer for it
  bool halves = false;         ///< it answers with two segments
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(1 << 16);

  template <class T>
  struct at {
    cycle when;
    T what;
  };
  std::vector<at<pcie::dma_request>> writes_seen, reads_seen;
  std::vector<at<completion::cqe_request>> cqes;
  std::vector<at<completion::event_request>> events;
  std::vector<at<answer_job>> answers;
  std::vector<at<read_command>> commands;
  std::vector<at<icm::key_revocation>> withdrawn;
  std::deque<icm::key_revocation> to_revoke;
  std::deque<answer_room> to_give;

 private:
  std::deque<at<pcie::dma_response>> read_, srq_, rings_, written_;

  template <class T, class To>
  void deliver(std::deque<at<T>>& from, To& to) {
    if (from.empty() || from.front().when > now() || !to.claim()) return;
    to.push(from.front().what);
    from.pop_front();
  }
  void serve(sim::fifo_in<pcie::dma_request>& in, std::deque<at<pcie::dma_response>>& answers_to, bool seen) {
    if (!in.can_pop()) return;
    pcie::dma_request r = in.pop();
    std::memcpy(r.destination, memory.data() + r.address, r.length);
    answers_to.push_back({now() + read_cycles, {r.tag, pcie::dma_status::ok}});
    if (seen) reads_seen.push_back({now(), std::move(r)});
  }
  void serve(translation_client& c) {
    if (c.in.can_pop() && (held_key == 0 || c.in.front().key != held_key)) {
      const icm::translate_request q = c.in.pop();
      icm::translate_response r;
      r.tag = q.tag;
      const bool buffer = q.what == icm::translate_request::kind::buffer;
      r.segments[0] = {(buffer ? q.buffer_mtt : 0) + q.va, q.length};
      r.count = 1;
      if (halves && q.length > 1) {
        r.segments[0].length = q.length / 2;
        r.segments[1] = {r.segments[0].address + q.length / 2, q.length - q.length / 2};
        r.count = 2;
      }
      c.open.emplace_back(now() + translate_cycles, r);
    }
    if (c.open.empty() || c.open.front().first > now() || !c.out.claim()) return;
    c.out.push(c.open.front().second);
    c.open.pop_front();
  }
  void tick() override {
    wake_next();
    serve(read, read_, true);
    serve(srq_read, srq_, false);
    serve(ring_read, rings_, false);
    if (now() % write_every == 0 && write.can_pop()) {
      pcie::dma_request r = write.pop();
      if (r.length != 0) std::memcpy(memory.data() + r.address, r.source, r.length);
      if (r.notify) written_.push_back({now() + write_cycles, {r.tag, pcie::dma_status::ok}});
      r.keep.reset();
      writes_seen.push_back({now(), std::move(r)});
    }
    serve(places);
    serve(buffers);
    if (now() % cqe_every == 0 && cqe.can_pop()) cqes.push_back({now(), cqe.pop()});
    if (event.can_pop()) events.push_back({now(), event.pop()});
    if (command.can_pop()) {
      commands.push_back({now(), command.pop()});
      if (commands.back().what.what == read_command::kind::revoke) {
        read_report r;
        r.what = read_report::kind::revoked;
        report.push(r);
      }
    }
    if (!to_revoke.empty() && revoke.claim()) {
      revoke.push(to_revoke.front());
      to_revoke.pop_front();
    }
    if (revoked.can_pop()) withdrawn.push_back({now(), revoked.pop()});
    if (job.can_pop()) {
      answers.push_back({now(), job.pop()});
      const answer_job& j = answers.back().what;
      if (gives_room) to_give.push_back({j.port, j.priority});
    }
    if (now() % room_every == 0 && !to_give.empty() && room.claim()) {
      room.push(to_give.front());
      to_give.pop_front();
    }
    deliver(read_, read_done);
    deliver(srq_, srq_read_done);
    deliver(rings_, ring_read_done);
    deliver(written_, written);
  }
};

struct bench {
  explicit bench(const responder_config& cfg = {})
      : core("core", base, sim::clock_period::from_khz(500'000)),
        b(core, cfg, map, frames, spans, stats),
        fetch("fetch", core, cfg.receive_fetches, b.received, stats),
        w(core),
        cqe("cqe", core, 2),
        event("event", core, 2),
        job("job", core, 2),
        room("room", core, 64),
        command("command", core, 2),
        report("report", core, 2),
        revoke("revoke", core, 2),
        revoked("revoked", core, 2),
        reads("reads", core, 4),
        read_answers("read_answers", core, 64),
        srq_reads("srq_reads", core, 4),
        srq_answers("srq_answers", core, 64),
        ring_reads("ring_reads", core, 4),
        ring_answers("ring_answers", core, 64),
        writes("writes", core, 4),
        write_answers("write_answers", core, 64),
        translations("translations", core, 4),
        translated("translated", core, 64),
        buffers("buffers", core, 4),
        buffers_found("buffers_found", core, 64),
        jobs("jobs", core, 2),
        results("results", core, 2) {
    b.cqe.bind(cqe);
    w.cqe.bind(cqe);
    b.event.bind(event);
    w.event.bind(event);
    b.out.job.bind(job);
    w.job.bind(job);
    w.room.bind(room);
    b.out.room.bind(room);
    b.reads.command.bind(command);
    w.command.bind(command);
    w.report.bind(report);
    b.reads.report.bind(report);
    w.revoke.bind(revoke);
    b.keys.revoke.bind(revoke);
    b.keys.revoked.bind(revoked);
    w.revoked.bind(revoked);
    b.fetches.job.bind(jobs);
    fetch.job_in.bind(jobs);
    fetch.result_out.bind(results);
    b.fetches.result.bind(results);
    bind(fetch.dma, reads, read_answers, w.read, w.read_done);
    bind(b.dma_write, writes, write_answers, w.write, w.written);
    bind(b.receives.contexts().on_chip().dma, srq_reads, srq_answers, w.srq_read, w.srq_read_done);
    bind(b.rings.dma, ring_reads, ring_answers, w.ring_read, w.ring_read_done);
    bind(b.translate, translations, translated, w.places);
    bind(fetch.translate, buffers, buffers_found, w.buffers);
    map.layout(icm::table::srqc) = {0, 64, 8};
    map.map(0, srqc_bus, 0x1000);
    map.layout(icm::table::rdmarc) = {0x1000, sizeof(icm::rdma_resources), 3};
    map.map(0x1000, rings_bus, 0x1000);
    for (auto& c : contexts) c = context();
  }

  static icm::responder_context context() {
    icm::responder_context c{};
    c.state = icm::qp_state::rts;
    c.type = icm::service::rc;
    c.flags = icm::responder_flag_no_credits;
    c.log_rq_size = 4;
    c.log_rq_stride = 6;
    c.dest.priority = 3;
    c.dest.mtu_code = 3;
    c.remote_qpn = 0x1234;
    c.rq_address = ring_bus;
    c.db_record = record_bus;
    c.log_page = 12;
    c.pd = 7;
    c.cqn = 0x85;
    c.log_max_rd_atomic = 2;
    return c;
  }
  /// A queue pair on chip with its own context.
  responder_flow& open(unsigned n = 0) {
    contexts[n].qpn = first_qpn + n;
    responder_flow& f = b.flows[b.flows.open(first_qpn + n)];
    f.ctx = &contexts[n];
    return f;
  }
  payload::frame_ptr frame(std::uint32_t bytes = 0) {
    payload::frame_ptr f = frames.get();
    f->packet = wire::packet{};
    f->begin = payload::frame::payload_start;
    f->packet.payload_offset = 0;
    f->packet.payload_length = bytes;
    f->plain = false;
    f->span = 0;
    for (std::uint32_t i = 0; i < bytes; ++i) f->data()[i] = static_cast<std::uint8_t>(i * 7 + 1);
    return f;
  }
  /// A receive of the own queue, or, with its link, of a shared one: one segment.
  void post(unsigned index, std::uint64_t address, std::uint32_t length, bool shared = false) {
    std::uint8_t* e = w.memory.data() + ring_bus + index * entry_bytes;
    std::memset(e, 0, entry_bytes);
    if (shared) {
      e[3] = static_cast<std::uint8_t>(index + 1);
      e += 16;
    }
    store(e, length);
    store(e + 4, 0x1100);
    store(e + 12, static_cast<std::uint32_t>(address));
    store(e + 20, 0x100);  // no key: the end
    store(w.memory.data() + record_bus, index + 1);
  }
  /// Shared queue `srqn` of 16 entries, in the place of the own queue.
  void share(icm::responder_context& c) {
    icm::srq_context s{};
    s.srqn = srqn;
    s.valid = 1;
    s.log_size = 4;
    s.log_stride = 6;
    s.log_page = 12;
    s.address = ring_bus;
    s.db_record = record_bus;
    s.pd = 9;
    std::memcpy(w.memory.data() + srqc_bus + srqn * sizeof s, &s, sizeof s);
    c.srqn = 1u << 24 | srqn;
  }
  static void store(std::uint8_t* p, std::uint32_t v) {
    for (unsigned i = 0; i < 4; ++i) p[i] = static_cast<std::uint8_t>(v >> (24 - 8 * i));
  }
  /// Runs `what` once, in cycle `when` of the block.
  void at(cycle when, std::function<void()> what) {
    script.emplace_back(when, std::move(what));
    b.in_cycle = [this] {
      for (auto& [due, f] : script)
        if (due == b.now()) f();
    };
    b.wake_next();
    w.wake_next();
  }
  void run(unsigned cycles) {
    b.wake_next();
    w.wake_next();
    sc_core::sc_start(sc_core::sc_time(static_cast<double>(cycles) * 2000.0, sc_core::SC_PS));
  }

  sim::timebase base{sim::timebase::options{}};
  sim::clock_domain core;
  icm::icm_map map;
  payload::frame_pool frames;
  sim::span_recorder spans;
  sim::statistics stats;
  std::array<icm::responder_context, 8> contexts;
  std::vector<std::pair<cycle, std::function<void()>>> script;
  block b;
  receive_fetch fetch;
  world w;
  sim::fifo<completion::cqe_request> cqe;
  sim::fifo<completion::event_request> event;
  sim::fifo<answer_job> job;
  sim::fifo<answer_room> room;
  sim::fifo<read_command> command;
  sim::fifo<read_report> report;
  sim::fifo<icm::key_revocation> revoke, revoked;
  sim::fifo<pcie::dma_request> reads;
  sim::fifo<pcie::dma_response> read_answers;
  sim::fifo<pcie::dma_request> srq_reads;
  sim::fifo<pcie::dma_response> srq_answers;
  sim::fifo<pcie::dma_request> ring_reads;
  sim::fifo<pcie::dma_response> ring_answers;
  sim::fifo<pcie::dma_request> writes;
  sim::fifo<pcie::dma_response> write_answers;
  sim::fifo<icm::translate_request> translations;
  sim::fifo<icm::translate_response> translated;
  sim::fifo<icm::translate_request> buffers;
  sim::fifo<icm::translate_response> buffers_found;
  sim::fifo<receive_job> jobs;
  sim::fifo<receive_fetch_result> results;

 private:
  static void bind(icm::translate_port& port, sim::fifo<icm::translate_request>& requests,
                   sim::fifo<icm::translate_response>& answers, world::translation_client& to) {
    port.request.bind(requests);
    to.in.bind(requests);
    to.out.bind(answers);
    port.response.bind(answers);
  }
  static void bind(pcie::dma_port& port, sim::fifo<pcie::dma_request>& requests, sim::fifo<pcie::dma_response>& answers,
                   sim::fifo_in<pcie::dma_request>& in, sim::fifo_out<pcie::dma_response>& out) {
    port.request.bind(requests);
    in.bind(requests);
    out.bind(answers);
    port.response.bind(answers);
  }
};

}  // namespace rnic::transport::test::parts
