// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/soak_atomics.h"

#include <algorithm>
#include <cstring>

namespace rnic::bench {

namespace {

constexpr std::uint64_t most_added = std::uint64_t{1} << 32;
constexpr std::uint64_t flow_salt = 0x61746f6d69630000;  // apart from the keys of messages

}  // namespace

soak_atomics::soak_atomics(unsigned flows, std::uint64_t seed)
    : flows_(flows), seed_(seed), values_(flows), unknown_(flows) {}

void soak_atomics::set_up(const hosts::endpoint& e, unsigned host) {
  words_[host] = hosts::make_buffer(e, (std::size_t{flows_} + 1) * hosts::atomic_bytes);
  for (unsigned place = 0; place <= flows_; ++place) {
    // The shared word begins low: it does not wrap, so that its values have an order.
    const std::uint64_t begin = place == flows_ ? 1 + host : content_key(seed_, place, flow_salt + host);
    std::memcpy(words_[host].at(std::uint64_t{place} * hosts::atomic_bytes), &begin, hosts::atomic_bytes);
    if (place == flows_)
      first_[host] = sum_[host] = begin;
    else if (place % 2 != host)  // flows are from their number's last bit to the other host
      values_[place] = begin;
  }
}

soak_atomics::operation soak_atomics::draw(unsigned flow, unsigned from, bool swap, soak_random& random) {
  const unsigned host = 1 - from;
  operation o;
  o.swap = swap;
  o.shared = !swap && random.below(2) == 0;
  o.address = words_[host].address(std::uint64_t{o.shared ? flows_ : flow} * hosts::atomic_bytes);
  o.rkey = words_[host].region->rkey;
  if (o.shared) {
    o.compare_add = 1 + random.below(most_added);
    sum_[host] += o.compare_add;
    return o;
  }
  std::uint64_t& value = values_[flow];
  o.original = value;
  if (!swap) {
    o.compare_add = random.next();
    value += o.compare_add;
    return o;
  }
  const bool succeeds = random.below(4) != 0;
  o.compare_add = succeeds ? value : value + 1 + random.below(most_added);
  o.swap_value = random.next();
  if (succeeds) value = o.swap_value;
  return o;
}

std::string soak_atomics::returned(const operation& o, unsigned from, std::uint64_t original) {
  if (o.shared) {
    steps_[1 - from].push_back({original, o.compare_add});
    return "";
  }
  if (original == o.original) return "";
  return "returned " + std::to_string(original) + " and not " + std::to_string(o.original);
}

void soak_atomics::failed(unsigned flow, unsigned from) {
  unknown_[flow] = true;
  gap_[1 - from] = true;
}

std::uint64_t soak_atomics::word(unsigned host, unsigned place) const {
  std::uint64_t value;
  std::memcpy(&value, words_[host].at(std::uint64_t{place} * hosts::atomic_bytes), hosts::atomic_bytes);
  return value;
}

std::vector<soak_atomics::finding> soak_atomics::look() const {
  std::vector<finding> out;
  for (unsigned flow = 0; flow < flows_; ++flow) {
    const std::uint64_t value = word(1 - flow % 2, flow);
    if (!unknown_[flow] && value != values_[flow])
      out.push_back({false, "flow " + std::to_string(flow) + ": its word is " + std::to_string(value) + " and not " +
                                std::to_string(values_[flow])});
  }
  for (unsigned host = 0; host < 2; ++host) check_chain(host, out);
  return out;
}

void soak_atomics::check_chain(unsigned host, std::vector<finding>& out) const {
  const std::string name = std::string("shared word of host ") + (host == 0 ? "a" : "b");
  std::vector<step> steps = steps_[host];
  std::sort(steps.begin(), steps.end(), [](const step& a, const step& b) { return a.original < b.original; });
  std::uint64_t value = first_[host];
  for (const step& s : steps) {
    if (s.original < value) {
      out.push_back({true, name + ": " + std::to_string(s.original) + " was inside of another addition"});
    } else if (s.original > value && !gap_[host]) {
      out.push_back({true, name + ": additions that nobody asked for between " + std::to_string(value) + " and " +
                               std::to_string(s.original)});
    }
    value = s.original + s.added;
  }
  const std::uint64_t last = word(host, flows_);
  if (gap_[host]) return;
  if (last != value || last != sum_[host])
    out.push_back({last > sum_[host], name + " is " + std::to_string(last) + " and not " + std::to_string(sum_[host])});
}

}  // namespace rnic::bench
