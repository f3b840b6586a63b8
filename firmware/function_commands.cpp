// SPDX-License-Identifier: Apache-2.0
// Commands of the physical function's driver for the virtual ones (adapter control plane 8; net/cmd.c, net/eq.c).
#include <algorithm>

#include "firmware/firmware.h"
#include "model/pcie/pcie_cr.h"

namespace rnic::firmware {

using register_bus::cr_base;

abi::status firmware::query_func(command_request& r) {
  namespace f = abi::query_func_mailbox;
  if (!functions_.exists(r.modifier)) return status::bad_param;
  const std::uint32_t routing = chip_.read(cr_base::pcie, pcie::cr::bus_device_function) + r.modifier;
  out_.fill(0);
  put(f::bus, routing >> 8);
  put(f::device_function, routing & 0xff);
  put(f::physical_function, 0);
  put(f::reserved_eqs, r.modifier == 0 ? 4u : 0u);
  put(f::max_eqs, r.modifier == 0 ? functions::first_virtual_eq : functions_.virtual_eqs());
  return write_mailbox(r, 0x100);
}

abi::status firmware::arm_comm_channel(command_request&) {
  if (functions_.count() == 1) return status::bad_op;
  functions_.arm();
  return status::ok;
}

abi::status firmware::inform_flr_done(command_request& r) {
  return functions_.release(r.modifier) ? status::ok : status::bad_param;
}

/// An entry that the host's driver made, for a queue of a virtual function.
abi::status firmware::gen_eqe(command_request& r) {
  const std::uint32_t function = r.modifier & 0xff;
  const auto eqn = functions_.eq_index(function, r.modifier >> 16 & 0x3ff);
  if (function == 0 || !functions_.exists(function) || !eqn) return status::bad_param;
  if (!eqs_.has(*eqn, static_cast<std::uint16_t>(function))) return status::bad_res_state;
  if (const status s = read_mailbox(r, abi::eqe::bytes); s != status::ok) return s;
  chip::event_data data{};
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = abi::load32(in_.data(), 4 + 4 * i);
  const bool raised = chip_.raise(static_cast<abi::eqe::event>(in(abi::eqe::type)), in(abi::eqe::subtype), data, *eqn);
  return raised ? status::ok : status::internal_error;
}

/// Copies between the memories of two functions, of which one at least is the physical one. The function is in the low
/// byte of each address, which is of a page; the length is in units of 256 bytes.
abi::status firmware::access_mem(command_request& r) {
  constexpr std::uint32_t unit = 256;
  const auto function = [](std::uint64_t parameter) { return static_cast<std::uint16_t>(parameter & 0xff); };
  const auto address = [](std::uint64_t parameter) { return parameter & ~std::uint64_t{0xff}; };
  const std::uint16_t from = function(r.in_param), to = function(r.out_param);
  if (r.modifier == 0 || r.modifier % unit != 0 || r.modifier > in_.size() || (from != 0 && to != 0) ||
      address(r.in_param) % 4096 != 0 || address(r.out_param) % 4096 != 0 || !functions_.exists(from) ||
      !functions_.exists(to))
    return status::bad_param;
  const bool copied = chip_.hw().dma_read(from, address(r.in_param), in_.data(), r.modifier) &&
                      chip_.hw().dma_write(to, address(r.out_param), in_.data(), r.modifier);
  return copied ? status::ok : status::internal_error;
}

}  // namespace rnic::firmware
