// SPDX-License-Identifier: Apache-2.0
// A responder with a memory, a translation table and a peer around it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/gid/gid_cr.h"
#include "model/gid/gid_source.h"
#include "model/sim/timebase.h"
#include "model/transport/congestion/cnp_sender.h"
#include "model/transport/read_engine/read_engine.h"
#include "model/transport/responder/answer_transmit.h"
#include "model/transport/responder/atomic_unit.h"
#include "model/transport/responder/read_generator.h"
#include "model/transport/responder/receive_fetch.h"
#include "model/transport/responder/responder.h"
#include "model/transport/transport_cr.h"

namespace rnic::transport::test {

inline constexpr std::uint16_t owning_function = 9;  // function of the QP
inline constexpr std::uint32_t qpn = 0x48, peer_qpn = 0x1234;
inline constexpr std::uint64_t qpc_bus = 0x10000, record_bus = 0x20000, rq_bus = 0x30000, history_bus = 0x40000,
                               data_bus = 0x100000;
inline constexpr std::uint64_t data_va = 0x7f00'0000'0123;  // of data_bus + 0x123
inline constexpr std::uint64_t aligned_va = data_va + 5;    // of data_bus + 0x128
inline constexpr std::uint32_t lkey = 0x1100, rkey = 0x2200, read_only_key = 0x3300;

/// Host memory with latency, translation and the far ends of all channels.
class station : public sim::clocked_block {
 public:
  struct client {
    client(sim::clocked_block& owner, sim::clock_domain& d, pcie::dma_port& port, const std::string& n)
        : requests(n + ".request", d, 8), answers(n + ".response", d, 64), in(owner), out(owner) {
      port.request.bind(requests);
      port.response.bind(answers);
      in.bind(requests);
      out.bind(answers);
    }
    sim::fifo<pcie::dma_request> requests;
    sim::fifo<pcie::dma_response> answers;
    sim::fifo_in<pcie::dma_request> in;
    sim::fifo_out<pcie::dma_response> out;
    struct open {
      pcie::dma_request r;
      sim::cycle_t due;
    };
    std::deque<open> pending;
  };
  struct pending_translation {
    icm::translate_response r;
    sim::cycle_t due;
  };
  struct translation_client {
    translation_client(sim::clocked_block& owner, sim::clock_domain& d, icm::translate_port& port, const std::string& n)
        : requests(n + ".request", d, 4), answers(n + ".response", d, 128), in(owner), out(owner) {
      port.request.bind(requests);
      port.response.bind(answers);
      in.bind(requests);
      out.bind(answers);
    }
    sim::fifo<icm::translate_request> requests;
    sim::fifo<icm::translate_response> answers;
    sim::fifo_in<icm::translate_request> in;
    sim::fifo_out<icm::translate_response> out;
    std::vector<pending_translation> open;
  };
  struct region {
    std::uint64_t va, bus, length;
    std::uint32_t pd;
    unsigned rights;  // 1 << access
  };
  struct sent {
    sim::cycle_t at;
    payload::frame_ptr frame;
    const wire::packet* operator->() const { return &frame->packet; }
    std::vector<std::uint8_t> payload() const {
      const std::uint8_t* p = frame->data() + frame->packet.payload_offset;
      return {p, p + frame->packet.payload_length};
    }
  };

