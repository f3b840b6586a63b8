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
                                      const icm_map& map, table which, std::uint32_t offset, std::uint32_t shortest)
    : dma(owner),
      name_(std::move(name)),
      owner_(owner),
      map_changes_(map, [this] { wake_waiting(); }),
      place_(map, which, offset, sizeof(Context), shortest),
      tags_(name_, sim::checked(config, name_)),
      transfers_(owner, dma, config),
      contexts_(tags_.size()) {
  static_assert(std::is_trivially_copyable_v<Context>, "contexts move between memory and chip as bytes");
  stalled_.reserve(256);
}

template <class Context>
void context_cache<Context>::service() {
  progress_ += transfers_.service([this](unsigned s, const Context& data, bool failed) {
    if (failed) ++stats_.failed_fills;
    if (s == no_slot) return;
    tags_.end_fill(s, failed);
    if (!failed) contexts_[s].context = data;
  });
}

// ---------------------------------------------------------------- look-up

template <class Context>
typename context_cache<Context>::result context_cache<Context>::lookup(std::uint32_t number, Context*& out) {
  const std::uint32_t key = place_.key_of(number);
  const unsigned i = tags_.find(key);
  if (i == no_slot) return start_fill(key);
  if (tags_[i].is == state::valid) {
    count_use(i);
    tags_[i].asked = true;  // it may wait for something else yet, and look again
    out = &contexts_[i].context;
    return result::hit;
  }
  if (tags_[i].is == state::filling) return result::pending;
  forget(i);
  return result::refused;
}

template <class Context>
typename context_cache<Context>::result context_cache<Context>::second(std::uint32_t number, bool fill) {
  const std::uint32_t key = place_.key_of(number) | second_key;
  const unsigned i = tags_.find(key);
  if (i == no_slot) {
    if (!fill) return result::hit;
    start_fill(key);
    return tags_.find(key) != no_slot ? result::pending : result::refused;
  }
  if (tags_[i].is == state::filling) return result::pending;
  if (tags_[i].is == state::valid) count_use(i);
  return result::hit;  // one that could not be read has nothing that the first has not
}

template <class Context>
typename context_cache<Context>::result context_cache<Context>::ask(std::uint32_t number, Context*& out) {
  const unsigned i = tags_.find_valid(place_.key_of(number));
  if (i == no_slot) return lookup(number, out);
  tags_[i].asked = true;
  out = &contexts_[i].context;
  return result::hit;
}

template <class Context>
void context_cache<Context>::use(std::uint32_t number) {
  const unsigned i = tags_.find_valid(place_.key_of(number));
  if (i != no_slot) count_use(i);
}

template <class Context>
Context* context_cache<Context>::peek(std::uint32_t number) {
  const unsigned i = tags_.find_valid(place_.key_of(number));
  return i == no_slot ? nullptr : &contexts_[i].context;
}

template <class Context>
void context_cache<Context>::mark_dirty(std::uint32_t number) {
  const unsigned i = tags_.find_valid(place_.key_of(number));
  RNIC_ASSERT(i != no_slot, name_ + ": changed context is not on chip");
  tags_[i].dirty = true;
}

template <class Context>
void context_cache<Context>::pin(std::uint32_t number) {
  const unsigned i = tags_.find_valid(place_.key_of(number));
  RNIC_ASSERT(i != no_slot, name_ + ": pinned context is not on chip");
  ++tags_[i].pins;
}

template <class Context>
void context_cache<Context>::unpin(std::uint32_t number) {
  const unsigned i = tags_.find(place_.key_of(number));
  if (i == no_slot || tags_[i].pins == 0 || --tags_[i].pins != 0) return;
  ++progress_;
  wake_waiting();
}

template <class Context>
bool context_cache<Context>::crowded(std::uint32_t number) const {
  return tags_.crowded(place_.key_of(number));
}

// ---------------------------------------------------------------- fills and write-backs

template <class Context>
typename context_cache<Context>::result context_cache<Context>::start_fill(std::uint32_t key) {
  const std::optional<std::uint64_t> address = place_.address(key);
  if (!address) return result::refused;
  const unsigned i = transfers_.may_read() ? make_room(key) : no_slot;
  if (i == no_slot || !transfers_.may_read()) {  // making room may have taken the channel
    // Each wait is counted once, however often the owner asks meanwhile.
    if (std::find(stalled_.begin(), stalled_.end(), key) == stalled_.end()) {
      if (stalled_.size() == stalled_.capacity()) stalled_.erase(stalled_.begin());
      stalled_.push_back(key);
      ++stats_.stalls;
    }
    return result::pending;
  }
  tags_.start_fill(i, key, transfers_.read(key, i, *address, place_.bytes()));
  ++stats_.misses;
  if (!stalled_.empty()) {
    const auto found = std::find(stalled_.begin(), stalled_.end(), key);
    if (found != stalled_.end()) stalled_.erase(found);
    wake_waiting();  // another one may make room for the next
  }
  return result::pending;
}

