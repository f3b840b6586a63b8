// SPDX-License-Identifier: Apache-2.0
// Rates of virtual ports, of which each function has one (net/fw_qos.c; net/cmd.c: mlx4_set_vport_qos).
#include <numeric>

#include "firmware/firmware.h"
#include "model/transport/transport_cr.h"

namespace rnic::firmware {

using register_bus::cr_base;

namespace {

constexpr std::uint32_t available = transport::cr::vports;  // of a port, for its priorities together
constexpr std::uint32_t kbps = 1000;                        // of a Mb/s

}  // namespace

/// How many virtual ports may have a rate at each priority.
abi::status firmware::allocate_vpp(command_request& r) {
  namespace f = abi::vpp;
  if (functions_.count() == 1) return status::bad_op;
  if (!valid_port(r.modifier)) return status::bad_param;
  vport_counts& counts = vports_[r.modifier - 1];
  if (r.op_modifier == f::op_query) {
    out_.fill(0);
    put(f::available, available);
    for (unsigned i = 0; i < f::priorities; ++i) abi::store32(out_.data(), f::of_priority + 4 * i, counts[i]);
    return write_mailbox(r, 0x100);
  }
  if (const status s = read_mailbox(r, 0x100); s != status::ok) return s;
  vport_counts wanted{};
  for (unsigned i = 0; i < f::priorities; ++i) wanted[i] = abi::load32(in_.data(), f::of_priority + 4 * i);
  if (std::accumulate(wanted.begin(), wanted.end(), std::uint64_t{0}) > available) return status::exceed_lim;
  counts = wanted;
  return status::ok;
}

/// Of one virtual port: those numbered from 1 to what its priority was given; number 0, which everybody has at first,
/// has no rate. Shares are not weighed, and the kernel offers none (net/cmd.c: mlx4_set_vf_rate).
abi::status firmware::set_vport_qos(command_request& r) {
  namespace f = abi::vport_qos;
  namespace t = transport::cr;
  if (functions_.count() == 1) return status::bad_op;
  const std::uint32_t port = r.modifier & 0xff, number = r.modifier >> 8;
  if (!valid_port(port) || number >= functions_.count()) return status::bad_param;
  const auto select = [&](unsigned priority) {
    chip_.write(cr_base::transport, t::vport_select,
                number | priority << t::vport_priority_shift | (port - 1) << t::vport_port_shift);
  };
  const auto at = [](unsigned priority) { return f::first + f::each * priority; };
  if (r.op_modifier == abi::vpp::op_query) {
    out_.fill(0);
    for (unsigned i = 0; i < abi::vpp::priorities; ++i) {
      select(i);
      const std::uint32_t rate = chip_.read(cr_base::transport, t::vport_rate);
      abi::set(out_.data() + at(i), f::max_rate, rate / kbps);
      abi::set(out_.data() + at(i), f::enable, rate != 0 ? 1u : 0u);
    }
    return write_mailbox(r, at(abi::vpp::priorities));
  }
  if (const status s = read_mailbox(r, at(abi::vpp::priorities)); s != status::ok) return s;
  for (unsigned i = 0; i < abi::vpp::priorities; ++i) {
    const bool on = in(f::enable, at(i)) != 0;
    const bool has_place = number != 0 && number <= vports_[port - 1][i];
    if (on && (!has_place || in(f::max_rate, at(i)) > 0xffff'ffff / kbps)) return status::bad_param;
    if (in(f::share, at(i)) != 0) return status::bad_param;
  }
  for (unsigned i = 0; i < abi::vpp::priorities; ++i) {
    select(i);
    chip_.write(cr_base::transport, t::vport_rate, in(f::enable, at(i)) != 0 ? in(f::max_rate, at(i)) * kbps : 0);
  }
  return status::ok;
}

}  // namespace rnic::firmware