  station(sim::clock_domain& d, responder& r, receive_fetch& fetch, read_generator& reads, atomic_unit& atomics,
          answer_transmit& out)
      : clocked_block("station", d),
        write(*this, d, r.dma_write, "write"),
        read(*this, d, fetch.dma, "read"),
        context(*this, d, r.contexts().dma, "context"),
        history(*this, d, r.histories().dma, "history"),
        srq(*this, d, r.srqs().dma, "srq"),
        reads_read(*this, d, reads.dma_read, "reads_read"),
        operands(*this, d, atomics.dma_read, "operands"),
        results(*this, d, atomics.dma_write, "results"),
        translations(*this, d, r.translate, "translate"),
        fetch_translations(*this, d, fetch.translate, "fetch_translate"),
        reads_translations(*this, d, reads.translate, "reads_translate"),
        cqe("cqe", d, 4),
        event("event", d, 2),
        error("error", d, 2),
        tx("tx", d, 64),
        rx("rx", d, 8),
        plain("plain", d, 8),
        copies("copies", d, 8),
        credit("credit", d, 8),
        error_back("error_back", d, 4),
        cqe_in(*this),
        event_in(*this),
        error_in(*this),
        tx_in(*this),
        rx_out(*this),
        plain_out(*this),
        copies_out(*this),
        credit_out(*this),
        error_out(*this),
        memory(0x400000) {
    r.cqe_out.bind(cqe);
    cqe_in.bind(cqe);
    r.event_out.bind(event);
    event_in.bind(event);
    r.error_out.bind(error);
    error_in.bind(error);
    out.tx_out.bind(tx);
    tx_in.bind(tx);
    r.rx_in.bind(rx);
    rx_out.bind(rx);
    r.ethernet_in.bind(plain);
    plain_out.bind(plain);
    r.copies_in.bind(copies);
    copies_out.bind(copies);
    out.credit_in[0].bind(credit);
    credit_out.bind(credit);
    r.error_in.bind(error_back);
    error_out.bind(error_back);
  }

  client write, read, context, history, srq, reads_read, operands, results;
  translation_client translations, fetch_translations, reads_translations;
  sim::fifo<completion::cqe_request> cqe;
  sim::fifo<completion::event_request> event;
  sim::fifo<qp_error> error;
  sim::fifo<payload::frame_ptr> tx, rx, plain, copies;
  sim::fifo<egress_credit> credit;
  sim::fifo<qp_error> error_back;
  sim::fifo_in<completion::cqe_request> cqe_in;
  sim::fifo_in<completion::event_request> event_in;
  sim::fifo_in<qp_error> error_in;
  sim::fifo_in<payload::frame_ptr> tx_in;
  sim::fifo_out<payload::frame_ptr> rx_out, plain_out, copies_out;
  sim::fifo_out<egress_credit> credit_out;
  sim::fifo_out<qp_error> error_out;

  std::vector<std::uint8_t> memory;
  std::map<std::uint32_t, region> regions;
  std::map<std::uint32_t, unsigned> slow_key;  // extra cycles of translation
  std::deque<payload::frame_ptr> to_send;      // frames of the peer, as fast as they go
  std::deque<payload::frame_ptr> to_steer;     // plain ones, which steering has given a QP
  std::deque<payload::frame_ptr> to_members;   // of a group, copies to whose QPs multicast has made
  std::deque<qp_error> to_tell;
  bool give_credits = true;
  unsigned read_cycles = 130, write_cycles = 20, translate_cycles = 6;

  std::vector<sent> answers;
  std::vector<std::pair<sim::cycle_t, completion::cqe_request>> cqes;
  std::vector<completion::event_request> events;
  std::vector<std::uint32_t> errors;
  std::vector<pcie::dma_request> writes;  // in order
  std::vector<sim::cycle_t> write_cycle;
  unsigned record_reads = 0, wqe_reads = 0;

 private:
  void tick() override {
    serve(write);
    serve(read);
    serve(context);
    serve(history);
    serve(srq);
    serve(reads_read);
    serve(operands);
    serve(results);
    serve(translations);
    serve(fetch_translations);
    serve(reads_translations);
    while (cqe_in.can_pop()) cqes.emplace_back(now(), cqe_in.pop());
    while (event_in.can_pop()) events.push_back(event_in.pop());
    while (error_in.can_pop()) errors.push_back(error_in.pop().qpn);
    while (tx_in.can_pop()) {
      answers.push_back({now(), tx_in.pop()});
      if (give_credits && credit_out.claim())
        credit_out.push({answers.back().frame->port, answers.back().frame->priority});
    }
    while (!to_send.empty() && rx_out.claim()) {
      rx_out.push(std::move(to_send.front()));
      to_send.pop_front();
    }
    while (!to_steer.empty() && plain_out.claim()) {
      plain_out.push(std::move(to_steer.front()));
      to_steer.pop_front();
    }
    while (!to_members.empty() && copies_out.claim()) {
      copies_out.push(std::move(to_members.front()));
      to_members.pop_front();
    }
    while (!to_tell.empty() && error_out.claim()) {
      error_out.push(to_tell.front());
      to_tell.pop_front();
    }
  }

