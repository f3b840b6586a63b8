// SPDX-License-Identifier: Apache-2.0
#include "host_driver/functions/cm_ids.h"

#include <algorithm>

#include "host_driver/cm/messages.h"
#include "model/abi/endian.h"

namespace rnic::host_driver {

namespace {

using cm::message;

constexpr auto message_kind = abi::u16(16);
/// The sender's ID, and the receiver's; SIDR has one, the requester's, in the first place (struct cm_generic_msg,
/// struct cm_sidr_generic_msg).
constexpr auto first_id = abi::u32(24), second_id = abi::u32(28);

message kind_of(const std::uint8_t* m) { return static_cast<message>(abi::get(m, message_kind)); }

/// With them a connection begins on this side, or a new number of it comes to be known.
bool brings_id(message kind) {
  return kind == message::req || kind == message::rep || kind == message::mra || kind == message::rej ||
         kind == message::sidr_req;
}

bool begins(message kind) { return kind == message::req || kind == message::sidr_req; }

bool ends(message kind) {
  return kind == message::dreq || kind == message::drep || kind == message::rej || kind == message::sidr_rep;
}

}  // namespace

cm_ids::on_wire::iterator cm_ids::find(unsigned function, std::uint32_t own) {
  const auto known = by_function_.find({function, own});
  return known == by_function_.end() ? by_wire_.end() : by_wire_.find(known->second);
}

cm_ids::on_wire::iterator cm_ids::make(unsigned function, std::uint32_t own, std::uint64_t now_ps) {
  if (count_[function] >= most_) expire(now_ps);
  if (count_[function] >= most_) return by_wire_.end();
  std::uint32_t id = own;
  if (id == 0 || by_wire_.count(id) != 0) {
    while (next_ == 0 || by_wire_.count(next_) != 0) ++next_;
    id = next_++;
  }
  ++count_[function];
  by_function_[{function, own}] = id;
  return by_wire_.emplace(id, entry{function, own}).first;
}

cm_ids::on_wire::iterator cm_ids::remove(on_wire::iterator at) {
  by_function_.erase({at->second.function, at->second.own});
  --count_[at->second.function];
  return by_wire_.erase(at);
}

void cm_ids::expire(std::uint64_t now_ps) {
  if (now_ps < first_end_) return;
  first_end_ = ~std::uint64_t{0};
  for (auto at = by_wire_.begin(); at != by_wire_.end();) {
    if (at->second.until <= now_ps) {
      at = remove(at);
    } else {
      first_end_ = std::min(first_end_, at->second.until);
      ++at;
    }
  }
}

cm_ids::verdict cm_ids::leave(unsigned function, std::uint8_t* m, std::uint64_t now_ps) {
  expire(now_ps);
  const message kind = kind_of(m);
  if (kind == message::sidr_rep) return verdict::passes;  // has the requester's number alone
  const std::uint32_t own = abi::get(m, first_id);
  auto at = find(function, own);
  if (at == by_wire_.end() && !brings_id(kind)) return verdict::unknown;
  if (at == by_wire_.end()) at = make(function, own, now_ps);
  if (at == by_wire_.end()) return verdict::no_room;
  if (begins(kind)) at->second.until = ~std::uint64_t{0};
  if (ends(kind)) {
    at->second.until = now_ps + keep_ps_;
    first_end_ = std::min(first_end_, at->second.until);
  }
  abi::set(m, first_id, at->first);
  return verdict::passes;
}

cm_ids::verdict cm_ids::arrive(unsigned function, std::uint8_t* m, std::uint64_t now_ps) {
  expire(now_ps);
  const message kind = kind_of(m);
  if (begins(kind)) return verdict::passes;
  const auto place = kind == message::sidr_rep ? first_id : second_id;
  const std::uint32_t id = abi::get(m, place);
  // A client that gives up before it has heard of our number names none.
  if (kind == message::rej && id == 0) return verdict::passes;
  const auto at = by_wire_.find(id);
  if (at == by_wire_.end()) return verdict::unknown;
  if (at->second.function != function) return verdict::foreign;
  abi::set(m, place, at->second.own);
  if (ends(kind)) {
    at->second.until = now_ps + keep_ps_;
    first_end_ = std::min(first_end_, at->second.until);
  }
  return verdict::passes;
}

void cm_ids::forget(unsigned function) {
  for (auto at = by_wire_.begin(); at != by_wire_.end();) at = at->second.function == function ? remove(at) : ++at;
  count_.erase(function);
}

}  // namespace rnic::host_driver
