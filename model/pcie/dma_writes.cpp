// SPDX-License-Identifier: Apache-2.0
#include "model/pcie/dma_writes.h"

#include <cstring>
#include <utility>

namespace rnic::pcie {

namespace {

/// Bytes of a write's packet that pass the interface.
std::uint32_t in_dwords(const payload::tlp& t) {
  return (static_cast<std::uint32_t>(t.address & 3) + t.length + 3) & ~std::uint32_t{3};
}

}  // namespace

dma_writes::dma_writes(sim::clocked_block& owner, const dma_config& c, dma_clients& clients, transmit_path& path,
                       payload::tlp_pool& pool, const config_space& space, const bus_master& bus,
                       sim::span_recorder& spans)
    : owner_(owner),
      aligned_(c.aligned_packets),
      clients_(clients),
      path_(path),
      pool_(pool),
      space_(space),
      bus_(bus),
      spans_(spans) {}

/// What is in write_.
void dma_writes::begin(unsigned client) {
  active_ = true;
  client_ = client;
  written_ = 0;
  wait_ = sim::wait::none;
}

void dma_writes::start(unsigned client, dma_request& r) {
  write_.take(r);
  level_.reset();
  begin(client);
  // It is seen a cycle after it was given; what is longer is a wait for other requests.
  if (write_.span != 0 && owner_.now_ps() > spans_.end_of(write_.span) + owner_.domain().longest_cycle())
    spans_.leave(write_.span, owner_.name(), "turn", owner_.now_ps(), sim::wait::arbitration);
  ++counts_.requests;
  counts_.bytes += write_.length;
}

void dma_writes::start(const interrupts::message& interrupt) {
  write_.op = dma_request::kind::write;
  write_.notify = false;
  write_.function = interrupt.function;
  level_ = interrupt.level;
  write_.length = level_ ? 0 : 4;
  write_.address = level_ ? 0 : interrupt.content.address;
  write_.source = nullptr;
  write_.span = 0;
  std::memcpy(write_.bytes.data(), &interrupt.content.data, 4);  // little-endian, as all of PCI
  begin(no_client);
}

bool dma_writes::stop() {
  if (!active_ || (client_ != no_client && bus_.allowed(write_.function))) return false;
  if (client_ != no_client && write_.notify)
    clients_.give(client_, write_.tag, dma_status::unsupported_request, owner_.now() + 1);
  write_.keep.reset();
  active_ = false;
  return true;
}

std::uint32_t dma_writes::packet_bytes() const {
  const std::uint32_t payload = space_.now().max_payload;  // a power of two (Base Specification 3.0, 7.8.4)
  const auto into = aligned_ ? static_cast<std::uint32_t>(write_.address) & (payload - 1) : 0;
  return to_boundary(write_.address, write_.length - written_, payload - into);
}

/// Its next `n` bytes, packet_bytes().
payload::tlp_ptr dma_writes::next_packet(std::uint32_t n) {
  payload::tlp_ptr t = pool_.get();
  t->type = payload::tlp_type::mem_write;
  t->requester = bus_.requester_of(write_.function);
  if (sim::seldom(level_.has_value())) {
    t->type = payload::tlp_type::message;
    t->code = *level_ ? payload::message_code::assert_inta : payload::message_code::deassert_inta;
    ++counts_.packets;
    return t;
  }
  t->address = write_.address;
  t->length = n;
  const std::uint8_t* from = write_.source != nullptr ? write_.source : write_.bytes.data();
  std::memcpy(t->data.data(), from + written_, n);
  t->enable_bytes();
  written_ += n;
  write_.address += n;
  if (written_ == write_.length) t->span = write_.span;  // the message goes on with its last packet
  ++counts_.packets;
  return t;
}

void dma_writes::issue(bool alone) {
  const bool first = written_ == 0;
  payload::tlp_ptr t = next_packet(packet_bytes());
  const std::uint32_t bytes = in_dwords(*t);
  const sim::time_ps left = path_.send(std::move(t), bytes, first);
  if (first) {
    spans_.leave(write_.span, owner_.name(), "dma", owner_.now_ps(), wait_);
    wait_ = sim::wait::pcie;
  }
  if (written_ == write_.length) {
    spans_.leave(write_.span, owner_.name(), "packets", left, wait_);
    end(owner_.now());
  } else if (alone) {
    issue_ahead();
  }
}

/// The write's further packets, as far as their edges are known. Reads that are under way would take turns with them, a
/// client's other answers keep their order with this one's, and a message whose time is recorded takes step by step.
void dma_writes::issue_ahead() {
  if (write_.span != 0 || (answered(write_) && !clients_.has_only_one(client_))) return;
  sim::cycle_t at = owner_.now();
  while (active_) {
    const std::uint32_t n = packet_bytes();
    const sim::cycle_t next = path_.next_edge(at, n);
    if (next == sim::never) break;
    at = next;
    payload::tlp_ptr t = next_packet(n);
    const std::uint32_t bytes = in_dwords(*t);
    path_.send_at(at, std::move(t), bytes);
    if (written_ == write_.length) end(at);
  }
  sent_until_ = at + 1;
}

/// Its last packet is sent at edge `at`.
void dma_writes::end(sim::cycle_t at) {
  if (client_ != no_client && write_.notify) clients_.give(client_, write_.tag, dma_status::ok, at + 1);
  write_.keep.reset();
  active_ = false;
}

}  // namespace rnic::pcie