  bool inside(const pcie::dma_request& r) const {
    return r.address <= memory.size() && r.length <= memory.size() - r.address;
  }

  void serve(client& c) {
    while (c.in.can_pop()) {
      pcie::dma_request r = c.in.pop();
      const bool is_write = r.op == pcie::dma_request::kind::write;
      if (is_write) {
        const std::uint8_t* from = r.source != nullptr ? r.source : r.bytes.data();
        const bool data = &c == &write || &c == &results;
        const bool legal = inside(r) && (!data || r.function == owning_function);
        if (legal) std::memcpy(memory.data() + r.address, from, r.length);
        if (data) {
          writes.push_back(r);
          writes.back().keep.reset();
          write_cycle.push_back(now());
        }
        if (!r.notify) continue;
      } else if (&c == &read) {
        if (r.address == record_bus) ++record_reads;
        if (r.address >= rq_bus && r.address < rq_bus + 0x10000) ++wqe_reads;
      }
      const sim::cycle_t due = now() + (is_write ? write_cycles : read_cycles);
      c.pending.push_back({std::move(r), due});
      wake_at(due);
    }
    while (!c.pending.empty() && c.pending.front().due <= now() && c.out.claim()) {
      const pcie::dma_request& r = c.pending.front().r;
      pcie::dma_status status = pcie::dma_status::ok;
      if (r.op == pcie::dma_request::kind::read) {
        const bool data = &c == &read || &c == &reads_read || &c == &operands;
        if (inside(r) && (!data || r.function == owning_function))
          std::memcpy(r.destination, memory.data() + r.address, r.length);
        else
          status = pcie::dma_status::unsupported_request;
      }
      c.out.push({r.tag, status});
      c.pending.pop_front();
    }
  }

