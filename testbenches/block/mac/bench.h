// SPDX-License-Identifier: Apache-2.0
// Two ports, a cable, and at each end a block that sends what it is told and one that takes what arrives.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "model/fabric/cable.h"
#include "model/mac/mac_cr.h"
#include "model/mac/port.h"
#include "model/sim/timebase.h"
#include "model/wire/bytes.h"
#include "model/wire/icrc.h"

namespace rnic::mac::test {

/// Offers frames from its list as fast as the channel takes them; a frame may have an earliest edge.
class sender : public sim::clocked_block {
 public:
  struct item {
    payload::frame_ptr frame;
    sim::cycle_t not_before = 0;
  };
  sender(std::string name, sim::clock_domain& domain) : clocked_block(name, domain), out(*this) {}
  sim::fifo_out<payload::frame_ptr> out;
  void send(payload::frame_ptr f, sim::cycle_t not_before = 1) {
    items.push_back({std::move(f), not_before});
    wake_at(items.front().not_before > now() ? items.front().not_before : now() + 1);
  }
  std::deque<item> items;

 private:
  void tick() override {
    if (items.empty()) return;
    if (items.front().not_before > now()) return wake_at(items.front().not_before);
    if (!out.can_push()) return;
    out.push(std::move(items.front().frame));
    items.pop_front();
    if (!items.empty()) wake_at(std::max(now() + 1, items.front().not_before));
  }
};

/// Takes what arrives, one frame each `interval` cycles, not before `from`; notes when and what, and tells that it
/// leaves the ingress buffer when `departures` is bound.
class taker : public sim::clocked_block {
 public:
  struct note {
    sim::time_ps at = 0;
    payload::frame_ptr frame;
  };
  taker(std::string name, sim::clock_domain& domain) : clocked_block(name, domain), in(*this), departures(*this) {}
  sim::fifo_in<payload::frame_ptr> in;
  sim::fifo_out<payload::departure> departures;
  sim::cycle_t from = 0;
  sim::cycle_t interval = 1;
  std::vector<note> notes;

 private:
  void tick() override {
    if (!in.can_pop()) return;
    if (now() < from) return wake_at(from);
    notes.push_back({now_ps(), in.pop()});
    const payload::frame& f = *notes.back().frame;
    if (departures.bound()) departures.push({now(), f.length, f.priority});
    from = now() + interval;
    if (in.can_pop()) wake_at(from);
  }
};

/// Takes credits, not before `from`, and counts them.
class credit_counter : public sim::clocked_block {
 public:
  credit_counter(std::string name, sim::clock_domain& domain) : clocked_block(name, domain), in(*this) {}
  sim::fifo_in<transport::egress_credit> in;
  unsigned by_priority[8] = {};
  sim::cycle_t from = 0;

 private:
  void tick() override {
    if (in.can_pop() && now() < from) return wake_at(from);
    if (in.can_pop()) ++by_priority[in.pop().priority];
  }
};

/// A port with its surroundings.
struct station {
  station(const std::string& name, sim::clock_domain& domain, const port::config& cfg, payload::frame_pool& pool,
          sim::span_recorder& spans)
      : mac(name, domain, cfg, pool, spans),
        tx(name + ".tx", domain),
        rx(name + ".rx", domain),
        credits(name + ".credits", domain),
        to_mac(name + ".to_mac", domain, 4),
        from_mac(name + ".from_mac", domain, 2),
        credit(name + ".credit", domain, 4),
        departures(name + ".departures", domain, 8) {
    tx.out.bind(to_mac);
    mac.tx_in.bind(to_mac);
    mac.rx_out.bind(from_mac);
    rx.in.bind(from_mac);
    mac.credits_out[0].bind(credit);
    credits.in.bind(credit);
    mac.cr_write(cr::port_control, 1);
    mac.cr_write(cr::mac_low, 1);
    mac.cr_write(cr::mac_high, 0x0200);
  }
  /// What waits in front of the taker has its room in the ingress buffer until it is taken.
  void count_what_waits() {
    rx.departures.bind(departures);
    mac.departures[0].bind(departures);
  }
  port mac;
  sender tx;
  taker rx;
  credit_counter credits;
  sim::fifo<payload::frame_ptr> to_mac;
  sim::fifo<payload::frame_ptr> from_mac;
  sim::fifo<transport::egress_credit> credit;
  sim::fifo<payload::departure> departures;
};

/// What went over the cable.
struct line_log : payload::frame_observer_if {
  struct note {
    unsigned from;
    sim::time_ps first_bit, last_bit;
    std::uint8_t priority;
    bool control;
    std::vector<std::uint8_t> bytes;
  };
  void observe(unsigned from, const payload::frame& f, sim::time_ps first_bit, sim::time_ps last_bit) override {
    notes.push_back({from, first_bit, last_bit, f.priority, f.control, {f.data(), f.data() + f.length}});
  }
  std::vector<note> notes;
};

/// 1 GHz, so that a cycle is 1000 ps and literals can be followed by hand.
struct bench {
  explicit bench(const port::config& a_cfg = {}, const port::config& b_cfg = {}, const sim::timebase::options& o = {},
                 sim::clock_period period = {1000, 1, 0})
      : base(o),
        domain("core", base, period),
        a("a", domain, a_cfg, pool, spans),
        b("b", domain, b_cfg, pool, spans),
        line(a.mac, b.mac) {
    line.add_observer(log);
  }
  /// A tagged frame of `length` bytes before the FCS (untagged with `tagged` false); first payload byte is `mark`.
  payload::frame_ptr frame(std::uint32_t length, std::uint8_t priority = 0, bool tagged = false,
                           std::uint8_t mark = 0) {
    payload::frame_ptr f = pool.get();
    f->begin = payload::frame::payload_start;
    f->length = length;
    f->priority = priority;
    std::uint8_t* d = f->data();
    for (std::uint32_t i = 0; i < length; ++i) d[i] = static_cast<std::uint8_t>(i);
    d[0] = 2;
    wire::store_be16(d + 12, tagged ? 0x8100 : 0x88b5);
    if (tagged) wire::store_be16(d + 14, static_cast<std::uint16_t>(priority << 13));
    if (length > 18) d[18] = mark;
    return f;
  }
  static void run_ns(std::uint64_t ns) { sc_core::sc_start(sc_core::sc_time::from_value(ns * 1000)); }

  payload::frame_pool pool;
  sim::span_recorder spans;
  sim::timebase base;
  sim::clock_domain domain;
  station a, b;
  fabric::cable line;
  line_log log;
};

}  // namespace rnic::mac::test
