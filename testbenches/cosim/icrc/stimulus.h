// SPDX-License-Identifier: Apache-2.0
// What the ICRC engine is driven with, and what must come out.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rtl/icrc/icrc_pins.h"
#include "testbenches/cosim/harness/run.h"
#include "testbenches/cosim/harness/stream_driver.h"

namespace rnic::cosim {

/// Bytes of a packet from its L3 header to before its ICRC. Any length of at least 1: the engine counts bytes only.
struct test_packet {
  wire::encapsulation encap = wire::encapsulation::roce_v2_ipv4;
  std::vector<std::uint8_t> bytes;
};
test_packet random_packet(std::mt19937_64& rng, wire::encapsulation encap, std::size_t length);

/// The ICRC by zlib over eight bytes of ones and the packet with its variant fields set to ones, field by field as in
/// the table of the standard; knows nothing of beats.
std::uint32_t oracle_icrc(const test_packet& p);

using traffic = plan<rtl::icrc_pins>;
/// Appends a packet in beats of `width` bytes. What lies behind its last byte in its last beat is random: it must not
/// matter.
void add(traffic& to, const test_packet& p, std::mt19937_64& rng, unsigned width = 16);

/// `t` through the model and the RTL of `make`.
outcome run(const traffic& t, const rtl::lockstep<rtl::icrc_pins>::factory& make, const std::string& name,
            unsigned width = 16);

}  // namespace rnic::cosim
