// SPDX-License-Identifier: Apache-2.0
// What the responder keeps of queue pairs, packets and answers when it has nothing to do: nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbenches/block/responder/random/system.h"

namespace rnic::transport::random_test {

/// A sentence for each pool that is not empty.
std::vector<std::string> what_is_left(half& of, const setup& with);
/// The queue pair has a place on chip.
bool has_place(const half& of, std::uint32_t qpn);
/// Somebody is to be told of an error, or doorbell records are looked at.
bool attends_to_errors(const half& of);

}  // namespace rnic::transport::random_test
