// SPDX-License-Identifier: Apache-2.0
#include "testbenches/block/responder/random/setup.h"

#include <algorithm>
#include <cstring>

#include "model/wire/bytes.h"
#include "testbenches/block/responder/bench.h"

namespace rnic::transport::random_test {

namespace {

/// Up to `most` segments in `room` bytes from `bus` on, which hold `least` bytes or more.
receive draw_receive(dice& d, std::uint64_t bus, unsigned most, std::uint32_t least) {
  receive r;
  std::uint32_t used = 0;
  const unsigned n = 1 + d.below(most);
  for (unsigned i = 0; i < n; ++i) {
    const std::uint32_t left = receive_bytes - used;
    const bool last = i + 1 == n;
    std::uint32_t length = last ? left : d.below(left / 2 + 1);
    if (last && d.percent(50)) length = std::max(least > used ? least - used : 0, d.below(left + 1));
    r.segments.push_back({bus + used, length});
    used += length;
  }
  return r;
}

void write_segments(std::uint8_t* entry, const receive& r, unsigned most, std::uint32_t key) {
  constexpr std::uint32_t no_segment = 0x100;
  for (unsigned i = 0; i < most; ++i, entry += 16) {
    const bool there = i < r.segments.size();
    wire::store_be32(entry, there ? r.segments[i].length : 0);
    wire::store_be32(entry + 4, !there ? no_segment : r.bad_key ? no_key : key);
    wire::store_be64(entry + 8, there ? virtual_of(r.segments[i].bus) : 0);
  }
}

template <class Context>
void write_context(octets& memory, std::uint64_t bus, const Context& c) {
  std::memcpy(memory.data() + bus, &c, sizeof c);
}

}  // namespace

wire::transport queue_pair::transport() const {
  if (kind == service::xrc) return wire::transport::xrc;
  if (kind == service::ud || kind == service::ethernet) return wire::transport::ud;
  return is_reliable() ? wire::transport::rc : wire::transport::uc;
}

setup::setup(std::uint64_t seed, bool chaos, dice& d) : how(seed, d, chaos) {
  draw_parameters(d);
  shared_queues.resize(d.below(most_shared_queues + 1));
  for (std::uint32_t srqn = 1; srqn <= last_shared(); ++srqn) {
    shared_queue& q = shared_queues[srqn - 1];
    if (chaos) q.posted = static_cast<std::uint16_t>(d.below(33));
    if (d.percent(40)) q.limit = static_cast<std::uint16_t>(d.below(32));
    // Each message without a reference fits, whichever of the queue's entries it gets.
    const std::uint32_t enough = chaos ? d.one_of({0u, 3072u}) : 3072;
    for (std::uint32_t i = 0; i < shared_entries; ++i)
      q.receives.push_back(draw_receive(d, shared_data_of(srqn) + i * receive_bytes, 3, enough));
  }
  const unsigned n = 1 + d.below(most_queue_pairs);
  for (unsigned i = 0; i < n; ++i) draw_queue_pair(d);
}

void setup::draw_parameters(dice& d) {
  responder_config& c = parameters;
  c.receive.sequence = d.one_of({1u, 3u, 12u});
  c.receive.rights = d.one_of({0u, 10u});
  c.receive.place = d.one_of({0u, 14u});
  c.receive.order = d.one_of({0u, 10u});
  c.write_cycles = d.one_of({1u, 12u});
  c.read_cycles = d.one_of({1u, 17u});
  c.receive_cycles = d.one_of({1u, 20u});
  c.receive_header_cycles = d.one_of({1u, 13u});
  c.beat_overhead_cycles = d.one_of({0u, 5u});
  c.read_miss_cycles = d.one_of({0u, 0u, 40u});
  c.flush_poll_cycles = d.one_of({50u, 400u, 1500u});
  if (d.percent(40)) return;  // the others are as in a real one
  c.context_wait_frames = d.one_of({1u, 2u, 3u, 16u});
  c.flows = d.one_of({2u, 3u, 4u, 64u});
  c.slots = d.one_of({1u, 2u, 3u, 64u});
  c.context_ports = d.one_of({1u, 2u, 3u});
  c.cqe_queue = d.one_of({1u, 2u, 3u, 32u});
  c.ack_coalesce = d.one_of({1u, 2u, 64u});
  c.ack_cycles = d.one_of({1u, 12u, 100u});
  c.answer.waiting = d.one_of({1u, 2u});
  c.read_queue = d.one_of({1u, 2u, 3u, 9u, 64u});
  c.read_fetches = d.one_of({1u, 2u, 16u});
  c.read_hand_over = d.one_of({3u, 4u, 8u});
  c.read_gathers = d.one_of({1u, 2u, 32u});
  c.read_translations = d.one_of({1u, 2u, 8u});
  c.receive_lines = d.one_of({1u, 2u, 64u});
  c.receive_prefetch = d.one_of({1u, 2u, 8u});
  c.receive_fetches = d.one_of({1u, 2u, 64u});
  c.shared_lines = d.one_of({1u, 2u, 16u});
  c.shared_kept = d.one_of({1u, 2u, 64u});
  c.atomics.in_flight = d.one_of({1u, 2u, 16u});
  c.atomics.waiting = d.one_of({1u, 16u});
  c.atomics.lock_buckets = d.one_of({1u, 4u, 4096u});
  using cache = icm::context_cache_config;
  constexpr const char* source = "design: few of them";
  c.srqs = cache{d.one_of({1u, 2u, 64u}), 1, d.one_of({1u, 4u}), 0, d.one_of({1u, 4u}), source};
  c.histories = cache{d.one_of({2u, 4u, 8u}), 2, d.one_of({1u, 4u}), 0, d.one_of({1u, 4u}), source, 2};
  c.contexts =
      cache{d.one_of({2u, 4u, 8u}), 2, d.one_of({1u, 2u, 16u}), d.one_of({0u, 60u}), d.one_of({1u, 8u}), source, 2};
}

void setup::draw_queue_pair(dice& d) {
  queue_pair q;
  q.index = static_cast<unsigned>(queue_pairs.size());
  q.qpn = first_qpn + q.index;
  const bool shared = !shared_queues.empty();
  q.kind = shared ? d.one_of({service::rc, service::rc, service::rc_shared, service::xrc, service::uc,
                              service::uc_shared, service::ud, service::ethernet})
                  : d.one_of({service::rc, service::rc, service::uc, service::ud, service::ethernet});
  if (!q.has_own_queue() && q.kind != service::xrc) q.srqn = 1 + d.below(last_shared());
  q.mtu = d.one_of({256u, 256u, 1024u});
  constexpr std::uint8_t everything =
      icm::responder_access_write | icm::responder_access_read | icm::responder_access_atomic;
  q.access = d.percent(85) ? everything : static_cast<std::uint8_t>(d.below(everything + 1));
  q.log_reads = static_cast<std::uint8_t>(d.below(5));
  q.ready_to_receive = d.percent(20);
  q.inline_receive = q.has_own_queue() && q.kind != service::ethernet && d.percent(20);
  // Some begin shortly before their numbers begin again.
  q.first_psn = wire::psn_t(d.percent(20) ? 0xfffff0 + d.below(16) : d.below(1000));
  q.consumed = static_cast<std::uint16_t>(d.percent(20) ? 0xfffa + d.below(6) : d.below(20));
  q.posted = static_cast<std::uint16_t>(q.consumed + d.below(own_entries + 1));
  std::vector<receive>& all = own_receives.emplace_back();
  for (std::uint32_t i = 0; q.has_own_queue() && i < own_entries; ++i) {
    const std::uint32_t enough = d.percent(90) ? 3200 : 0;
    all.push_back(draw_receive(d, data_of(q.index) + received_at + i * receive_bytes, 4, enough));
    all.back().bad_key = d.percent(2);
  }
  queue_pairs.push_back(q);
}

icm::responder_context setup::context_of(const queue_pair& q) const {
  icm::responder_context c = test::bench::context();
  c.qpn = q.qpn;
  c.remote_qpn = q.peer();
  c.state = q.ready_to_receive ? icm::qp_state::rtr : icm::qp_state::rts;
  c.type = q.kind == service::xrc         ? icm::service::xrc
           : q.kind == service::ud        ? icm::service::ud
           : q.kind == service::ethernet  ? icm::service::ethernet
           : q.is_unreliable_connection() ? icm::service::uc
                                          : icm::service::rc;
  if (q.inline_receive) c.flags = static_cast<std::uint8_t>(c.flags | icm::responder_flag_inline_receive);
  if (!q.has_own_queue()) c.log_rq_size = c.log_rq_stride = 0;
  c.dest.mtu_code = q.mtu == 256 ? 1 : 3;
  if (q.kind == service::ethernet) {
    std::memset(c.dest.remote_gid, 0, sizeof c.dest.remote_gid);
    c.dest.flags = 0;
  }
  c.pd = protection_domain;
  c.cqn = 0x80 + q.index;
  constexpr std::uint32_t has_shared_queue = 1u << 24;
  if (q.srqn != 0) c.srqn = has_shared_queue | q.srqn;
  c.qkey = q.kind == service::xrc ? xrc_domain : qkey;
  c.rq_address = receive_queue_at(q.index);
  c.db_record = record_at(q.index);
  c.expected_psn = q.first_psn.value();
  c.access = q.access;
  c.log_max_rd_atomic = q.log_reads;
  c.rq_consumed = c.rq_posted = q.consumed;
  return c;
}

void setup::write_to(octets& memory) const {
  for (std::uint32_t i = 0; i < read_only_bytes; ++i)
    memory[read_only_at + i] = static_cast<std::uint8_t>(mixed(i) >> 8);
  for (std::uint32_t srqn = 1; srqn <= last_shared(); ++srqn) {
    const shared_queue& q = shared_queues[srqn - 1];
    icm::srq_context c{};
    c.srqn = srqn;
    c.valid = 1;
    c.log_size = 8;
    c.log_stride = 6;
    c.log_page = 12;
    c.address = shared_queue_at(srqn);
    c.db_record = shared_record_at(srqn);
    c.pd = domain_of_xrc;
    c.cqn = 0x90 + srqn;
    c.limit = q.limit;
    c.xrcd = xrc_domain;
    c.function = test::owning_function;
    write_context(memory, shared_contexts_at + srqn * sizeof c, c);
    for (std::uint32_t i = 0; i < shared_entries; ++i) {
      std::uint8_t* const entry = memory.data() + shared_queue_at(srqn) + i * entry_bytes;
      wire::store_be32(entry, (i + 1) % shared_entries);  // the next one
      write_segments(entry + 16, q.receives[i], 3, shared_receive_key(srqn));
    }
    wire::store_be32(memory.data() + shared_record_at(srqn), q.posted);
  }
  for (const queue_pair& q : queue_pairs) {
    write_context(memory, contexts_at + q.qpn * 256 + 128, context_of(q));
    for (std::uint32_t i = 0; i < own_receives[q.index].size(); ++i)
      write_segments(memory.data() + receive_queue_at(q.index) + i * entry_bytes, own_receives[q.index][i], 4,
                     receive_key(q.index));
    wire::store_be32(memory.data() + record_at(q.index), q.posted);
  }
}

region_table setup::regions() const {
  constexpr unsigned read = right(icm::access::remote_read), write = right(icm::access::remote_write),
                     atomic = right(icm::access::remote_atomic),
                     local = right(icm::access::local_read) | right(icm::access::local_write);
  region_table all;
  const auto add = [&](std::uint32_t key, std::uint64_t bus, std::uint64_t bytes, std::uint32_t pd, unsigned rights) {
    all.add(key, {virtual_of(bus), bus, bytes, pd, rights});
  };
  add(read_key, read_only_at, read_only_bytes, protection_domain, read);
  add(read_key_of_xrc, read_only_at, read_only_bytes, domain_of_xrc, read);
  for (std::uint32_t srqn = 1; srqn <= last_shared(); ++srqn)
    add(shared_receive_key(srqn), shared_data_of(srqn), shared_data_bytes, domain_of_xrc, local);
  for (const queue_pair& q : queue_pairs) {
    const std::uint64_t data = data_of(q.index);
    add(write_key(q.index), data, written_bytes, q.domain(), write | local);
    add(atomic_key(q.index), data + words_at, words_bytes, q.domain(), atomic);
    add(receive_key(q.index), data + received_at, received_bytes, protection_domain, local);
    for (unsigned i = 0; i < invalidated_regions; ++i)
      add(invalidated_key(q.index, i), data + invalidated_at + i * invalidated_bytes, invalidated_bytes, q.domain(),
          read | write | atomic | local);
  }
  return all;
}

}  // namespace rnic::transport::random_test
