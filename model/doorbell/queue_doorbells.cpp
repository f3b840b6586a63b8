// SPDX-License-Identifier: Apache-2.0
#include "model/doorbell/queue_doorbells.h"

#include "model/abi/endian.h"

namespace rnic::doorbell {

queue_doorbells::arm_half& queue_doorbells::half_of(std::uint16_t function, std::uint64_t page) {
  const std::size_t at = function * halves + page % halves;
  if (at >= halves_.size()) halves_.resize((function + std::size_t{1}) * halves);
  return halves_[at];
}

bool queue_doorbells::arm_cq(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset) {
  arm_half& half = half_of(w.function, page);
  if (offset == arm_offset && w.length == 8) {
    if (!out_.claim()) return false;
    push_arm(w, page, abi::load32(w.data.data()), abi::load32(w.data.data(), 4));
  } else if (offset == arm_offset && w.length == 4) {
    half = {true, page, abi::load32(w.data.data())};
  } else if (offset == arm_offset + 4 && w.length == 4 && half.valid && half.page == page) {
    if (!out_.claim()) return false;
    half.valid = false;
    push_arm(w, page, half.word, abi::load32(w.data.data()));
  } else {
    ++counters_.bad_length;
  }
  return true;
}

void queue_doorbells::push_arm(const pcie::mmio_write& w, std::uint64_t page, std::uint32_t first,
                               std::uint32_t second) {
  completion::queue_doorbell d;
  d.what = completion::queue_doorbell::kind::cq_arm;
  d.number = first & 0xffffff;
  d.index = second & 0xffffff;
  d.command = static_cast<std::uint8_t>((first >> 24) & 7);
  d.uar = static_cast<std::uint32_t>(page);
  d.sequence = static_cast<std::uint8_t>((first >> 28) & 3);
  d.function = w.function;
  out_.push(d);
  ++counters_.arms;
}

/// Its number in the completion block; nothing: the function has none of that number.
std::optional<std::uint32_t> queue_doorbells::eq_of(std::uint16_t function, std::uint64_t number) const {
  const std::uint32_t first = pages_.first_virtual_eq, each = pages_.eqs_of_virtual;
  if (function == 0 ? each != 0 && number >= first : number >= each) return {};
  return static_cast<std::uint32_t>(number) + (function == 0 ? 0 : first + (function - 1u) * each);
}

bool queue_doorbells::update_eq(const pcie::mmio_write& w, std::uint64_t page, std::uint64_t offset) {
  if (w.length != 4) {
    ++counters_.bad_length;
    return true;
  }
  const auto eqn = eq_of(w.function, page * eqs_per_page + (offset - eq_offset) / 8);
  if (!eqn) {
    ++counters_.bad_offset;
    return true;
  }
  if (!out_.claim()) return false;
  const std::uint32_t word = abi::load32(w.data.data());
  completion::queue_doorbell d;
  d.what = completion::queue_doorbell::kind::eq_update;
  d.number = *eqn;
  d.index = word & 0xffffff;
  d.arm = (word >> 31) != 0;
  d.function = w.function;
  out_.push(d);
  ++counters_.eq_updates;
  return true;
}

}  // namespace rnic::doorbell
