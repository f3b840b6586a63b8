// SPDX-License-Identifier: Apache-2.0
// What came out of the responder, beside what the reference expects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbenches/block/responder/random/reference.h"
#include "testbenches/block/responder/random/system.h"

namespace rnic::transport::random_test {

/// A sentence for each difference.
std::vector<std::string> differences(const system& s, const setup& with, const reference& expected);

/// Those of a queue pair's answers (check_answers.cpp).
void check_answers(const system& s, const queue_pair& q, const expectation& must, std::vector<std::string>& out);

std::string name_of(const queue_pair& q);
std::string hex(std::uint64_t value);

}  // namespace rnic::transport::random_test
