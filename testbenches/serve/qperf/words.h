// SPDX-License-Identifier: Apache-2.0
// What qperf's two sides say to each other over TCP (qperf 0.4.11, qperf.c and rdma.c): structures of fixed length,
// their integers little-endian and without gaps.
#pragma once

#include <cstdint>
#include <string>

namespace rnic::serve::qperf {

inline constexpr std::uint16_t version_major = 0, version_minor = 4, version_increment = 11;
/// Said by both sides before a test, and by the client behind it.
inline constexpr const char* before_test = "synchronization before test";
inline constexpr const char* after_test = "synchronization after test";

/// What a client asks for (REQ).
struct request {
  static constexpr std::size_t bytes = 200;
  std::uint16_t major = version_major, minor = version_minor;
  std::uint16_t test = 0;           ///< its place in the tool's table
  std::uint32_t message_bytes = 0;  ///< 0: of the tests of atomics, that have 8
  std::uint32_t messages = 0;       ///< 0: as many as there are in `seconds`
  std::uint32_t seconds = 0, timeout_s = 0;
  std::uint32_t reads = 0;  ///< READs and atomics under way
  bool manager = false;     ///< the connection manager connects

  std::string text() const;
  /// `text` has `bytes` bytes.
  static request parse(const std::string& text);
};

/// Where memory is (NODE); the rest of it is of connections without the connection manager.
struct node {
  static constexpr std::size_t bytes = 40;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;

  std::string text() const;
  static node parse(const std::string& text);
};

/// What went one way (USTAT).
struct transfer {
  std::uint64_t bytes = 0, messages = 0, errors = 0;
};

/// What a server counted (STAT). Times of processors are not told: they are zero.
struct statistics {
  static constexpr std::size_t bytes = 256;
  std::uint64_t took_ms = 0;
  transfer sent, received;

  std::string text() const;
  static statistics parse(const std::string& text);
};

std::string number_text(std::uint32_t n);
std::uint32_t parse_number(const std::string& text);

}  // namespace rnic::serve::qperf
