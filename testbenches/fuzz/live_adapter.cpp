// SPDX-License-Identifier: Apache-2.0
#include "testbenches/fuzz/live_adapter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <systemc>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "model/wire/icrc.h"
#include "testbenches/fuzz/property.h"
#include "testbenches/fuzz/snapshot.h"

namespace rnic::fuzz {

using conformance::heard_frame;
using conformance::rig;
using conformance::us;

namespace {

constexpr std::size_t most_heap = 512u << 20;
/// What a device that has nothing to do may still tick: housekeeping, counted over `rest_us`.
constexpr std::uint64_t rest_us = 500, ticks_at_rest = 100;
/// Slots of channels keep a frame until they are filled again.
constexpr std::size_t frames_kept = 96;

struct {
  const char* what = nullptr;
  sim::time_ps until = 0;
  std::uint64_t ticks = 0;
  std::size_t heap = 0;
} watch;

void look() {
  sc_core::next_trigger(sc_core::sc_time(static_cast<double>(50), sc_core::SC_US));
  if (watch.what == nullptr) return;
  if (sc_core::sc_time_stamp().value() > watch.until) broken(std::string("it takes for ever: ") + watch.what);
  if (ticks() > watch.ticks) broken(std::string("the adapter ticks for ever: ") + watch.what);
  if (heap_bytes() > watch.heap + most_heap) broken(std::string("memory grows: ") + watch.what);
}

void start_watch() {
  sc_core::sc_spawn_options method;
  method.spawn_method();
  sc_core::sc_spawn(look, "watch", &method);
}

}  // namespace

std::uint64_t ticks() { return rig::instance().host().nic().clock().ticks(); }

patience::patience(const char* what, sim::time_ps time, std::uint64_t more_ticks) {
  watch.what = what;
  watch.until = sc_core::sc_time_stamp().value() + time;
  watch.ticks = ticks() + more_ticks;
}

patience::~patience() { watch.what = nullptr; }

namespace {

void make_narrow(hosts::node_config& c) {
  adapter::config& a = c.adapter;
  a.descriptor_depth = 8;
  a.translation.waiting = 4;
  a.translation.fills = 2;
  a.translation.mpt_entries = a.translation.mpt_ways = 4;
  a.translation.mtt_entries = a.translation.mtt_ways = 4;
  a.translation.mtt_line_entries = 1;
  a.requester.outstanding_entries = 64;
  a.requester.scatter_lists = 16;
  a.requester.scatter_jobs = 8;
  a.requester.processing_units = 2;
}

}  // namespace

void bring_up(bool narrow) {
  if (narrow) rig::configure(make_narrow);
  start_watch();
  rig& r = rig::instance();
  r.run([&r] {
    expect_serves(r);
    expect_rest(r);
  });
  watch.heap = heap_bytes();
  take_snapshot();
}

void in_adapter(const std::function<void(rig&)>& body) {
  in_copy([&body] {
    rig& r = rig::instance();
    r.run([&] { body(r); });
  });
}

void expect_rest(rig& r) {
  const patience all("what is left comes to its end", 50'000 * us, 3'000'000);
  r.rest(1000 * us);
  // A pause of the peer's lasts for 0.84 ms at most.
  for (unsigned i = 0;; ++i) {
    const std::uint64_t before = ticks();
    r.rest(rest_us * us);
    if (ticks() - before <= ticks_at_rest) break;
    if (i == 8)
      broken("the adapter ticks with nothing to do: " + std::to_string(ticks() - before) + " ticks in 500 us");
  }
  if (r.frames().in_use() > frames_kept) broken("frames are lost: " + std::to_string(r.frames().in_use()) + " in use");
}

namespace {

constexpr std::uint32_t first_in = 0x100, first_out = 0x200, bytes_each = 64;

/// A queue pair as every program has it, and its peer's frames.
class customer {
 public:
  explicit customer(rig& r) : r_(r), at_(r.at()), peer_qpn_(r.new_peer_qpn()) {
    cq_ = at_.device->create_cq(16);
    if (cq_ == nullptr) broken("no completion queue is to be had any more");
    qp_ = hosts::make_qp(at_, r.options(), *cq_, *cq_);
    hosts::connect(at_, r.options(), *qp_, r.peer(), peer_qpn_, first_out, first_in);
    memory_ = hosts::make_buffer(at_, 4096);
  }
  void write();
  void read();
  void send();
  void leave();

 private:
  wire::packet headers(std::uint8_t opcode, std::uint32_t psn, std::uint32_t payload) const;
  void put(wire::packet p);
  heard_frame answer(wire::operation op, std::uint32_t psn);
  static std::uint8_t pattern(std::uint32_t i) { return static_cast<std::uint8_t>(i * 11 + 3); }

  rig& r_;
  hosts::endpoint& at_;
  std::uint32_t peer_qpn_;
  host_driver::completion_queue* cq_ = nullptr;
  host_driver::queue_pair* qp_ = nullptr;
  hosts::buffer memory_;
};

wire::packet customer::headers(std::uint8_t opcode, std::uint32_t psn, std::uint32_t payload) const {
  wire::packet p;
  p.dmac = at_.mac;
  p.smac = r_.peer().mac;
  p.encap = r_.network();
  p.sgid = r_.peer().gid;
  p.dgid = at_.gid;
  p.udp_source = 0xc321;
  p.bth.opcode = opcode;
  p.bth.dest_qp = qp_->qp_num;
  p.bth.psn = wire::psn_t(psn);
  p.bth.ack_request = wire::traits(opcode).request;
  p.reth = {memory_.address(), memory_.region->rkey, bytes_each};
  p.aeth = {0x1f, 1};
  p.payload_length = payload;
  return p;
}

void customer::put(wire::packet p) {
  std::array<std::uint8_t, 1024> room{};
  std::uint8_t* const payload = room.data() + 256;
  for (std::uint32_t i = 0; i < p.payload_length; ++i) payload[i] = pattern(i);
  std::uint8_t* const first = wire::build(p, payload);
  const std::uint32_t crc = wire::icrc(first, p);
  for (unsigned i = 0; i < 4; ++i) first[p.icrc_offset + i] = static_cast<std::uint8_t>(crc >> (8 * i));
  r_.inject(std::vector<std::uint8_t>(first, first + p.icrc_offset + 4));
}

/// The next frame to this peer; others may still be told something.
heard_frame customer::answer(wire::operation op, std::uint32_t psn) {
  heard_frame h;
  while (r_.hear(h, 5000 * us)) {
    if (h.packet.bth.dest_qp != peer_qpn_) continue;
    if (h.packet.bth.opcode != wire::make_opcode(wire::transport::rc, op) || h.packet.bth.psn.value() != psn)
      broken("a good customer gets opcode " + std::to_string(h.packet.bth.opcode) + " PSN " +
             std::to_string(h.packet.bth.psn.value()));
    return h;
  }
  broken("a good customer gets no answer: opcode " + std::to_string(static_cast<int>(op)));
}

void customer::write() {
  put(headers(wire::make_opcode(wire::transport::rc, wire::operation::write_only), first_in, bytes_each));
  if ((answer(wire::operation::acknowledge, first_in).packet.aeth.syndrome >> 5) != 0)
    broken("a good WRITE is refused");
  for (std::uint32_t i = 0; i < bytes_each; ++i) demand(*memory_.at(i) == pattern(i), "a good WRITE arrives");
}

void customer::read() {
  put(headers(wire::make_opcode(wire::transport::rc, wire::operation::read_request), first_in + 1, 0));
  const heard_frame h = answer(wire::operation::read_response_only, first_in + 1);
  demand(h.payload.size() == bytes_each && std::memcmp(h.payload.data(), memory_.at(), bytes_each) == 0,
         "a good READ is answered");
}

void customer::send() {
  ibv_sge sge{memory_.address(), bytes_each, memory_.region->lkey};
  ibv_send_wr wr{}, *failed = nullptr;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  demand(at_.device->post_send(qp_, &wr, &failed) == 0, "a good SEND is taken");
  answer(wire::operation::send_only, first_out);
  put(headers(wire::make_opcode(wire::transport::rc, wire::operation::acknowledge), first_out, 0));
  ibv_wc wc{};
  demand(at_.device->wait_cq(cq_, 1, &wc, 5000 * us) == 1 && wc.status == IBV_WC_SUCCESS, "a good SEND completes");
}

void customer::leave() {
  demand(at_.device->destroy_qp(qp_) == 0, "a good customer's queue pair goes");
  demand(at_.device->destroy_cq(cq_) == 0, "a good customer's completion queue goes");
  demand(at_.device->dereg_mr(memory_.region) == 0, "a good customer's memory goes");
  at_.device->free_buffer(memory_.memory);
}

}  // namespace

void expect_serves(rig& r) {
  const patience all("a good customer is served", 30'000 * us, 2'000'000);
  r.forget_frames();
  customer c(r);
  c.write();
  c.read();
  c.send();
  c.leave();
}

}  // namespace rnic::fuzz
