// SPDX-License-Identifier: Apache-2.0
// A doorbell decoder by the data sheet of the model's alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/abi/bar_layout.h"
#include "model/abi/queue_entries.h"
#include "model/adapter/block_place.h"
#include "model/completion/completion_if.h"
#include "model/doorbell/doorbell.h"
#include "model/doorbell/doorbell_cr.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/scheduler/scheduler_if.h"
#include "model/sim/server.h"

namespace rnic::system_test {

/// Ticked while it has writes, and kept in lists where the model has places.
class own_doorbell final : public sim::clocked_block,
                           public register_bus::cr_target_if,
                           public register_bus::reset_target_if {
 public:
  explicit own_doorbell(adapter::block_place& place)
      : clocked_block(place.name() + ".own", place.clock()),
        config_(place.parameters().doorbell),
        mark_(place.name()),
        spans_(place.around().spans) {
    const std::pair<const char*, const std::uint64_t*> all[] = {
        {"sends", &n_.sends},        {"blueflames", &n_.blueflames},       {"blueflame_partial", &n_.partial},
        {"blueflame_bad", &n_.bad},  {"blueflame_disabled", &n_.disabled}, {"cq_arms", &n_.arms},
        {"eq_updates", &n_.updates}, {"bad_offset", &n_.bad_offset},       {"bad_length", &n_.bad_length}};
    for (const auto& [what, counter] : all) place.around().statistics.add(mark_ + "." + what, *counter);
    place.bind("pcie_to_doorbell_writes", writes_);
    place.bind("doorbell_to_scheduler_sends", sends_);
    place.bind("doorbell_to_completion_arms", queues_);
  }

  std::uint32_t cr_read(std::uint32_t offset) override {
    namespace cr = doorbell::cr;
    switch (offset) {
      case cr::uar_page_shift:
        return shift_;
      case cr::log_num_uars:
        return log_uars_;
      case cr::blueflame_enable:
        return enabled_ ? 1 : 0;
      case cr::log_bf_reg_size:
        return config_.log_bf_reg_size;
      case cr::first_virtual_eq:
        return first_virtual_eq_;
      case cr::eqs_of_virtual:
        return eqs_of_virtual_;
      default:
        return 0;
    }
  }
  void cr_write(std::uint32_t offset, std::uint32_t value) override {
    namespace cr = doorbell::cr;
    switch (offset) {
      case cr::uar_page_shift:
        if (value >= 12 && value <= 20) shift_ = value;
        break;
      case cr::log_num_uars:
        if (value <= 20) {
          log_uars_ = value;
          open_ = true;
        }
        break;
      case cr::blueflame_enable:
        enabled_ = value != 0;
        break;
      case cr::first_virtual_eq:
        first_virtual_eq_ = value & 0xffff;
        break;
      case cr::eqs_of_virtual:
        eqs_of_virtual_ = value & 0xffff;
        break;
      default:
        break;
    }
    wake_next();
  }
  void device_reset() override {
    shift_ = 12;
    log_uars_ = 0;
    enabled_ = open_ = false;
    first_virtual_eq_ = eqs_of_virtual_ = 0;
    filling_.clear();
    for (lost& l : lost_) l.words = 0;
    halves_.clear();
    wake_next();
  }

 private:
  enum class done { yes, later, no_send, no_queue };
  struct filling {
    std::uint16_t function;
    std::uint64_t buffer;
    std::uint32_t words = 0;  // that are in
    scheduler::blueflame_ptr wqe;
    sim::span_id span;
  };
  struct lost {
    std::uint16_t function;
    std::uint64_t buffer;
    std::uint32_t words;
  };
  struct half {
    std::uint64_t page;
    std::uint32_t word;
  };

  void tick() override {
    if (!writes_.can_pop()) return decoder_.idle();
    if (!decoder_.is_free()) return decoder_.await();
    const pcie::mmio_write& w = writes_.front();
    const std::uint64_t uar_bytes = std::uint64_t{1} << (log_uars_ + shift_);
    const bool beyond = w.offset >= uar_bytes;
    done d = done::yes;
    if (!open_)
      ++n_.bad_offset;
    else if (!beyond)
      d = decode_register(w);
    else if (w.function != 0 || w.offset >= 2 * uar_bytes)
      ++n_.bad_offset;
    else if (!enabled_)
      ++n_.disabled;
    else
      d = store(w, w.offset - uar_bytes);
    if (d == done::no_send) return decoder_.blocked("scheduler");
    if (d == done::no_queue) return decoder_.blocked("completion");
    if (d == done::later) return wake_next();
    decoder_.start(beyond ? config_.bf_line_cycles * ((w.length + 63) / 64) : +config_.decode_cycles);
    writes_.drop();
    if (writes_.can_pop()) decoder_.await();
  }

  done decode_register(const pcie::mmio_write& w) {
    const std::uint64_t page = w.offset >> shift_, offset = w.offset - (page << shift_);
    using qd = doorbell::queue_doorbells;
    if (offset == abi::uar::send_doorbell) {
      if (w.length != 4) return bad_length();
      if (!sends_.can_push()) return done::no_send;
      scheduler::send_doorbell s;
      s.qpn = abi::uar::send_doorbell_qpn(abi::load32(w.data.data()));
      s.uar = scheduler::uar_of(w.function, static_cast<std::uint32_t>(page));
      s.span = w.span;
      spans_.leave(w.span, mark_, "doorbell", now_ps());
      sends_.push(std::move(s));
      ++n_.sends;
      return done::yes;
    }
    if (offset == qd::arm_offset || offset == qd::arm_offset + 4) return arm(w, page, offset);
    if (offset >= qd::eq_offset && offset < qd::eq_offset + 8 * qd::eqs_per_page && offset % 8 == 0 &&
        page < qd::eq_pages)
      return update(w, page, (offset - qd::eq_offset) / 8);
    ++n_.bad_offset;
    return done::yes;
  }
  done bad_length() {
    ++n_.bad_length;
    return done::yes;
  }
  done arm(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset) {
    const std::pair<unsigned, std::uint64_t> at{w.function, page % doorbell::queue_doorbells::halves};
    const std::uint32_t word = abi::load32(w.data.data());
    if (offset == doorbell::queue_doorbells::arm_offset) {
      if (w.length == 8) return push_arm(w, page, word, abi::load32(w.data.data(), 4));
      if (w.length != 4) return bad_length();
      halves_[at] = {page, word};
      return done::yes;
    }
    const auto first = halves_.find(at);
    if (w.length != 4 || first == halves_.end() || first->second.page != page) return bad_length();
    const done d = push_arm(w, page, first->second.word, word);
    if (d == done::yes) halves_.erase(first);
    return d;
  }
  done push_arm(const pcie::mmio_write& w, std::uint64_t page, std::uint32_t first, std::uint32_t second) {
    if (!queues_.can_push()) return done::no_queue;
    completion::queue_doorbell q;
    q.what = completion::queue_doorbell::kind::cq_arm;
    q.number = first & 0xffffff;
    q.index = second & 0xffffff;
    q.command = static_cast<std::uint8_t>(first >> 24 & 7);
    q.sequence = static_cast<std::uint8_t>(first >> 28 & 3);
    q.uar = static_cast<std::uint32_t>(page);
    q.function = w.function;
    queues_.push(q);
    ++n_.arms;
    return done::yes;
  }
  done update(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t place) {
    if (w.length != 4) return bad_length();
    std::uint64_t number = page * 4 + place;
    if (w.function == 0 ? eqs_of_virtual_ != 0 && number >= first_virtual_eq_ : number >= eqs_of_virtual_) {
      ++n_.bad_offset;
      return done::yes;
    }
    if (w.function != 0) number += first_virtual_eq_ + (w.function - 1U) * std::uint64_t{eqs_of_virtual_};
    if (!queues_.can_push()) return done::no_queue;
    const std::uint32_t value = abi::load32(w.data.data());
    completion::queue_doorbell q;
    q.what = completion::queue_doorbell::kind::eq_update;
    q.number = static_cast<std::uint32_t>(number);
    q.index = value & 0xffffff;
    q.arm = value >> 31 != 0;
    q.function = w.function;
    queues_.push(q);
    ++n_.updates;
    return done::yes;
  }

  // BlueFlame.
  done store(const pcie::mmio_write& w, std::uint64_t offset) {
    const std::uint64_t buffer = offset / 256, at = offset % 256;
    if (w.length == 0 || at % 8 != 0 || w.length % 8 != 0 || at + w.length > 256) return bad_length();
    if (!sends_.can_push()) return done::no_send;
    const std::uint32_t words = static_cast<std::uint32_t>(((std::uint64_t{1} << w.length / 8) - 1) << at / 8);
    for (lost& l : lost_) {
      if (l.words == 0 || l.function != w.function || l.buffer != buffer) continue;
      if ((words & ~l.words) == 0) {
        l.words &= ~words;
        return done::yes;
      }
      l.words = (words & 1) != 0 ? 0 : l.words & ~words;
    }
    auto f = std::find_if(filling_.begin(), filling_.end(),
                          [&](const filling& g) { return g.function == w.function && g.buffer == buffer; });
    if (f != filling_.end() && (f->words & words) != 0) {
      give_up(f, false);
      return done::later;
    }
    if (f == filling_.end()) {
      if (filling_.size() == config_.bf_gathers) {
        give_up(filling_.begin(), true);
        return done::later;
      }
      filling_.push_back({w.function, buffer, 0, pool.get(), w.span});
      f = filling_.end() - 1;
    }
    std::copy_n(w.data.begin(), w.length, f->wqe->bytes.begin() + static_cast<std::ptrdiff_t>(at));
    f->words |= words;
    if (w.span != 0) f->span = w.span;
    if ((f->words & 1) == 0) return done::yes;
    const unsigned lines = lines_of(*f);
    if (lines == 0) {
      ++n_.bad;
      ++n_.partial;
      ring(f, false);
    } else if ((f->words & words_of(lines)) == words_of(lines)) {
      f->wqe->length = lines * 64;
      f->wqe->index = static_cast<std::uint16_t>(abi::get(f->wqe->bytes.data(), abi::wqe::control::index));
      ++n_.blueflames;
      ring(f, true);
    }
    return done::yes;
  }
  static std::uint32_t words_of(unsigned lines) {
    return static_cast<std::uint32_t>((std::uint64_t{1} << lines * 8) - 1);
  }
  /// 0: none that fits.
  static unsigned lines_of(const filling& f) {
    const unsigned size = abi::get(f.wqe->bytes.data(), abi::wqe::control::size);
    return size > 16 ? 0 : (size + 3) / 4;
  }
  void give_up(std::vector<filling>::iterator f, bool for_another) {
    ++n_.partial;
    if ((f->words & 1) == 0) {
      filling_.erase(f);
      return;
    }
    if (for_another) {
      lost_[oldest_lost_] = {f->function, f->buffer, words_of(lines_of(*f)) & ~f->words};
      oldest_lost_ = (oldest_lost_ + 1) % lost_.size();
    }
    ring(f, false);
  }
  void ring(std::vector<filling>::iterator f, bool with) {
    scheduler::send_doorbell s;
    s.qpn = abi::get(f->wqe->bytes.data(), abi::wqe::control::qpn);
    s.uar = scheduler::uar_of(f->function, static_cast<std::uint32_t>(f->buffer * 256 >> shift_));
    s.span = f->span;
    if (with) s.descriptor = std::move(f->wqe);
    spans_.leave(s.span, mark_, "doorbell", now_ps());
    sends_.push(std::move(s));
    filling_.erase(f);
  }

  sim::fifo_in<pcie::mmio_write> writes_{*this};
  sim::fifo_out<scheduler::send_doorbell> sends_{*this};
  sim::fifo_out<completion::queue_doorbell> queues_{*this};
  const doorbell::config config_;
  const std::string mark_;
  sim::span_recorder& spans_;
  /// Outlives the adapter: the scheduler, which has descriptors of it, goes behind blocks of one's own.
  inline static payload::pool<scheduler::blueflame_wqe> pool;
  std::uint32_t shift_ = 12, log_uars_ = 0, first_virtual_eq_ = 0, eqs_of_virtual_ = 0;
  bool enabled_ = false, open_ = false;
  std::vector<filling> filling_;  // the oldest first
  std::vector<lost> lost_{config_.bf_gathers, lost{0, 0, 0}};
  std::size_t oldest_lost_ = 0;
  std::map<std::pair<unsigned, std::uint64_t>, half> halves_;  // by function and place
  sim::server decoder_{*this, "decoder"};
  struct {
    std::uint64_t sends = 0, blueflames = 0, partial = 0, bad = 0, disabled = 0, arms = 0, updates = 0, bad_offset = 0,
                  bad_length = 0;
  } n_;
};
}  // namespace rnic::system_test
