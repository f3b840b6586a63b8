// SPDX-License-Identifier: Apache-2.0
// Implementation of context_cache; included by context_cache.h only.
#pragma once

#include <algorithm>
#include <utility>

#include "model/icm/context_cache.h"
#include "model/sim/check.h"

namespace rnic::icm {

template <class Context>
context_cache<Context>::context_cache(std::string name, sim::clocked_block& owner, const context_cache_config& config,
                                      const icm_map& map, table which, std::uint32_t offset)
    : dma(owner),
      name_(std::move(name)),
      owner_(owner),
      config_(sim::checked(config, name_)),
      map_(map),
      which_(which),
      offset_(offset) {
  static_assert(std::is_trivially_copyable_v<Context>, "contexts move between memory and chip as bytes");
  if (config.entries % config.ways != 0 || ((config.entries / config.ways) & (config.entries / config.ways - 1)) != 0)
    throw sim::config_error(name_ + ".entries, .ways: entries / ways must be a power of two");
  set_mask_ = config.entries / config.ways - 1;
  keys_.assign(config.entries, no_key);
  slots_.resize(config.entries);
  contexts_.resize(config.entries);
  fills_.resize(config.fills);
  write_backs_.resize(config.write_backs);
  stalled_.reserve(256);
}

template <class Context>
std::uint32_t context_cache<Context>::key_of(std::uint32_t number) const {
  return number & ((std::uint32_t{1} << map_.layout(which_).log_entries) - 1);
}

template <class Context>
unsigned context_cache<Context>::first_way(std::uint32_t key) const {
  // As good as random, as the published fits assume (calibration 7.4): of the orders of these multipliers the one whose
  // conflicts, for 16 to 792 numbers in a row, are nearest to those expected. A second entry has the hash of the
  // number's complement.
  const std::uint32_t number = key & ~second_key;
  std::uint32_t hash = (number == key ? number : ~number) * 0x27d4'eb2fu;
  hash = (hash ^ hash >> 15) * 0x1656'67b1u;
  hash = (hash ^ hash >> 13) * 0x85eb'ca77u;
  hash ^= hash >> 16;
  return (hash & set_mask_) * config_.ways;
}

template <class Context>
unsigned context_cache<Context>::find(std::uint32_t key) const {
  const unsigned first = first_way(key);
  for (unsigned s = first; s != first + config_.ways; ++s)
    if (keys_[s] == key) return s;
  return no_slot;
}

/// The slot of the set that can be given away: one whose fill failed, else as the policy says, but one that was filled
/// and not asked for yet only when there is no other.
template <class Context>
unsigned context_cache<Context>::victim(std::uint32_t key) const {
  const unsigned first = first_way(key);
  const unsigned offset = config_.policy == replacement::random ? random_.value() : 0;
  unsigned best = no_slot;
  const auto rank = [this](unsigned s) {
    return std::make_pair(slots_[s].fresh, config_.policy == replacement::random ? 0 : slots_[s].used);
  };
  for (unsigned i = 0; i != config_.ways; ++i) {
    const unsigned s = first + (i + offset) % config_.ways;
    const slot& c = slots_[s];
    if (c.state == slot_state::failed) return s;
    if (c.state != slot_state::valid || c.pins != 0) continue;
    if (best == no_slot || rank(s) < rank(best)) best = s;
  }
  return best;
}

/// An empty slot of the key's set, after another has gone if it must. no_slot: not now.
template <class Context>
unsigned context_cache<Context>::make_room(std::uint32_t key) {
  const unsigned first = first_way(key);
  for (unsigned s = first; s != first + config_.ways; ++s)
    if (slots_[s].state == slot_state::empty) return s;
  const unsigned s = victim(key);
  if (s == no_slot) return no_slot;
  const bool asked = slots_[s].asked;
  if (!write_back(s)) return no_slot;
  if (asked) owner_.wake_next();  // who asked for it finds it gone at the next edge
  return s;
}

template <class Context>
std::optional<std::uint64_t> context_cache<Context>::bus_address(std::uint32_t key) const {
  if (offset_ + sizeof(Context) > map_.layout(which_).entry_bytes) return std::nullopt;  // table not set up
  const std::uint64_t icm = map_.entry(which_, key & ~second_key) + offset_;
  if ((icm & 0xfff) + sizeof(Context) > 0x1000) return std::nullopt;
  return map_.translate(icm);
}

template <class Context>
bool context_cache<Context>::channel_has_room() {
  const bool room = dma.request.claim();
  channel_was_full_ |= !room;
  return room;
}

template <class Context>
void context_cache<Context>::service() {
  if (channel_was_full_ && dma.request.claim()) {
    channel_was_full_ = false;
    ++progress_;
  }
  if (dma.response.can_pop()) take_answer(dma.response.pop());
  if (fills_delayed_ == 0) return;
  for (fill_buffer& f : fills_)
    if (f.active && f.arrived && f.usable <= owner_.now()) finish(f);
}

template <class Context>
void context_cache<Context>::take_answer(const pcie::dma_response& answer) {
  if ((answer.tag & write_tag) != 0) {
    write_backs_[answer.tag & 0xffff].active = false;
    --write_backs_active_;
    ++progress_;
    return;
  }
  fill_buffer& f = fills_[answer.tag & 0xffff];
  f.arrived = true;
  f.failed = answer.status != pcie::dma_status::ok;
  f.usable = owner_.now() + config_.miss_cycles;
  ++fills_delayed_;
  if (config_.miss_cycles != 0) owner_.wake_at(f.usable);
}

template <class Context>
void context_cache<Context>::finish(fill_buffer& f) {
  f.active = f.arrived = false;
  --fills_active_;
  --fills_delayed_;
  ++progress_;
  if (f.failed) ++stats_.failed_fills;
  if (f.dropped) return;  // its slot was given up when it was dropped
  slot& s = slots_[f.slot];
  s.state = f.failed ? slot_state::failed : slot_state::valid;
  s.fresh = true;
  s.used = ++uses_;
  if (f.failed) return;
  contexts_[f.slot] = f.data;
}

template <class Context>
typename context_cache<Context>::result context_cache<Context>::lookup(std::uint32_t number, Context*& out) {
  const std::uint32_t key = key_of(number);
  const unsigned i = find(key);
  if (i == no_slot) return start_fill(key);
  slot& s = slots_[i];
  if (s.state == slot_state::valid) {
    count_use(s);
    out = &contexts_[i];
    return result::hit;
  }
  if (s.state == slot_state::filling) return result::pending;
  forget(i);
  return result::refused;
}

template <class Context>
typename context_cache<Context>::result context_cache<Context>::second(std::uint32_t number, bool fill) {
  const std::uint32_t key = key_of(number) | second_key;
  const unsigned i = find(key);
  if (i == no_slot) {
    if (!fill) return result::hit;
    start_fill(key);
    return find(key) != no_slot ? result::pending : result::refused;
  }
  slot& s = slots_[i];
  if (s.state == slot_state::filling) return result::pending;
  if (s.state == slot_state::valid) count_use(s);
  return result::hit;  // one that could not be read has nothing that the first has not
}

template <class Context>
typename context_cache<Context>::result context_cache<Context>::ask(std::uint32_t number, Context*& out) {
  const unsigned i = find(key_of(number));
  if (i == no_slot || slots_[i].state != slot_state::valid) return lookup(number, out);
  slots_[i].asked = true;
  out = &contexts_[i];
  return result::hit;
}

template <class Context>
void context_cache<Context>::use(std::uint32_t number) {
  const unsigned i = find(key_of(number));
  if (i != no_slot && slots_[i].state == slot_state::valid) count_use(slots_[i]);
}

template <class Context>
void context_cache<Context>::count_use(slot& s) {
  stats_.hits += s.fresh ? 0 : 1;  // the first use after a miss is the miss
  s.fresh = s.asked = false;
  if (config_.policy == replacement::lru) s.used = ++uses_;
}

template <class Context>
Context* context_cache<Context>::peek(std::uint32_t number) {
  const unsigned i = find(key_of(number));
  return i == no_slot || slots_[i].state != slot_state::valid ? nullptr : &contexts_[i];
}

template <class Context>
typename context_cache<Context>::result context_cache<Context>::start_fill(std::uint32_t key) {
  const std::optional<std::uint64_t> address = bus_address(key);
  if (!address) return result::refused;
  const bool may_ask = fills_active_ != config_.fills && channel_has_room();
  const unsigned i = may_ask ? make_room(key) : no_slot;
  if (i == no_slot || !channel_has_room()) {
    note_stall(key);
    return result::pending;
  }
  unsigned n = 0;
  while (fills_[n].active) ++n;
  fill_buffer& f = fills_[n];
  f.key = key;
  f.slot = i;
  f.active = true;
  f.dropped = f.arrived = f.failed = false;
  ++fills_active_;
  keys_[i] = key;
  slots_[i] = slot{};
  slots_[i].state = slot_state::filling;
  slots_[i].fill = static_cast<std::uint16_t>(n);
  pcie::dma_request request;
  request.op = pcie::dma_request::kind::read;
  request.length = sizeof(Context);
  request.address = *address;
  request.tag = n;
  request.destination = reinterpret_cast<std::uint8_t*>(&f.data);
  dma.request.push(std::move(request));
  ++stats_.misses;
  random_.step();
  if (!stalled_.empty()) {
    const auto found = std::find(stalled_.begin(), stalled_.end(), key);
    if (found != stalled_.end()) stalled_.erase(found);
  }
  return result::pending;
}

/// Empties slot `i`; a dirty context goes to ICM. False when there is no room for that now.
template <class Context>
bool context_cache<Context>::write_back(unsigned i) {
  if (slots_[i].state == slot_state::valid && slots_[i].dirty) {
    if (!send_back(i)) return false;
    ++stats_.replaced_dirty;
  }
  keys_[i] = no_key;
  slots_[i] = slot{};
  return true;
}

/// A copy of the context in slot `i` goes to ICM, if that is mapped. False when there is no room for that now.
template <class Context>
bool context_cache<Context>::send_back(unsigned i) {
  const std::optional<std::uint64_t> address = bus_address(keys_[i]);
  if (!address) {
    ++stats_.lost_writes;
    return true;
  }
  if (write_backs_active_ == config_.write_backs || !channel_has_room()) return false;
  unsigned n = 0;
  while (write_backs_[n].active) ++n;
  write_back_buffer& w = write_backs_[n];
  w.data = contexts_[i];
  w.key = keys_[i];
  w.active = true;
  ++write_backs_active_;
  pcie::dma_request request;
  request.op = pcie::dma_request::kind::write;
  request.notify = true;
  request.length = sizeof(Context);
  request.address = *address;
  request.tag = write_tag | n;
  request.source = reinterpret_cast<const std::uint8_t*>(&w.data);
  dma.request.push(std::move(request));
  return true;
}

template <class Context>
bool context_cache<Context>::publish(std::uint32_t number) {
  const unsigned i = find(key_of(number));
  if (i == no_slot || slots_[i].state != slot_state::valid || !slots_[i].dirty) return true;
  if (!send_back(i)) return false;
  slots_[i].dirty = false;
  return true;
}

template <class Context>
bool context_cache<Context>::writing(std::uint32_t number) const {
  const std::uint32_t key = key_of(number);
  return std::any_of(write_backs_.begin(), write_backs_.end(),
                     [key](const write_back_buffer& w) { return w.active && w.key == key; });
}

template <class Context>
void context_cache<Context>::mark_dirty(std::uint32_t number) {
  const unsigned i = find(key_of(number));
  RNIC_ASSERT(i != no_slot && slots_[i].state == slot_state::valid, name_ + ": changed context is not on chip");
  slots_[i].dirty = true;
}

template <class Context>
void context_cache<Context>::pin(std::uint32_t number) {
  const unsigned i = find(key_of(number));
  RNIC_ASSERT(i != no_slot && slots_[i].state == slot_state::valid, name_ + ": pinned context is not on chip");
  ++slots_[i].pins;
}

template <class Context>
bool context_cache<Context>::crowded(std::uint32_t number) const {
  const std::uint32_t key = key_of(number);
  const unsigned first = first_way(key);
  unsigned taken = 2;
  for (unsigned s = first; s != first + config_.ways; ++s) {
    const slot& c = slots_[s];
    const bool stays = c.state == slot_state::filling || (c.state == slot_state::valid && c.pins != 0);
    if (stays && keys_[s] != key) ++taken;
  }
  return taken > config_.ways;
}

template <class Context>
void context_cache<Context>::unpin(std::uint32_t number) {
  const unsigned i = find(key_of(number));
  if (i == no_slot || slots_[i].pins == 0) return;
  if (--slots_[i].pins != 0) return;
  ++progress_;
  wake_waiting();
}

template <class Context>
void context_cache<Context>::flush(std::uint32_t number) {
  const unsigned i = find(key_of(number));
  if (i == no_slot || slots_[i].pins != 0) return;
  if (slots_[i].state != slot_state::valid) return forget(i);
  if (!write_back(i)) return;
  forget_second(number);
  ++progress_;
  wake_waiting();
}

template <class Context>
void context_cache<Context>::forget_second(std::uint32_t number) {
  const unsigned i = find(key_of(number) | second_key);
  if (i != no_slot) forget(i);
}

template <class Context>
void context_cache<Context>::drop(std::uint32_t number) {
  const unsigned i = find(key_of(number));
  if (i != no_slot) forget(i);
  forget_second(number);
}

template <class Context>
void context_cache<Context>::drop_all() {
  for (unsigned i = 0; i < config_.entries; ++i)
    if (slots_[i].state != slot_state::empty) forget(i);
  stalled_.clear();
}

template <class Context>
void context_cache<Context>::forget(unsigned i) {
  if (slots_[i].state == slot_state::filling) fills_[slots_[i].fill].dropped = true;
  keys_[i] = no_key;
  slots_[i] = slot{};
  ++progress_;
  wake_waiting();
}

template <class Context>
bool context_cache<Context>::busy(std::uint32_t number) const {
  const std::uint32_t key = key_of(number);
  if (const unsigned i = find(key); i != no_slot) {
    const slot& s = slots_[i];
    if (s.pins != 0 || s.dirty || s.state == slot_state::filling) return true;
  }
  for (const fill_buffer& f : fills_)
    if (f.active && (f.key & ~second_key) == key) return true;
  return writing(number);
}

/// Counts each wait once, however often the owner asks meanwhile.
template <class Context>
void context_cache<Context>::note_stall(std::uint32_t key) {
  if (std::find(stalled_.begin(), stalled_.end(), key) != stalled_.end()) return;
  if (stalled_.size() == stalled_.capacity()) stalled_.erase(stalled_.begin());
  stalled_.push_back(key);
  ++stats_.stalls;
}

/// Room was made by the owner itself: what it asked for before it did so can go on at the next edge.
template <class Context>
void context_cache<Context>::wake_waiting() {
  if (!stalled_.empty()) owner_.wake_next();
}

template <class Context>
void context_cache<Context>::announce(sim::statistics& to) const {
  const std::pair<const char*, const std::uint64_t*> named[] = {{"hits", &stats_.hits},
                                                                {"misses", &stats_.misses},
                                                                {"stalls", &stats_.stalls},
                                                                {"replaced_dirty", &stats_.replaced_dirty},
                                                                {"failed_fills", &stats_.failed_fills},
                                                                {"lost_writes", &stats_.lost_writes}};
  for (const auto& [n, c] : named) to.add(name_ + "." + n, *c);
}

template <class Context>
template <class F>
void context_cache<Context>::for_each(F f) {
  const unsigned n = config_.entries;
  for (unsigned i = 0; i < n; ++i)
    if (slots_[i].state == slot_state::valid && (keys_[i] & second_key) == 0) f(keys_[i], contexts_[i]);
}

}  // namespace rnic::icm
