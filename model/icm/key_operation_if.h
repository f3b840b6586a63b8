// SPDX-License-Identifier: Apache-2.0
// Work requests on memory keys: invalidation, fast registration, binding of windows.
#pragma once

#include <cstdint>

#include "model/sim/fifo.h"

namespace rnic::icm {

/// Rights that fast registration and binding give: bits as those of the MPT's flags, 14:10.
inline constexpr std::uint32_t right_local_read = 1u << 10, right_local_write = 1u << 11, right_remote_read = 1u << 12,
                               right_remote_write = 1u << 13, right_remote_atomic = 1u << 14;

/// One operation on the entry of `key` (IBA volume 1, 10.6.4 to 10.6.7; adapter data plane A.4.3, A.11.3).
struct key_operation {
  enum class kind : std::uint8_t {
    local_invalidate,
    remote_invalidate,  ///< named by the IETH of a SEND
    fast_register,      ///< `key` is the region's new key, with its tag
    bind,               ///< `key` is the window's new key, with its tag; length 0: unbinds (type 1 only)
    release,            ///< firmware takes a window back; `key` is its index
    revoke              ///< firmware has taken an entry back; `key` is what it was known by
  };
  kind what = kind::local_invalidate;
  bool type_2 = false;         ///< bind
  bool zero_based = false;     ///< bind: addresses through the window begin at 0
  std::uint8_t log_page = 12;  ///< fast registration
  std::uint16_t function = 0;
  std::uint32_t key = 0;
  std::uint32_t lkey = 0;    ///< bind: the region
  std::uint32_t rights = 0;  ///< right_*
  std::uint32_t pd = 0;      ///< of the queue pair that asks
  std::uint32_t qpn = 0;
  std::uint64_t start = 0, length = 0;
  std::uint64_t page_list = 0;  ///< bus address of big-endian page addresses
  std::uint64_t tag = 0;
};

enum class key_status : std::uint8_t {
  ok,
  bad_key,       ///< no such key, or its tag is wrong
  wrong_owner,   ///< protection domain or queue pair
  wrong_state,   ///< e.g. binding a type 2 window that is bound, invalidating a region with windows on it
  not_allowed,   ///< the entry does not allow the operation, or the rights asked for
  out_of_range,  ///< window beyond its region, more pages than the region has room for
  memory_error   ///< a table or the page list could not be read or written
};

struct key_answer {
  std::uint64_t tag = 0;
  key_status status = key_status::ok;
};

/// To the clients of address translation: this key has lost its meaning. Nothing that was translated under it may
/// touch memory any more when the client answers; what was not begun is given up as refused.
struct key_revocation {
  std::uint32_t key = 0;
};

/// The end of a block that holds translations and asks for no operations.
struct revocation_port {
  explicit revocation_port(sim::clocked_block& owner) : revoke(owner), revoked(owner) {}
  sim::fifo_in<key_revocation> revoke;
  sim::fifo_out<key_revocation> revoked;
};

/// A client's end. An answer comes when the entry in ICM is changed and all that hold translations have answered the
/// revocation.
struct key_port {
  explicit key_port(sim::clocked_block& owner) : request(owner), revoked(owner), response(owner), revoke(owner) {}
  sim::fifo_out<key_operation> request;
  sim::fifo_out<key_revocation> revoked;
  sim::fifo_in<key_answer> response;
  sim::fifo_in<key_revocation> revoke;
};

}  // namespace rnic::icm