/// An empty slot of the key's set, after another has gone if it must. no_slot: not now.
template <class Context>
unsigned context_cache<Context>::make_room(std::uint32_t key) {
  const unsigned s = tags_.choose(key);
  if (s == no_slot || tags_[s].is == state::empty) return s;
  const bool asked = tags_[s].asked;
  if (!write_back(s)) return no_slot;
  if (asked) owner_.wake_next();  // who asked for it finds it gone at the next edge
  return s;
}

/// Empties slot `i`; a dirty context goes to ICM. False when there is no room for that now.
template <class Context>
bool context_cache<Context>::write_back(unsigned i) {
  if (tags_[i].is == state::valid && tags_[i].dirty) {
    if (!send_back(i)) return false;
    ++stats_.replaced_dirty;
  }
  tags_.clear(i);
  return true;
}

/// A copy of the context in slot `i` goes to ICM, if that is mapped. False when there is no room for that now.
template <class Context>
bool context_cache<Context>::send_back(unsigned i) {
  const std::optional<std::uint64_t> address = place_.address(tags_.key(i));
  if (!address) {
    ++stats_.lost_writes;
    return true;
  }
  if (!transfers_.may_write()) return false;
  transfers_.write(tags_.key(i), contexts_[i].context, *address, place_.bytes());
  return true;
}

template <class Context>
bool context_cache<Context>::publish(std::uint32_t number) {
  const unsigned i = tags_.find_valid(place_.key_of(number));
  if (i == no_slot || !tags_[i].dirty) return true;
  if (!send_back(i)) return false;
  tags_[i].dirty = false;
  return true;
}

template <class Context>
bool context_cache<Context>::writing(std::uint32_t number) const {
  return transfers_.writing(place_.key_of(number));
}

template <class Context>
void context_cache<Context>::flush(std::uint32_t number) {
  const unsigned i = tags_.find(place_.key_of(number));
  if (i == no_slot || tags_[i].pins != 0) return;
  if (tags_[i].is != state::valid) return forget(i);
  if (!write_back(i)) return;
  forget_second(number);
  ++progress_;
  wake_waiting();
}

template <class Context>
void context_cache<Context>::forget_second(std::uint32_t number) {
  const unsigned i = tags_.find(place_.key_of(number) | second_key);
  if (i != no_slot) forget(i);
}

template <class Context>
void context_cache<Context>::drop(std::uint32_t number) {
  const unsigned i = tags_.find(place_.key_of(number));
  if (i != no_slot) forget(i);
  forget_second(number);
}

template <class Context>
void context_cache<Context>::drop_all() {
  for (unsigned i = 0; i < tags_.size(); ++i)
    if (tags_[i].is != state::empty) forget(i);
  stalled_.clear();
}

template <class Context>
void context_cache<Context>::forget(unsigned i) {
  if (tags_[i].is == state::filling) {
    transfers_.give_up(tags_[i].fill);
    owner_.wake_next();  // who waits for it asks anew
  }
  tags_.clear(i);
  ++progress_;
  wake_waiting();
}

template <class Context>
bool context_cache<Context>::busy(std::uint32_t number) const {
  const std::uint32_t key = place_.key_of(number);
  if (const unsigned i = tags_.find(key); i != no_slot) {
    const context_tags::slot& s = tags_[i];
    if (s.pins != 0 || s.dirty || s.is == state::filling) return true;
  }
  return transfers_.reading([key](std::uint32_t of) { return (of & ~second_key) == key; }) || transfers_.writing(key);
}

// ---------------------------------------------------------------- who waits

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
  to.add(name_ + ".full_cycles", transfers_.full_cycles());
}

template <class Context>
template <class F>
void context_cache<Context>::for_each(F f) {
  for (unsigned i = 0; i != tags_.size(); ++i)
    if (tags_[i].is == state::valid && (tags_.key(i) & second_key) == 0) f(tags_.key(i), contexts_[i].context);
}

}  // namespace rnic::icm
