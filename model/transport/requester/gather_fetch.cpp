// SPDX-License-Identifier: Apache-2.0
#include "model/transport/requester/gather_fetch.h"

#include <utility>

namespace rnic::transport {

namespace {
constexpr unsigned place_bits = 16;
}  // namespace

void gather_fetch::take_memory() {
  if (!to_.dma.response.can_pop()) return;
  const pcie::dma_response d = to_.dma.response.pop();
  gather_slot& s = queue_.at(static_cast<std::uint32_t>(d.tag));
  --s.pending;
  if (d.status != pcie::dma_status::ok && s.syndrome == 0) s.syndrome = syndrome::local_protection;
}

// The answer in front, which may be that of any piece: one read a cycle.
void gather_fetch::take_address() {
  if (!to_.translate.response.can_pop()) return;
  const icm::translate_response& r = to_.translate.response.front();
  gather_slot& s = queue_.at(static_cast<std::uint32_t>(r.tag >> place_bits));
  const bool ok = r.status == icm::translate_status::ok;
  const bool needs = parts_ != 0 || !queue_.withdrawn(s);
  const unsigned reads = ok && needs ? r.count : 0;
  const bool last = parts_ + 1 >= reads;
  if (last && tells_addresses_ && !to_.addresses.claim()) return;
  if (parts_ != reads && !to_.dma.request.claim()) return;
  read_.start(1);
  if (parts_ != reads) {
    const auto& part = r.segments[parts_];
    const std::uint32_t place = static_cast<std::uint16_t>(r.tag) + (parts_ == 0 ? 0 : r.segments[0].length);
    to_.dma.request.push_made([&](pcie::dma_request& d) {
      d.renew(pcie::dma_request::kind::read);
      d.length = part.length;
      d.address = part.address;
      d.tag = r.tag >> place_bits;
      d.destination = s.job.frame->buffer.data() + payload::frame::payload_start + place;
      d.function = s.job.function;
      d.span = s.job.frame->span;
    });
    counters_.bytes += part.length;
    if (parts_ == 0) s.pending = static_cast<std::uint16_t>(s.pending + reads - 1);  // for the address all of them
    if (++parts_ != reads) return owner_.wake_next();
  }
  parts_ = 0;
  if (r.missed) ++counters_.translation_misses;
  if (tells_addresses_) to_.addresses.push({s.job.unit, r.missed ? owner_.edge() - s.asked_at : 0});
  if (reads == 0) --s.pending;
  if (!ok && s.syndrome == 0) s.syndrome = syndrome::local_protection;
  if (s.pending == 0) owner_.wake_next();
  to_.translate.response.drop();
}

const char* gather_fetch::read_held_up_by() const {
  if (!to_.translate.response.can_pop()) return nullptr;
  const icm::translate_response& r = to_.translate.response.front();
  const bool needs = parts_ != 0 || !queue_.at(static_cast<std::uint32_t>(r.tag >> place_bits)).dropped;
  const unsigned reads = r.status == icm::translate_status::ok && needs ? r.count : 0;
  if (parts_ + 1 >= reads && tells_addresses_ && to_.addresses.free_slots() == 0) return "requester";
  return parts_ != reads && !to_.dma.request.can_push() ? "dma" : nullptr;
}

// A step of the first packet that has not asked for all of its payload.
void gather_fetch::ask() {
  if (queue_.all_asked()) return;
  gather_slot& s = queue_.at(queue_.asking());
  if (s.asked != s.job.pieces) {
    if (!to_.pieces.can_pop()) return;
    const bool needs = !queue_.withdrawn(s);
    if (needs ? !to_.translate.request.claim() : tells_addresses_ && !to_.addresses.claim()) return;
    ask_.start(1);
    const gather_piece p = to_.pieces.pop();
    if (needs) {
      to_.translate.request.push_made([&](icm::translate_request& t) {
        t = {};
        if (s.job.reserved_key && p.lkey == s.job.reserved_lkey) t.what = icm::translate_request::kind::reserved_key;
        t.access = icm::access::local_read;
        t.key = p.lkey;
        t.pd = s.job.pd;
        t.qpn = s.job.qpn;
        t.va = p.address;
        t.length = p.length;
        t.tag = std::uint64_t{queue_.asking()} << place_bits | p.place;
        t.span = s.job.frame->span;
      });
      s.asked_at = owner_.edge();
      ++s.pending;
      ++counters_.pieces;
    } else if (tells_addresses_) {
      to_.addresses.push({s.job.unit, 0});
    }
    if (++s.asked != s.job.pieces) return;
  }
  queue_.asked();
  if (s.pending == 0 || !queue_.all_asked()) owner_.wake_next();
}

const char* gather_fetch::ask_held_up_by() const {
  if (queue_.all_asked()) return nullptr;
  const gather_slot& s = queue_.at(queue_.asking());
  if (s.asked == s.job.pieces || !to_.pieces.can_pop()) return nullptr;
  if (!s.dropped) return to_.translate.request.can_push() ? nullptr : "translation";
  return tells_addresses_ && !to_.addresses.can_push() ? "requester" : nullptr;
}

}  // namespace rnic::transport
