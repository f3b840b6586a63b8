// SPDX-License-Identifier: Apache-2.0
// Contexts between a cache and host memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/icm/context_cache_config.h"
#include "model/icm/context_tags.h"
#include "model/pcie/dma_if.h"
#include "model/sim/clocked_block.h"
#include "model/sim/seldom.h"

namespace rnic::icm {

/// Data sheet. Part of a context cache: its reads and writes of host memory.
///
/// Memories: `fills` buffers of a context that comes in, `write_backs` of one that goes out. Port: the DMA port of the
/// cache, one request and one answer a cycle. A context that has come can be used `miss_cycles` later. Stalls: the
/// buffers of a kind are all taken, or the channel to the DMA engine is full; service() tells when that has changed.
template <class Context>
class context_transfers {
 public:
  context_transfers(sim::clocked_block& owner, pcie::dma_port& dma, const context_cache_config& config)
      : owner_(owner),
        dma_(dma),
        miss_cycles_(config.miss_cycles),
        fills_(config.fills),
        write_backs_(config.write_backs) {}

  /// Takes an answer; calls done(slot, data, failed) for each fill that can be used now; slot: none when it was given
  /// up. Returns how much has changed for who waits.
  template <class F>
  unsigned service(F done) {
    return sim::seldom(fills_active_ + write_backs_active_ != 0 || channel_was_full_) ? serve(done) : 0;
  }

  bool may_read() { return fills_active_ != fills_.size() && channel_has_room(); }
  /// Begins to read `bytes` of the context of `key`, for `slot`, when may_read(); returns the number of the buffer.
  unsigned read(std::uint32_t key, unsigned slot, std::uint64_t address, std::uint32_t bytes) {
    const auto n = static_cast<unsigned>(
        std::find_if(fills_.begin(), fills_.end(), [](const fill& f) { return !f.active; }) - fills_.begin());
    fill& f = fills_[n];
    f.key = key;
    f.slot = slot;
    f.active = true;
    f.dropped = f.arrived = f.failed = false;
    if (++fills_active_ == fills_.size()) full_since_ = owner_.now();
    pcie::dma_request request;
    request.op = pcie::dma_request::kind::read;
    request.length = bytes;
    request.address = address;
    request.tag = n;
    request.destination = reinterpret_cast<std::uint8_t*>(&f.data);
    dma_.request.push(std::move(request));
    return n;
  }
  /// Nobody wants what comes into this buffer any more.
  void give_up(unsigned n) { fills_[n].dropped = true; }

  /// Cycles in which all buffers for what comes in were taken, up to the last one that came free.
  const std::uint64_t& full_cycles() const { return full_cycles_; }

  bool may_write() { return write_backs_active_ != write_backs_.size() && channel_has_room(); }
  /// Begins to write `bytes` of a copy of `context` when may_write().
  void write(std::uint32_t key, const Context& context, std::uint64_t address, std::uint32_t bytes) {
    const auto n = static_cast<unsigned>(
        std::find_if(write_backs_.begin(), write_backs_.end(), [](const write_back& w) { return !w.active; }) -
        write_backs_.begin());
    write_back& w = write_backs_[n];
    w.data = context;
    w.key = key;
    w.active = true;
    ++write_backs_active_;
    pcie::dma_request request;
    request.op = pcie::dma_request::kind::write;
    request.notify = true;
    request.length = bytes;
    request.address = address;
    request.tag = write_tag | n;
    request.source = reinterpret_cast<const std::uint8_t*>(&w.data);
    dma_.request.push(std::move(request));
  }

  /// Something is on its way in for which f(key) is true.
  template <class F>
  bool reading(F f) const {
    return std::any_of(fills_.begin(), fills_.end(), [&](const fill& b) { return b.active && f(b.key); });
  }
  /// A copy of it is on its way out.
  bool writing(std::uint32_t key) const {
    return std::any_of(write_backs_.begin(), write_backs_.end(),
                       [key](const write_back& w) { return w.active && w.key == key; });
  }

 private:
  struct fill {
    Context data;
    std::uint32_t key;
    unsigned slot;
    bool active, dropped, arrived, failed;
    sim::cycle_t usable;
  };
  struct write_back {
    Context data;
    std::uint32_t key;
    bool active;
  };
  static constexpr std::uint64_t write_tag = std::uint64_t{1} << 32;

  template <class F>
  [[gnu::noinline]] unsigned serve(F done) {
    unsigned changes = 0;
    if (channel_was_full_ && dma_.request.claim()) {
      channel_was_full_ = false;
      ++changes;
    }
    if (dma_.response.can_pop()) changes += take_answer(dma_.response.pop());
    if (delayed_ == 0) return changes;
    for (fill& f : fills_) {
      if (!f.active || !f.arrived || f.usable > owner_.now()) continue;
      f.active = f.arrived = false;
      if (fills_active_-- == fills_.size()) full_cycles_ += owner_.now() - full_since_;
      --delayed_;
      ++changes;
      done(f.dropped ? context_tags::none : f.slot, f.data, f.failed);
    }
    return changes;
  }
  bool channel_has_room() {
    const bool room = dma_.request.claim();
    channel_was_full_ |= !room;
    return room;
  }
  unsigned take_answer(const pcie::dma_response& answer) {
    if ((answer.tag & write_tag) != 0) {
      write_backs_[answer.tag & 0xffff].active = false;
      --write_backs_active_;
      return 1;
    }
    fill& f = fills_[answer.tag & 0xffff];
    f.arrived = true;
    f.failed = answer.status != pcie::dma_status::ok;
    f.usable = owner_.now() + miss_cycles_;
    ++delayed_;
    if (miss_cycles_ != 0) owner_.wake_at(f.usable);
    return 0;
  }

  sim::clocked_block& owner_;
  pcie::dma_port& dma_;
  const unsigned miss_cycles_;
  unsigned fills_active_ = 0, write_backs_active_ = 0;
  bool channel_was_full_ = false;  // somebody waits for room in the DMA channel
  unsigned delayed_ = 0;           // fills that have arrived and cannot be used yet
  sim::cycle_t full_since_ = 0;    // when the last buffer was taken
  std::uint64_t full_cycles_ = 0;
  std::vector<fill> fills_;
  std::vector<write_back> write_backs_;
};

}  // namespace rnic::icm
