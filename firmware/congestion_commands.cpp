// SPDX-License-Identifier: Apache-2.0
// CONGESTION_CTRL: reaction points of 802.1Qau (adapter control plane 4.20, adapter data plane E.7).
#include <algorithm>

#include "firmware/firmware.h"
#include "model/abi/congestion.h"
#include "model/mac/mac_cr.h"
#include "model/transport/congestion/qcn_cr.h"

namespace rnic::firmware {

using register_bus::cr_base;
namespace layout_of = abi::congestion_ctrl;
namespace t = transport::cr;

namespace {

constexpr unsigned priorities = 8;
constexpr std::uint32_t most_gd = 31, most_points = 0xffff, most_rate_mbps = 400'000, whole_percent = 100;

/// Word `n` of the group of a port's priority, in the space of the requester or of the READ generator.
std::uint32_t word_of(unsigned port, unsigned priority, std::uint32_t n) {
  return t::qcn + (port * priorities + priority) * t::qcn_stride + 4 * n;
}

}  // namespace

/// Frames carry no CN-TAG: the flow of a CNM is found by what it gives back of the sampled frame.
abi::status firmware::congestion_ctrl(command_request& r) {
  const std::uint32_t port = r.modifier & 0xff, chosen = r.modifier >> layout_of::priorities_shift & 0xff;
  if (!valid_port(port) || chosen == 0 || r.modifier >> layout_of::algorithm_shift != 0) return status::bad_param;
  if (r.op_modifier == layout_of::op_set_parameters) {
    if (const status s = read_mailbox(r, layout_of::parameters::bytes); s != status::ok) return s;
    if (const status s = check_reaction_points(); s != status::ok) return s;
    for (unsigned priority = 0; priority < priorities; ++priority)
      if ((chosen >> priority & 1) != 0) set_reaction_points(port - 1, priority);
    return status::ok;
  }
  if ((chosen & (chosen - 1)) != 0) return status::bad_param;  // of one priority
  const auto priority = static_cast<unsigned>(__builtin_ctz(chosen));
  out_.fill(0);
  if (r.op_modifier == layout_of::op_get_statistics) {
    query_reaction_statistics(port - 1, priority);
    return write_mailbox(r, layout_of::statistics::bytes);
  }
  query_reaction_points(port - 1, priority);
  return write_mailbox(r, layout_of::parameters::bytes);
}

abi::status firmware::check_reaction_points() const {
  namespace p = layout_of::parameters;
  const std::uint32_t modified = in(p::modify_low);
  const auto ok = [&](abi::field<std::uint32_t> f, std::uint32_t least, std::uint32_t most) {
    const bool meant = (modified >> (31 - (f.offset - p::first_word) / 4) & 1) != 0;
    return !meant || (in(f) >= least && in(f) <= most);
  };
  const bool tagged = (in(p::modify_high)&p::modify_cn_tag) != 0 && in(p::cn_tag) != 0;
  const bool right = ok(p::max_rps, 1, most_points) && ok(p::threshold, 1, most_points) &&
                     ok(p::max_rate, 0, most_rate_mbps) && ok(p::ai_rate, 0, most_rate_mbps) &&
                     ok(p::hai_rate, 0, most_rate_mbps) && ok(p::gd, 0, most_gd) &&
                     ok(p::min_dec_fac, 1, whole_percent) && ok(p::min_rate, 1, most_rate_mbps);
  return right && !tagged ? status::ok : status::bad_param;
}

/// Parameters first: a reaction point begins with them.
void firmware::set_reaction_points(unsigned port, unsigned priority) {
  namespace p = layout_of::parameters;
  const auto write = [&](std::uint32_t word, std::uint32_t value) {
    for (const std::uint32_t half : {0u, t::generator_offset})
      chip_.write(cr_base::transport, half + word_of(port, priority, word), value);
  };
  const std::uint32_t modified = in(p::modify_low);
  for (unsigned i = 0; i < p::words; ++i)
    if ((modified >> (31 - i) & 1) != 0) write(i + 1, abi::load32(in_.data(), p::first_word + 4 * i));
  if ((in(p::modify_high)&p::modify_enable) == 0) return;
  write(0, in(p::enable));
  const auto bit = static_cast<std::uint8_t>(1u << priority);
  const std::uint8_t before = reacting_[port];
  reacting_[port] = static_cast<std::uint8_t>(in(p::enable) != 0 ? before | bit : before & ~bit);
  if ((before != 0) != (reacting_[port] != 0))
    chip_.write_port(cr_base::mac, port, mac::cr::takes_cnms, before == 0 ? 1 : 0);
}

void firmware::query_reaction_points(unsigned port, unsigned priority) {
  namespace p = layout_of::parameters;
  put(p::enable, chip_.read(cr_base::transport, word_of(port, priority, 0)));
  for (unsigned i = 0; i < p::words; ++i)
    abi::store32(out_.data(), p::first_word + 4 * i, chip_.read(cr_base::transport, word_of(port, priority, i + 1)));
}

/// Of both halves of the transport together.
void firmware::query_reaction_statistics(unsigned port, unsigned priority) {
  namespace s = layout_of::statistics;
  const auto word = [&](std::uint32_t half, std::uint32_t n) {
    return chip_.read(cr_base::transport, half + word_of(port, priority, t::qcn_statistics / 4 + n));
  };
  const auto both = [&](std::uint32_t n) { return word(0, n) + word(t::generator_offset, n); };
  std::uint64_t centiseconds = 0;
  for (const std::uint32_t half : {0u, t::generator_offset})
    centiseconds += std::uint64_t{word(half, t::qcn_centiseconds)} << 32 | word(half, t::qcn_centiseconds + 1);
  const std::uint32_t not_roce =
      chip_.read(cr_base::transport, t::cnm_offset + t::cnm_ignored + 4 * (port * priorities + priority));
  put(s::centiseconds, centiseconds);
  put(s::ignored_cnm, both(t::qcn_ignored) + not_roce);
  put(s::created_rps, both(t::qcn_created));
  put(s::total_rate, both(t::qcn_total_rate));
  put(s::highest_limiter, std::max(word(0, t::qcn_highest_index), word(t::generator_offset, t::qcn_highest_index)));
  put(s::dropped_cnms, chip_.read_port(cr_base::mac, port, mac::cr::dropped_cnms));  // the port does not know for whom
  put(s::handled_cnms, both(t::qcn_handled));
  put(s::least_total_rate, both(t::qcn_least_total));
  put(s::most_total_rate, both(t::qcn_most_total));
}

/// The transport has forgotten it with its reset.
void firmware::forget_congestion() {
  for (unsigned port = 0; port < config_.num_ports; ++port)
    if (reacting_[port] != 0) chip_.write_port(cr_base::mac, port, mac::cr::takes_cnms, 0);
  reacting_.fill(0);
}

}  // namespace rnic::firmware
