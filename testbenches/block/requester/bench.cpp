// SPDX-License-Identifier: Apache-2.0
#include "testbenches/block/requester/bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <systemc>

#include "model/gid/gid_cr.h"
#include "model/wire/bytes.h"

namespace bench {

world::world(sim::clock_domain& domain, unsigned cycles)
    : clocked_block("world", domain), memory(0x400000), memory_cycles(cycles) {}

void world::serve(client& c, unsigned port) {
  if (rests(port)) return;
  // Memory of the QP's owner is not open to another function.
  const auto legal_one = [&](const pcie::dma_request& d) {
    return d.address + d.length <= memory.size() && (&c == &contexts || d.function == owning_function);
  };
  const auto read = [&](const pcie::dma_request& d) {
    if (legal_one(d)) std::memcpy(d.destination, memory.data() + d.address, d.length);
  };
  if (c.request.can_pop()) {
    c.busy.emplace_back(now() + memory_cycles, c.request.pop());
    const pcie::dma_request& d = c.busy.back().second;
    if (neighbour != nullptr) neighbour->asked(port, d.address, d.length);
    if (samples_early && d.op == pcie::dma_request::kind::read) read(d);
    wake_at(now() + memory_cycles);
  }
  if (!c.busy.empty() && c.busy.front().first <= now() && c.response.can_push()) {
    pcie::dma_request& d = c.busy.front().second;
    const bool legal = legal_one(d);
    if (d.op == pcie::dma_request::kind::read) {
      ++reads;
      c.read_bytes += d.length;
      if (!samples_early) read(d);
    } else if (legal) {
      std::memcpy(memory.data() + d.address, d.source != nullptr ? d.source : d.bytes.data(), d.length);
    }
    if (d.op == pcie::dma_request::kind::read || d.notify)
      c.response.push({d.tag, legal ? pcie::dma_status::ok : pcie::dma_status::unsupported_request});
    c.busy.pop_front();
  }
  if (!c.busy.empty()) wake_at(std::max(c.busy.front().first, now() + 1));
}

void world::translate(translation& to, unsigned port) {
  if (rests(port)) return;
  if (translates && to.request.can_pop() && to.response.can_push()) {
    const icm::translate_request t = to.request.pop();
    if (neighbour != nullptr) neighbour->asked(port, t.va, t.length);
    icm::translate_response r;
    r.tag = t.tag;
    const std::uint64_t at = t.what == icm::translate_request::kind::buffer ? t.buffer_mtt + t.va : t.va;
    if (t.what == icm::translate_request::kind::key && t.key != good_key) r.status = icm::translate_status::bad_key;
    // Two segments when it crosses a page, as the real one answers.
    const std::uint32_t first = static_cast<std::uint32_t>(std::min<std::uint64_t>(t.length, 4096 - at % 4096));
    r.segments[r.count++] = {at, first};
    if (first < t.length) r.segments[r.count++] = {at + first, t.length - first};
    to.response.push(r);
  }
}

void world::tick() {
  if (neighbour != nullptr) {
    neighbour->step();
    wake_next();
  }
  serve(descriptors, of_descriptors);
  serve(contexts, of_contexts);
  serve(gather, of_gather);
  serve(scatter, of_scatter);
  translate(addresses, of_addresses);
  translate(gather_addresses, of_gather_addresses);
  translate(scatter_addresses, of_scatter_addresses);
  if (!rests(of_cqes) && cqe.can_pop()) cqes.emplace_back(now(), cqe.pop());
  if (!rests(of_events) && event.can_pop()) event.pop();
  if (!rests(of_errors) && error_in.can_pop()) errors.push_back(error_in.pop().qpn);
  if (!rests(of_tx) && tx.can_pop() && (!return_credits || credit.can_push())) {
    payload::frame_ptr f = tx.pop();
    ++taken;
    if (neighbour != nullptr) neighbour->sent(*f);
    if (return_credits) credit.push({f->port, f->priority});
    if (keep_frames) sent.emplace_back(now(), std::move(f));
  }
  for (; !rests(of_rx) && !to_rx.empty() && rx.claim(); to_rx.pop_front()) rx.push(to_rx.front());
  for (; !rests(of_doorbells) && !to_ring.empty() && doorbell.claim(); to_ring.pop_front())
    doorbell.push(to_ring.front());
  for (; !rests(of_told) && !to_error.empty() && error_out.claim(); to_error.pop_front())
    error_out.push({to_error.front()});
}

bench::bench(const setup& s)
    : base(s.time),
      core("core", base, sim::clock_period::from_khz(s.core_khz)),
      sched("scheduler", core, {}, spans, stats),
      memories(s.requester),
      dut("requester", core, s.requester, map, {&gids[0], &gids[1]}, memories, frames, spans, stats),
      descriptor_fetch("descriptor_fetch", core, memories.descriptors, spans, stats),
      gather("gather", core, s.requester, {{&sources[0], &sources[1]}}, memories.withdrawn, spans, stats),
      scatter("scatter", core, s.requester.scatter_jobs, memories.lists, spans, stats),
      ack_timers("ack_timers", core, s.requester.timers, s.requester.log_qps, stats),
      read_engine("read_engine", core, stats),
      w(core, s.memory_cycles) {
  w.doorbell.bind(ring_q);
  sched.doorbell_in.bind(ring_q);
  sched.grant_out.bind(grants);
  dut.grant_in.bind(grants);
  dut.report_out.bind(reports);
  sched.report_in.bind(reports);
  dut.descriptor_out.bind(fetches);
  descriptor_fetch.job_in.bind(fetches);
  descriptor_fetch.result_out.bind(fetched);
  dut.descriptor_in.bind(fetched);
  dut.packet_out.bind(packets);
  gather.job_in.bind(packets);
  dut.piece_out.bind(pieces);
  gather.piece_in.bind(pieces);
  dut.verdict_out.bind(verdicts);
  gather.verdict_in.bind(verdicts);
  gather.left_out.bind(left);
  dut.left_in.bind(left);
  gather.event_out.bind(gather_events);
  dut.gather_event_in.bind(gather_events);
  gather.address_out.bind(known);
  dut.address_in.bind(known);
  gather.tx_out.bind(tx);
  w.tx.bind(tx);
  w.rx.bind(rx);
  dut.rx_in.bind(rx);
  descriptor_fetch.dma.request.bind(dma_q);
  w.descriptors.request.bind(dma_q);
  w.descriptors.response.bind(dma_r);
  descriptor_fetch.dma.response.bind(dma_r);
  dut.contexts().dma.request.bind(ctx_q);
  w.contexts.request.bind(ctx_q);
  w.contexts.response.bind(ctx_r);
  dut.contexts().dma.response.bind(ctx_r);
  descriptor_fetch.translate.request.bind(tr_q);
  w.addresses.request.bind(tr_q);
  w.addresses.response.bind(tr_r);
  descriptor_fetch.translate.response.bind(tr_r);
  dut.scatter_out.bind(scatter_jobs);
  scatter.job_in.bind(scatter_jobs);
  scatter.done_out.bind(scatter_reports);
  dut.scatter_in.bind(scatter_reports);
  gather.dma.request.bind(gather_q);
  w.gather.request.bind(gather_q);
  w.gather.response.bind(gather_r);
  gather.dma.response.bind(gather_r);
  gather.translate.request.bind(gather_tr_q);
  w.gather_addresses.request.bind(gather_tr_q);
  w.gather_addresses.response.bind(gather_tr_r);
  gather.translate.response.bind(gather_tr_r);
  scatter.dma.request.bind(scatter_q);
  w.scatter.request.bind(scatter_q);
  w.scatter.response.bind(scatter_r);
  scatter.dma.response.bind(scatter_r);
  scatter.translate.request.bind(scatter_tr_q);
  w.scatter_addresses.request.bind(scatter_tr_q);
  w.scatter_addresses.response.bind(scatter_tr_r);
  scatter.translate.response.bind(scatter_tr_r);
  dut.timer_out.bind(timer_commands);
  ack_timers.commands.bind(timer_commands);
  ack_timers.expirations.bind(expirations);
  dut.timer_in.bind(expirations);
  dut.cqe_out.bind(cqe);
  w.cqe.bind(cqe);
  dut.event_out.bind(event);
  w.event.bind(event);
  dut.error_out.bind(error_out);
  w.error_in.bind(error_out);
  w.error_out.bind(error_in);
  dut.read_engine.request.bind(read_requests);
  read_engine.request[transport::read_engine::requester].bind(read_requests);
  read_engine.grant[transport::read_engine::requester].bind(read_grants);
  dut.read_engine.grant.bind(read_grants);
  dut.response_engine.request.bind(response_requests);
  read_engine.request[transport::read_engine::responses].bind(response_requests);
  read_engine.grant[transport::read_engine::responses].bind(response_grants);
  dut.response_engine.grant.bind(response_grants);
  dut.error_in.bind(error_in);
  w.credit.bind(credit);
  dut.credit_in[0].bind(credit);

  map.layout(icm::table::qpc) = {0, 256, 10};
  map.map(0, qpc_at, 256 * 1024);
  const std::uint32_t words[4] = {0, 0, 0x0000ffff, 0x0a000001};  // ::ffff:10.0.0.1
  for (unsigned i = 0; i < 4; ++i) gids[0].cr_write(gid::cr::gid_word(3, i), words[i]);
  gids[0].cr_write(gid::cr::gid_word(3, 4), gid::cr::gid_valid | (s.v2 ? 2u << gid::cr::gid_type_shift : 0));
  gids[0].cr_write(gid::cr::mac_word(5, 0), gid::cr::mac_valid | 0x0202);
  gids[0].cr_write(gid::cr::mac_word(5, 1), 0x03040506);
  gids[0].cr_write(gid::cr::vlan_word(2), gid::cr::vlan_valid | 77);

  std::memset(&context, 0, sizeof context);
  context.function = owning_function;
  context.remote_qpn = remote_qpn;
  context.state = icm::qp_state::rts;
  context.type = s.type;
  context.flags = icm::requester_flag_unlimited;
  context.log_sq_size = log_sq;
  context.log_sq_stride = 6;
  const std::uint8_t dmac[6] = {2, 9, 8, 7, 6, 5};
  std::memcpy(context.dest.dmac, dmac, 6);
  context.dest.smac_index = 5;
  context.dest.gid_index = 3;
  const std::uint8_t rgid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
  std::memcpy(context.dest.remote_gid, rgid, 16);
  context.dest.hop_limit = 63;
  context.dest.traffic_class = 0x68;
  context.dest.flow_label = 0x12345;
  context.dest.vlan_index = 2;
  context.dest.flags =
      static_cast<std::uint8_t>((s.vlan ? icm::path_flag_vlan : 0) | (s.v2 ? icm::path_flag_roce_v2 : 0));
  context.dest.udp_source = 0xc001;
  context.dest.priority = 3;
  context.dest.mtu_code = s.mtu_code;
  context.pd = 7;
  context.uar = 0x80;
  context.cqn = 0x85;
  context.qkey = 0x11111111;
  context.sq_address = ring;
  context.log_page = 12;
  context.ack_timeout = s.ack_timeout;
  context.retry_limit = context.retries_left = s.retry_limit;
  context.rnr_retry_limit = context.rnr_retries_left = s.rnr_limit;
  context.log_max_rd_atomic = 1;
  context.ack_request_log = 8;
  context.next_psn = context.unacked_psn = 0xfffffe;
  make_qp(qpn);
  for (unsigned i = 0; i < 1u << log_sq; ++i) w.memory[ring + i * 64] = 0x80;  // owned by software
  for (std::size_t i = 0; i < 0x10000; ++i) w.memory[data + i] = static_cast<std::uint8_t>(i * 7 + (i >> 8));
}

void bench::make_qp(std::uint32_t number) {
  context.qpn = number;
  std::memcpy(w.memory.data() + qpc_at + (number & 1023) * 256, &context, sizeof context);
  const std::uint32_t owner = scheduler::uar_of(context.function, context.uar);
  sched.cr_write(scheduler::cr::qp_select, number);
  if (sched.cr_read(scheduler::cr::owner) != owner) sched.cr_write(scheduler::cr::owner, owner);
}

icm::requester_context bench::stored(std::uint32_t number) const {
  icm::requester_context c;
  std::memcpy(&c, w.memory.data() + qpc_at + (number & 1023) * 256, sizeof c);
  return c;
}

std::uint32_t bench::post(std::vector<std::uint32_t> words) {
  const std::uint32_t index = posted;
  if ((index >> log_sq & 1) != 0) words[0] |= 0x80000000;
  std::uint8_t* slot = w.memory.data() + ring + (index & ((1u << log_sq) - 1)) * 64;
  for (std::size_t i = 0; i < words.size(); ++i) wire::store_be32(slot + 4 * i, words[i]);
  posted += ((words[1] & 0x3f) * 16 + 63) / 64;
  slot = w.memory.data() + ring + (posted & ((1u << log_sq) - 1)) * 64;
  if ((posted >> log_sq & 1) != 0)
    slot[0] = 0;  // what is next is software's
  else
    slot[0] = 0x80;
  return index;
}

std::uint32_t bench::post_send(std::uint32_t length, std::uint64_t at, std::uint32_t key) {
  return post({0x0a, 2, 0xc, 0, length, key, 0, static_cast<std::uint32_t>(at)});
}

std::uint32_t bench::post_write(std::uint32_t length, bool signalled) {
  return post({0x08, 3, signalled ? 0xcu : 0u, 0, 0x7f00, 0x5000, 0xabcd, 0, length, good_key, 0, data});
}

std::uint32_t bench::post_read(std::uint32_t length, std::uint64_t at) {
  return post({0x10, 3, 0xc, 0, 0x7f00, 0x5000, 0xabcd, 0, length, good_key, 0, static_cast<std::uint32_t>(at)});
}

void bench::ring_doorbell(std::uint32_t uar) {
  scheduler::send_doorbell d;
  d.qpn = qpn;
  d.uar = scheduler::uar_of(owning_function, uar);
  w.to_ring.push_back(d);
  w.wake_next();
}

void bench::respond(wire::operation op, std::uint32_t psn, std::uint8_t syndrome,
                    const std::vector<std::uint8_t>& bytes, std::uint32_t to, std::uint64_t original) {
  payload::frame_ptr f = frames.get();
  wire::packet& p = f->packet;
  p = wire::packet{};
  p.bth.opcode = static_cast<std::uint8_t>(op);
  p.bth.dest_qp = to;
  p.bth.psn = wire::psn_t(psn);
  p.aeth = {syndrome, 1};
  p.atomic_original = original;
  std::copy_n(context.dest.remote_gid, p.sgid.size(), p.sgid.begin());  // an answer of the peer
  p.dgid = gids[context.dest.port][context.dest.gid_index].id;
  if ((context.dest.flags & icm::path_flag_roce_v2) == 0) p.encap = wire::encapsulation::roce_v1;
  f->port = context.dest.port;
  p.payload_length = static_cast<std::uint32_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), f->buffer.data() + payload::frame::payload_start);
  const std::uint8_t* begin = wire::build(p, f->buffer.data() + payload::frame::payload_start);
  f->begin = static_cast<std::uint32_t>(begin - f->buffer.data());
  f->length = p.icrc_offset + 4;
  w.to_rx.push_back(f);
  w.wake_next();
}

void bench::run_ns(std::uint64_t ns) { sc_core::sc_start(static_cast<double>(ns), sc_core::SC_NS); }

bool bench::run_until_sent(std::size_t count) {
  for (unsigned step = 0; step != 10'000 && w.sent.size() < count; ++step) run_ns(2);
  return w.sent.size() >= count;
}

wire::packet bench::sent(std::size_t i) const {
  wire::packet p;
  const payload::frame& f = *w.sent.at(i).second;
  EXPECT_EQ(wire::decode(f.data(), f.length, p), wire::decode_error::none);
  return p;
}

std::vector<std::uint8_t> bench::payload(std::size_t i) const {
  const wire::packet p = sent(i);
  const std::uint8_t* b = w.sent.at(i).second->data() + p.payload_offset;
  return {b, b + p.payload_length};
}

}  // namespace bench
