// SPDX-License-Identifier: Apache-2.0
#include "testbenches/cosim/icrc/stimulus.h"

#include <zlib.h>

#include <algorithm>
#include <sstream>

namespace rnic::cosim {

test_packet random_packet(std::mt19937_64& rng, wire::encapsulation encap, std::size_t length) {
  test_packet p{encap, std::vector<std::uint8_t>(length)};
  for (auto& byte : p.bytes) byte = static_cast<std::uint8_t>(rng());
  return p;
}

std::uint32_t oracle_icrc(const test_packet& p) {
  std::vector<std::uint8_t> masked = p.bytes;
  const auto ones = [&masked](std::size_t at, std::uint8_t bits = 0xff) {
    if (at < masked.size()) masked[at] = static_cast<std::uint8_t>(masked[at] | bits);
  };
  std::size_t bth = 0;
  switch (p.encap) {
    case wire::encapsulation::roce_v2_ipv4:
      for (const std::size_t at : {1u, 8u, 10u, 11u, 26u, 27u}) ones(at);
      bth = 28;
      break;
    case wire::encapsulation::roce_v2_ipv6:
      ones(0, 0x0f);
      for (const std::size_t at : {1u, 2u, 3u, 7u, 46u, 47u}) ones(at);
      bth = 48;
      break;
    case wire::encapsulation::roce_v1:
      ones(0, 0x0f);
      for (const std::size_t at : {1u, 2u, 3u, 7u}) ones(at);
      bth = 40;
      break;
  }
  ones(bth + 4);
  const std::vector<std::uint8_t> local_route_header(8, 0xff);
  uLong crc = crc32(0, local_route_header.data(), 8);
  crc = crc32(crc, masked.data(), static_cast<uInt>(masked.size()));
  return static_cast<std::uint32_t>(crc);
}

std::string to_string(pattern p) {
  switch (p) {
    case pattern::always:
      return "always";
    case pattern::alternate:
      return "alternate";
    case pattern::bursts:
      return "bursts";
    case pattern::random:
      return "random";
  }
  return "unknown";
}

bool active(pattern p, std::uint64_t cycle, std::mt19937_64& rng) {
  switch (p) {
    case pattern::always:
      return true;
    case pattern::alternate:
      return cycle % 2 == 0;
    case pattern::bursts:
      return (cycle / 13) % 2 == 0;
    case pattern::random:
      return rng() % 4 == 0;
  }
  return false;
}

void driver::load() {
  const test_packet& p = traffic_.packets[packet_];
  const std::size_t left = p.bytes.size() - offset_;
  beat_.valid = true;
  beat_.first = offset_ == 0;
  beat_.last = left <= icrc::beat_bytes;
  beat_.keep = static_cast<std::uint8_t>(std::min(left, icrc::beat_bytes));
  beat_.encap = p.encap;
  beat_.data.fill(static_cast<std::uint8_t>(rng_()));  // what lies behind the last byte must not matter
  std::copy_n(p.bytes.begin() + static_cast<std::ptrdiff_t>(offset_), beat_.keep, beat_.data.begin());
}

stimulus driver::next() {
  stimulus s;
  s.reset = traffic_.reset_one_in != 0 && rng_() % traffic_.reset_one_in == 0;
  if (!offered_ && packet_ < traffic_.packets.size() && active(traffic_.offer, cycle_, rng_)) {
    load();
    offered_ = true;
  }
  if (offered_) s.in = beat_;
  s.result_ready = active(traffic_.take, cycle_, rng_);
  ++cycle_;
  return s;
}

std::optional<std::string> driver::finish(const stimulus& s, const icrc::icrc_outputs& out) {
  if (s.reset) {  // the packet under way is lost, the next one starts afresh
    if (offset_ != 0 && packet_ < traffic_.packets.size()) ++packet_;
    offset_ = 0;
    offered_ = false;
    expected_.clear();
    return std::nullopt;
  }
  std::optional<std::string> wrong;
  if (out.result_valid && s.result_ready) {
    if (expected_.empty() || expected_.front() != out.crc) {
      std::ostringstream line;
      line << "cycle " << cycle_ - 1 << ": result " << std::hex << out.crc << ", zlib says ";
      if (expected_.empty()) {
        line << "none is due";
      } else {
        line << expected_.front();
      }
      wrong = line.str();
    }
    if (!expected_.empty()) expected_.pop_front();
  }
  if (s.in.valid && out.in_ready) {
    offered_ = false;
    offset_ += s.in.keep;
    if (s.in.last) {
      expected_.push_back(oracle_icrc(traffic_.packets[packet_]));
      ++packet_;
      offset_ = 0;
    }
  }
  return wrong;
}

}  // namespace rnic::cosim