  void serve(translation_client& c) {
    while (c.in.can_pop()) {
      const icm::translate_request q = c.in.pop();
      pending_translation t{lookup(q), now() + translate_cycles};
      if (const auto slow = slow_key.find(q.key); slow != slow_key.end()) t.due += slow->second;
      c.open.push_back(t);
      wake_at(t.due);
    }
    for (std::size_t i = 0; i < c.open.size();) {
      if (c.open[i].due <= now() && c.out.claim()) {
        c.out.push(c.open[i].r);
        c.open.erase(c.open.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  icm::translate_response lookup(const icm::translate_request& q) const {
    icm::translate_response r;
    r.tag = q.tag;
    std::uint64_t bus = q.buffer_mtt + q.va;
    if (q.what == icm::translate_request::kind::reserved_key) bus = q.va;
    if (q.what == icm::translate_request::kind::key) {
      const auto it = regions.find(q.key);
      if (it == regions.end()) {
        r.status = icm::translate_status::bad_key;
        return r;
      }
      const region& m = it->second;
      const std::uint64_t length = std::max<std::uint64_t>(q.length, q.check_length);
      if (m.pd != q.pd) r.status = icm::translate_status::wrong_pd;
      if ((m.rights >> static_cast<unsigned>(q.access) & 1) == 0) r.status = icm::translate_status::no_rights;
      if (q.va < m.va || q.va - m.va > m.length || length > m.length - (q.va - m.va))
        r.status = icm::translate_status::out_of_range;
      if (r.status != icm::translate_status::ok) return r;
      bus = m.bus + (q.va - m.va);
    }
    const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(q.length, 4096 - bus % 4096));
    r.segments[0] = {bus, first};
    r.count = 1;
    if (first != q.length) r.segments[r.count++] = {bus + first, q.length - first};
    return r;
  }
};

inline void store_be32(std::uint8_t* p, std::uint32_t v) {
  for (unsigned i = 0; i < 4; ++i) p[i] = static_cast<std::uint8_t>(v >> (24 - 8 * i));
}

/// One responder with QP `qpn` in RTS, MTU 1024, a receive queue of 16 WQEs of 64 bytes (4 segments) and 1 MiB of data.
struct bench {
  /// A context that is fetched costs nothing but its fetch: tests that count cycles begin with one.
  static responder_config without_miss(responder_config c) {
    c.read_miss_cycles = 0;
    return c;
  }
  explicit bench(const sim::timebase::options& opts = {}, const responder_config& cfg = {})
      : base(opts),
        core("core", base, sim::clock_period::from_khz(427'000)),
        memories(cfg),
        r("responder", core, without_miss(cfg), map, {&gids[0], &gids[1]}, memories, frames, spans, stats),
        fetch("receive_fetch", core, cfg.receive_fetches, memories.received, stats),
        reads("read_engine", core, stats),
        generator("read_generator", core, cfg, frames, spans, stats),
        atomics("atomic_unit", core, cfg.atomics, spans, stats),
        cnps("cnp_sender", core, cfg.congestion.notification, cfg.answer.waiting, stats),
        out("answer_transmit", core, cfg, {{&sources[0], &sources[1]}}, memories.roce_v2_port, spans, stats),
        s(core, r, fetch, generator, atomics, out) {
    r.fetches.job.bind(fetch_jobs);
    fetch.job_in.bind(fetch_jobs);
    fetch.result_out.bind(fetch_results);
    r.fetches.result.bind(fetch_results);
    r.read_engine.request.bind(read_requests);
    reads.request[read_engine::responder].bind(read_requests);
    reads.grant[read_engine::responder].bind(read_grants);
    r.read_engine.grant.bind(read_grants);
    generator.read_engine.request.bind(piece_requests);
    reads.request[read_engine::generator].bind(piece_requests);
    reads.grant[read_engine::generator].bind(piece_grants);
    generator.read_engine.grant.bind(piece_grants);
    r.reads.command.bind(commands);
    generator.command_in.bind(commands);
    generator.report_out.bind(reports);
    r.reads.report.bind(reports);
    generator.atomic_out.bind(atomic_jobs);
    atomics.job_in.bind(atomic_jobs);
    atomics.outcome_out.bind(atomic_outcomes);
    generator.outcome_in.bind(atomic_outcomes);
    answer_port* const users[] = {&generator.answers, &r.acknowledgements, &cnps.answers};
    for (unsigned i = 0; i < answer_transmit::users; ++i) {
      jobs.emplace_back("answers" + std::to_string(i), core, 2);
      users[i]->job.bind(jobs.back());
      out.from[i].job.bind(jobs.back());
      room.emplace_back("room" + std::to_string(i), core, answer_transmit::room_depth(cfg));
      out.from[i].room.bind(room.back());
      users[i]->room.bind(room.back());
    }
    map.layout(icm::table::qpc) = {0, 256, 12};
    map.map(0, qpc_bus, 0x10000);
    map.layout(icm::table::rdmarc) = {0x100000, sizeof(icm::rdma_resources), 12};
    map.map(0x100000, history_bus, 0x20000);
    gids[0].cr_write(gid::cr::mac_word(0, 0), gid::cr::mac_valid | 0x0200);
    gids[0].cr_write(gid::cr::mac_word(0, 1), 0x00000001);
    gids[0].cr_write(gid::cr::gid_word(2, 2), 0xffff);
    gids[0].cr_write(gid::cr::gid_word(2, 3), 0x0a000001);
    gids[0].cr_write(gid::cr::gid_word(2, 4), gid::cr::gid_valid | 2u << gid::cr::gid_type_shift);
    const unsigned all = 0x1f;
    s.regions[lkey] = {data_va, data_bus + 0x123, 0x100000, 7, all};
    s.regions[rkey] = {data_va, data_bus + 0x123, 0x100000, 7, all};
    s.regions[read_only_key] = {data_va, data_bus + 0x123, 0x100000, 7, 1u << 0 | 1u << 2};
    put(context());
  }

  static icm::responder_context context() {
    icm::responder_context c{};
    c.qpn = qpn;
    c.function = owning_function;
    c.remote_qpn = peer_qpn;
    c.state = icm::qp_state::rts;
    c.type = icm::service::rc;
    c.flags = icm::responder_flag_no_credits;
    c.log_rq_size = 4;
    c.log_rq_stride = 6;
    c.dest.dmac[0] = 2;
    c.dest.dmac[5] = 2;
    c.dest.gid_index = 2;
    c.dest.flags = icm::path_flag_roce_v2;
    c.dest.hop_limit = 64;
    c.dest.priority = 3;
    c.dest.udp_source = 0xc123;
    c.dest.mtu_code = 3;
    const wire::gid peer = peer_gid();
    std::memcpy(c.dest.remote_gid, peer.data(), 16);
    c.pd = 7;
    c.cqn = 0x85;
    c.rq_address = rq_bus;
    c.db_record = record_bus;
    c.log_page = 12;
    c.expected_psn = 100;
    c.access = icm::responder_access_write | icm::responder_access_read;
    c.rnr_timer = 12;
    c.log_max_rd_atomic = 2;
    return c;
  }
  static wire::gid peer_gid() { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2}; }
  static wire::gid own_gid() { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}; }

  void put(const icm::responder_context& c) {
    std::memcpy(s.memory.data() + qpc_bus + (c.qpn & 0xfff) * 256 + 128, &c, sizeof c);
  }
  icm::responder_context get(std::uint32_t number = qpn) const {
    icm::responder_context c;
    std::memcpy(&c, s.memory.data() + qpc_bus + (number & 0xfff) * 256 + 128, sizeof c);
    return c;
  }

  void post(unsigned index, const std::vector<receive_segment>& list) {
    std::uint8_t* w = s.memory.data() + rq_bus + (index & 15) * 64;
    for (unsigned i = 0; i < 4; ++i) {
      const receive_segment e = i < list.size() ? list[i] : receive_segment{0, 0x100, 0};
      store_be32(w + i * 16, e.length);
      store_be32(w + i * 16 + 4, e.key);
      store_be32(w + i * 16 + 8, static_cast<std::uint32_t>(e.address >> 32));
      store_be32(w + i * 16 + 12, static_cast<std::uint32_t>(e.address));
    }
    store_be32(s.memory.data() + record_bus, index + 1);
  }

  /// A request of the peer with `payload`; further headers by `change`.
  template <class F>
  void send(wire::operation op, std::uint32_t psn, const std::vector<std::uint8_t>& payload, F change,
            wire::transport t = wire::transport::rc) {
    payload::frame_ptr f = frames.get();
    wire::packet p;
    p.dmac = {2, 0, 0, 0, 0, 1};
    p.smac = {2, 0, 0, 0, 0, 2};
    p.encap = wire::encapsulation::roce_v2_ipv4;
    p.sgid = peer_gid();
    p.dgid = own_gid();
    p.udp_source = 0xc000;
    p.bth.opcode = wire::make_opcode(t, op);
    p.bth.dest_qp = qpn;
    p.bth.psn = wire::psn_t(psn);
    p.bth.ack_request = wire::traits(p.bth.opcode).last;
    change(p);
    p.payload_length = static_cast<std::uint32_t>(payload.size());
    std::copy(payload.begin(), payload.end(), f->buffer.begin() + payload::frame::payload_start);
    const std::uint8_t* first = wire::build(p, f->buffer.data() + payload::frame::payload_start);
    f->begin = static_cast<std::uint32_t>(first - f->buffer.data());
    f->length = p.icrc_offset + 4;
    ASSERT_EQ(wire::decode(f->data(), f->length, f->packet), wire::decode_error::none);
    f->gid_index = 2;
    f->span = spans.open(base.now_ps());
    s.to_send.push_back(std::move(f));
    s.wake_next();
  }
  void send(wire::operation op, std::uint32_t psn, const std::vector<std::uint8_t>& payload) {
    send(op, psn, payload, [](wire::packet&) {});
  }
  void write(wire::operation op, std::uint32_t psn, const std::vector<std::uint8_t>& payload, std::uint64_t va,
             std::uint32_t length, std::uint32_t key = rkey) {
    send(op, psn, payload, [&](wire::packet& p) { p.reth = {va, key, length}; });
  }
  void read(std::uint32_t psn, std::uint64_t va, std::uint32_t length, std::uint32_t key = rkey) {
    send(wire::operation::read_request, psn, {}, [&](wire::packet& p) { p.reth = {va, key, length}; });
  }
  /// A plain frame that steering gives to QP `to`.
  void steer(std::uint32_t to, const std::vector<std::uint8_t>& bytes) {
    payload::frame_ptr f = frames.get();
    f->plain = true;
    f->fcs_ok = true;
    f->length = static_cast<std::uint32_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), f->data());
    f->packet.bth = wire::bth{};
    f->packet.bth.opcode = wire::make_opcode(wire::transport::ud, wire::operation::send_only);
    f->packet.bth.dest_qp = to;
    f->packet.immediate = f->packet.xrceth = 0;
    f->packet.payload_offset = 0;
    f->packet.payload_length = f->length;
    s.to_steer.push_back(std::move(f));
    s.wake_next();
  }
  void run(unsigned cycles = 3000);
  /// A counter of the responder.
  std::uint64_t count(const std::string& counter) const { return stats.value(r.name() + "." + counter); }

  static std::vector<std::uint8_t> pattern(std::size_t n, unsigned seed = 1) {
    std::vector<std::uint8_t> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::uint8_t>(i * 7 + i / 256 * 13 + seed);
    return v;
  }
  /// Bytes of the data region at virtual address data_va + offset.
  std::vector<std::uint8_t> data(std::size_t offset, std::size_t n) const {
    const auto at = s.memory.begin() + static_cast<std::ptrdiff_t>(data_bus + 0x123 + offset);
    return {at, at + static_cast<std::ptrdiff_t>(n)};
  }

  sim::timebase base;
  sim::clock_domain core;
  icm::icm_map map;
  std::array<gid::gid_table, 2> gids;
  std::array<gid::gid_source, 2> sources{gid::gid_source({}, gids[0]), gid::gid_source({}, gids[1])};
  payload::frame_pool frames;
  sim::span_recorder spans;
  sim::statistics stats;
  responder_memories memories;
  responder r;
  receive_fetch fetch;
  sim::fifo<receive_job> fetch_jobs{"fetch_jobs", core, 2};
  sim::fifo<receive_fetch_result> fetch_results{"fetch_results", core, 2};
  read_engine reads;
  read_generator generator;
  atomic_unit atomics;
  cnp_sender cnps;
  sim::fifo<read_engine_request> read_requests{"read_requests", core, 2};
  sim::fifo<read_engine_grant> read_grants{"read_grants", core, 2};
  sim::fifo<read_engine_request> piece_requests{"piece_requests", core, 2};
  sim::fifo<read_engine_grant> piece_grants{"piece_grants", core, 2};
  sim::fifo<read_command> commands{"commands", core, 2};
  sim::fifo<read_report> reports{"reports", core, 2};
  sim::fifo<atomic_job> atomic_jobs{"atomic_jobs", core, 2};
  sim::fifo<atomic_outcome> atomic_outcomes{"atomic_outcomes", core, 2};
  answer_transmit out;
  std::deque<sim::fifo<answer_job>> jobs;
  std::deque<sim::fifo<answer_room>> room;
  station s;
};

/// A pattern of n bytes from data_va on.
inline void fill(bench& b, std::size_t n) {
  const auto data = bench::pattern(n, 3);
  std::copy(data.begin(), data.end(), b.s.memory.begin() + data_bus + 0x123);
}

/// A responder with room for n READs and atomics that wait.
inline responder_config places(unsigned n) {
  responder_config c;
  c.read_queue = n;
  return c;
}

}  // namespace rnic::transport::test
