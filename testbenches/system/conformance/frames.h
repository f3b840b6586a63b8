// SPDX-License-Identifier: Apache-2.0
// Frames of the scripted peer, and what those of the adapter must be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbenches/system/conformance/rig.h"
#include "testbenches/system/conformance/scenario.h"
#include "testbenches/system/conformance/subject.h"

namespace rnic::conformance {

std::uint8_t opcode_of(const packet& p, service s);
/// PSN on the wire of a packet that the peer sends or gets.
std::uint32_t wire_psn(const packet& p, service s, bool injected);
/// Bytes of the payload that an injected packet carries.
std::vector<std::uint8_t> payload_of(const packet& p);
std::vector<std::uint8_t> frame_of(const packet& p, const subject& to);
/// What is heard must be `p`: test failures for everything that differs.
void expect_heard(const packet& p, const heard_frame& heard, const subject& by);
/// A line on a packet for people.
std::string describe(const wire::packet& p);
/// What a check from outside needs to know of a packet that must be heard.
std::string as_json(const packet& p, service s);

}  // namespace rnic::conformance
