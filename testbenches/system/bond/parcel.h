// SPDX-License-Identifier: Apache-2.0
// A WRITE of random bytes from host a to host b.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {

struct parcel {
  parcel(const link& l, std::uint32_t bytes, unsigned seed)
      : from(hosts::make_buffer(l.a.at, bytes)), to(hosts::make_buffer(l.b.at, bytes)), size(bytes) {
    std::mt19937_64 random(seed);
    fill_random(from.at(), bytes, random);
  }
  void send(const link& l) const { post_write(l.a, from, to, size); }
  bool is_there() const { return std::memcmp(from.at(), to.at(), size) == 0; }
  hosts::buffer from, to;
  std::uint32_t size;
};

}  // namespace rnic::system_test
