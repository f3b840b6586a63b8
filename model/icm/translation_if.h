// SPDX-License-Identifier: Apache-2.0
// Memory keys: protection check and address translation.
#pragma once

#include <array>
#include <cstdint>

#include "model/sim/fifo.h"
#include "model/sim/span.h"

namespace rnic::icm {

/// What the access wants to do; bits as the MPT's rights.
enum class access : std::uint8_t { local_read, local_write, remote_read, remote_write, remote_atomic };

/// Translates [va, va + length) under a key, or a part of a queue buffer that has its own MTT. At most 4096 bytes, so
/// at most two pages (every page has at least 4 KiB).
struct translate_request {
  enum class kind : std::uint8_t { key, buffer, reserved_key };
  kind what = kind::key;
  icm::access access = icm::access::local_read;
  std::uint8_t log_page = 12;  ///< buffer
  std::uint16_t function = 0;
  std::uint32_t key = 0;  ///< lkey or rkey as on the wire / in the WQE
  std::uint32_t pd = 0;
  std::uint32_t qpn = 0;           ///< for type 2 windows
  std::uint32_t length = 0;        ///< bytes to translate, 0..4096
  std::uint64_t va = 0;            ///< virtual address; buffer: byte offset in the buffer; reserved_key: bus address
  std::uint64_t check_length = 0;  ///< key: the range [va, va + max(length, check_length)) must be inside the region
  std::uint64_t buffer_mtt = 0;    ///< buffer: mtt_address
  std::uint64_t tag = 0;
  sim::span_id span = 0;
};

enum class translate_status : std::uint8_t {
  ok,
  bad_key,
  wrong_pd,
  no_rights,
  out_of_range,
  not_mapped,
  window_not_bound
};

struct translate_response {
  std::uint64_t tag = 0;
  translate_status status = translate_status::ok;
  bool missed = false;  ///< an MPT or MTT entry had to be fetched
  struct segment {
    std::uint64_t address = 0;
    std::uint32_t length = 0;
  };
  std::array<segment, 2> segments{};
  unsigned count = 0;
};

/// A client's end. Answers of one client may overtake each other (a hit passes a miss); match by tag.
struct translate_port {
  explicit translate_port(sim::clocked_block& owner) : request(owner), response(owner) {}
  sim::fifo_out<translate_request> request;
  sim::fifo_in<translate_response> response;
};

}  // namespace rnic::icm
