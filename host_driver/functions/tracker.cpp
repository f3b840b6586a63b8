// SPDX-License-Identifier: Apache-2.0
#include "host_driver/functions/tracker.h"

#include <algorithm>

namespace rnic::host_driver {

void resource_tracker::start(unsigned functions, const quotas& most) {
  most_.assign(functions + 1, most);
  used_.assign(functions + 1, {});
  for (auto& kind : objects_) kind.clear();
}

resource_tracker::object& resource_tracker::add(unsigned function, resource what, std::uint32_t number,
                                                unsigned order) {
  used_[function][index(what)] += 1u << order;
  object& o = objects_[index(what)][number];
  o = object{};
  o.function = static_cast<std::uint16_t>(function);
  o.order = order;
  return o;
}

resource_tracker::object& resource_tracker::add_special(unsigned function, resource what, std::uint32_t number) {
  object& o = add(function, what, number);
  o.counted = false;
  --used_[function][index(what)];
  return o;
}

resource_tracker::object* resource_tracker::find(unsigned function, resource what, std::uint32_t number) {
  auto& all = objects_[index(what)];
  const auto at = all.find(number);
  return at != all.end() && at->second.function == function ? &at->second : nullptr;
}

bool resource_tracker::has(unsigned function, resource what, std::uint32_t number) const {
  const auto& all = objects_[index(what)];
  const auto at = all.find(number);
  return at != all.end() && at->second.function == function;
}

std::uint32_t resource_tracker::first_free(resource what, std::uint32_t first, std::uint32_t end) const {
  const auto& all = objects_[index(what)];
  while (first != end && all.count(first) != 0) ++first;
  return first;
}

void resource_tracker::remove(resource what, std::uint32_t number) {
  auto& all = objects_[index(what)];
  const auto at = all.find(number);
  if (at == all.end()) return;
  if (at->second.counted) used_[at->second.function][index(what)] -= 1u << at->second.order;
  release(at->second);
  all.erase(at);
}

std::vector<std::uint32_t> resource_tracker::of(unsigned function, resource what) const {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, o] : objects_[index(what)])
    if (o.function == function) numbers.push_back(number);
  return numbers;
}

resource_tracker::object& resource_tracker::add_member(unsigned function, std::uint32_t qpn, const group_name& group) {
  object& o = add(function, resource_member, ++last_member_);
  o.qpn = qpn;
  o.group = group;
  return o;
}

std::uint32_t resource_tracker::member(unsigned function, std::uint32_t qpn, const group_name& group) const {
  for (const auto& [number, o] : objects_[index(resource_member)])
    if (o.function == function && o.qpn == qpn && o.group == group) return number;
  return 0;
}

void resource_tracker::hold(object& by, resource what, std::uint32_t number) {
  auto& all = objects_[index(what)];
  auto at = all.upper_bound(number);
  if (at == all.begin()) return;
  --at;
  if (at->second.function != by.function || number - at->first >= 1u << at->second.order) return;
  ++at->second.holders;
  by.holds.emplace_back(what, at->first);
}

void resource_tracker::release(object& by) {
  for (const auto& [what, number] : by.holds)
    if (const auto at = objects_[index(what)].find(number); at != objects_[index(what)].end()) --at->second.holders;
  by.holds.clear();
}

void resource_tracker::release(object& by, resource what) {
  const auto begin =
      std::stable_partition(by.holds.begin(), by.holds.end(), [what](const auto& held) { return held.first != what; });
  for (auto at = begin; at != by.holds.end(); ++at)
    if (const auto o = objects_[index(what)].find(at->second); o != objects_[index(what)].end()) --o->second.holders;
  by.holds.erase(begin, by.holds.end());
}

bool resource_tracker::has_mtts(unsigned function, std::uint64_t first, std::uint64_t count) const {
  const auto& all = objects_[index(resource::mtt)];
  auto at = all.upper_bound(static_cast<std::uint32_t>(first));
  if (first > ~std::uint32_t{0} || at == all.begin()) return false;
  --at;
  return at->second.function == function && first - at->first + count <= std::uint64_t{1} << at->second.order;
}

}  // namespace rnic::host_driver
