// SPDX-License-Identifier: Apache-2.0
// Host memory behind DMA.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "testbenches/block/responder/bench.h"
#include "testbenches/block/responder/random/behaviour.h"
#include "testbenches/block/responder/random/journal.h"
#include "testbenches/block/responder/random/layout.h"
#include "testbenches/block/responder/random/regions.h"

namespace rnic::transport::random_test {

/// What the neighbours surround.
struct blocks_under_test {
  responder& requests;
  receive_fetch& fetches;
  read_generator& reads;
  atomic_unit& atomics;
  answer_transmit& answers;
};

struct payload_write {
  sim::cycle_t at = 0;
  std::uint64_t bus = 0;
  std::uint32_t length = 0;
};

/// Takes one request a cycle from each client and answers them in order. Payload may be written in the name of the
/// queue pair's function only, and not under a key that has been withdrawn.
class host_memory final : public sim::clocked_block {
 public:
  host_memory(sim::clock_domain& d, const blocks_under_test& of, const behaviour& how, const region_table& regions)
      : clocked_block("host_memory", d),
        bytes(memory_bytes),
        how_(how),
        regions_(regions),
        clients_{{{*this, d, of.requests.dma_write, "payload_writes", channel::payload_writes},
                  {*this, d, of.fetches.dma, "descriptor_reads", channel::descriptor_reads},
                  {*this, d, of.requests.contexts().dma, "contexts", channel::contexts},
                  {*this, d, of.requests.histories().dma, "histories", channel::histories},
                  {*this, d, of.requests.srqs().dma, "shared_contexts", channel::shared_contexts},
                  {*this, d, of.reads.dma_read, "response_reads", channel::response_reads},
                  {*this, d, of.atomics.dma_read, "operands", channel::operands},
                  {*this, d, of.atomics.dma_write, "atomic_results", channel::atomic_results}}} {}

  journal seen;
  octets bytes;
  std::vector<payload_write> payload;  // in order

 private:
  struct client : test::station::client {
    client(sim::clocked_block& owner, sim::clock_domain& d, pcie::dma_port& port, const std::string& name, channel c)
        : test::station::client(owner, d, port, name), of(c) {}
    bool brings_data() const { return of == channel::payload_writes || of == channel::atomic_results; }
    bool may_fail() const {
      return of == channel::descriptor_reads || of == channel::response_reads || of == channel::operands;
    }
    channel of;
    std::uint64_t taken = 0;
    std::deque<bool> fails;  // beside `pending`
  };
  static constexpr std::size_t most_pending = 64;

  void tick() override {
    for (client& c : clients_) {
      if (c.in.can_pop() && c.pending.size() < most_pending && how_.takes(c.of, now())) take(c);
      if (!c.pending.empty() && c.pending.front().due <= now() && c.out.claim()) answer(c);
      if (c.in.can_pop() || (!c.pending.empty() && c.pending.front().due <= now()))
        wake_next();
      else if (!c.pending.empty())
        wake_at(c.pending.front().due);
    }
  }

  void take(client& c) {
    pcie::dma_request r = c.in.pop();
    const std::uint64_t number = c.taken++;
    const sim::cycle_t due = now() + how_.delay(c.of, number);
    const auto which = static_cast<std::uint64_t>(c.of);
    if (r.op == pcie::dma_request::kind::write) {
      const std::uint8_t* from = r.source != nullptr ? r.source : r.bytes.data();
      seen.note(now(), "write to memory: channel, address, length, notify, digest, function",
                {which, r.address, r.length, r.notify ? 1u : 0u, digest(from, r.length), r.function});
      if (r.length != 0) write(c, r, from);
      if (!r.notify) return;
      r.keep.reset();
    } else {
      const bool poll = r.address >= records_at && r.address < records_end;
      const auto note = poll ? &journal::note_poll : &journal::note;
      (seen.*note)(now(), "read from memory: channel, address, length, tag, function",
                   {which, r.address, r.length, r.tag, r.function});
    }
    c.fails.push_back(c.may_fail() && how_.read_fails(c.of, number));
    c.pending.push_back({std::move(r), due});
  }

  void write(const client& c, const pcie::dma_request& r, const std::uint8_t* from) {
    if (!inside(r)) return seen.fault("a write goes beyond host memory");
    std::memcpy(bytes.data() + r.address, from, r.length);
    if (!c.brings_data()) return;
    payload.push_back({now(), r.address, r.length});
    if (r.function != test::owning_function) seen.fault("payload is written in the name of another function");
    if (regions_.is_withdrawn(r.address, r.length, now()))
      seen.fault("cycle " + std::to_string(now()) + ": payload is written under a key that was withdrawn");
  }

  void answer(client& c) {
    const pcie::dma_request& r = c.pending.front().r;
    pcie::dma_status status = pcie::dma_status::ok;
    if (r.op == pcie::dma_request::kind::read) {
      if (c.fails.front() || !inside(r))
        status = pcie::dma_status::unsupported_request;
      else
        std::memcpy(r.destination, bytes.data() + r.address, r.length);
    }
    c.out.push({r.tag, status});
    c.pending.pop_front();
    c.fails.pop_front();
  }

  bool inside(const pcie::dma_request& r) const {
    return r.address <= bytes.size() && r.length <= bytes.size() - r.address;
  }

  const behaviour& how_;
  const region_table& regions_;
  std::array<client, 8> clients_;
};

}  // namespace rnic::transport::random_test
