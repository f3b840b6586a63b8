// SPDX-License-Identifier: Apache-2.0
// Address translation.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "testbenches/block/responder/random/host_memory.h"

namespace rnic::transport::random_test {

/// Takes one request a cycle from each client. Answers of payload overtake each other, those of the others do not.
class translator final : public sim::clocked_block {
 public:
  translator(sim::clock_domain& d, const blocks_under_test& of, const behaviour& how, const region_table& regions)
      : clocked_block("translator", d),
        how_(how),
        regions_(regions),
        clients_{{{*this, d, of.requests.translate, "payload_translations", channel::payload_translations},
                  {*this, d, of.fetches.translate, "descriptor_translations", channel::descriptor_translations},
                  {*this, d, of.reads.translate, "response_translations", channel::response_translations}}} {}

  journal seen;

 private:
  struct client : test::station::translation_client {
    client(sim::clocked_block& owner, sim::clock_domain& d, icm::translate_port& port, const std::string& name,
           channel c)
        : test::station::translation_client(owner, d, port, name), of(c) {}
    channel of;
    std::uint64_t taken = 0;
  };
  static constexpr std::size_t most_open = 32;

  void tick() override {
    for (client& c : clients_) {
      if (c.in.can_pop() && c.open.size() < most_open && how_.takes(c.of, now())) take(c);
      answer(c);
      if (c.in.can_pop() || !c.open.empty()) wake_next();
    }
  }

  void take(client& c) {
    const icm::translate_request q = c.in.pop();
    const std::uint64_t number = c.taken++;
    const bool poll = q.va >= records_at && q.va < records_end;
    const auto note = poll ? &journal::note_poll : &journal::note;
    (seen.*note)(now(), "translation: channel, kind, address, key, length, checked length, access, domain",
                 {static_cast<std::uint64_t>(c.of), static_cast<std::uint64_t>(q.what), q.va, q.key, q.length,
                  q.check_length, static_cast<std::uint64_t>(q.access), q.pd});
    icm::translate_response r = translated(q);
    r.missed = how_.delay(c.of, number) > 8;
    c.open.push_back({r, now() + how_.delay(c.of, number)});
  }

  void answer(client& c) {
    const auto due = [&](const auto& t) { return t.due <= now(); };
    const bool overtakes = c.of == channel::payload_translations;
    const auto end = overtakes || c.open.empty() ? c.open.end() : c.open.begin() + 1;
    const auto t = std::find_if(c.open.begin(), end, due);
    if (t == end || !c.out.claim()) return;
    c.out.push(t->r);
    c.open.erase(t);
  }

  icm::translate_response translated(const icm::translate_request& q) const {
    using kind = icm::translate_request::kind;
    icm::translate_response r;
    r.tag = q.tag;
    const auto length = std::max<std::uint64_t>(q.length, q.check_length);
    if (q.what == kind::key) r.status = regions_.look_at(q.key, q.pd, q.access, q.va, length, now());
    if (r.status != icm::translate_status::ok) return r;
    const std::uint64_t bus = q.what == kind::key ? bus_of(q.va) : q.what == kind::buffer ? q.buffer_mtt + q.va : q.va;
    const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(q.length, 4096 - bus % 4096));
    r.segments[r.count++] = {bus, first};
    if (first != q.length) r.segments[r.count++] = {bus + first, q.length - first};
    return r;
  }

  const behaviour& how_;
  const region_table& regions_;
  std::array<client, 3> clients_;
};

}  // namespace rnic::transport::random_test
