// SPDX-License-Identifier: Apache-2.0
#include "testbenches/cosim/icrc/stimulus.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "model/icrc/icrc_model.h"

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

void add(traffic& to, const test_packet& p, std::mt19937_64& rng, unsigned width) {
  traffic::item item;
  for (std::size_t at = 0; at < p.bytes.size(); at += width) {
    item.beats.push_back(icrc::beat_at(p.encap, p.bytes.data(), p.bytes.size(), at, width));
    icrc::icrc_beat& beat = item.beats.back();
    std::fill(beat.data.begin() + beat.keep, beat.data.begin() + width, static_cast<std::uint8_t>(rng()));
  }
  item.result = oracle_icrc(p);
  to.items.push_back(std::move(item));
}

outcome run(const traffic& t, const rtl::lockstep<rtl::icrc_pins>::factory& make, const std::string& name,
            unsigned width) {
  auto reference = std::make_unique<rtl::icrc_reference>(std::make_unique<icrc::icrc_model>(width));
  return run_lockstep<rtl::icrc_pins>(stream_driver<rtl::icrc_pins>(t), std::move(reference), make, name);
}

}  // namespace rnic::cosim
