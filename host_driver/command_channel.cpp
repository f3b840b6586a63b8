// SPDX-License-Identifier: Apache-2.0
// Firmware commands (adapter control plane 2; net/cmd.c).
#include "host_driver/command_channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host_driver/virtual_channel.h"
#include "model/abi/bar_layout.h"

namespace rnic::host_driver {

namespace {
constexpr std::uint64_t ps_per_us = 1'000'000;
constexpr std::uint16_t polling_token = 0xffff;
/// In event mode another process may have taken the interrupt together with this command's event: look again at times.
constexpr std::uint64_t event_slice_ps = 1000 * ps_per_us;
}  // namespace

command_channel::~command_channel() {
  for (const auto& m : pool_) bus_.release(m);
}

command_channel::mailbox::mailbox(command_channel& owner) : owner_(owner) {
  if (owner.pool_.empty()) {
    memory_ = owner.bus_.allocate(abi::mailbox_bytes);
  } else {
    memory_ = owner.pool_.back();
    owner.pool_.pop_back();
  }
  std::memset(memory_.pointer, 0, abi::mailbox_bytes);
}
command_channel::mailbox::~mailbox() { owner_.pool_.push_back(memory_); }

void command_channel::reset() {
  toggle_ = 1;
  pump_ = nullptr;
  lost_ = false;
}

void command_channel::lose_device() {
  lost_ = true;
  pump_ = nullptr;
}

void command_channel::use_events(event_pump_if& pump, unsigned log_max_commands) {
  pump_ = &pump;
  token_step_ = static_cast<std::uint16_t>(1u << std::min(log_max_commands, 15u));
  token_ = 0;
}

namespace {

int result_without_device(abi::opcode op) {
  switch (op) {
    case abi::opcode::unmap_icm:
    case abi::opcode::unmap_icm_aux:
    case abi::opcode::unmap_fa:
    case abi::opcode::to_rst_qp:
    case abi::opcode::flow_steering_detach:
    case abi::opcode::hw2sw_eq:
    case abi::opcode::hw2sw_cq:
    case abi::opcode::hw2sw_srq:
    case abi::opcode::hw2sw_mpt:
    case abi::opcode::close_hca:
    case abi::opcode::close_port:
      return 0;
    default:
      return -EIO;
  }
}

}  // namespace

int command_channel::errno_of(std::uint8_t status) {
  switch (static_cast<abi::status>(status)) {
    case abi::status::ok:
      return 0;
    case abi::status::internal_error:
      return -EIO;
    case abi::status::bad_op:
      return -EPERM;
    case abi::status::bad_param:
      return -EINVAL;
    case abi::status::bad_sys_state:
      return -ENXIO;
    case abi::status::bad_resource:
      return -EBADF;
    case abi::status::resource_busy:
      return -EBUSY;
    case abi::status::exceed_lim:
      return -ENOMEM;
    case abi::status::bad_res_state:
      return -EBADF;
    case abi::status::bad_index:
      return -EBADF;
    case abi::status::bad_nvmem:
      return -EFAULT;
    case abi::status::icm_error:
      return -ENFILE;
    case abi::status::bad_qp_state:
      return -EINVAL;
    case abi::status::bad_seg_param:
      return -EFAULT;
    case abi::status::reg_bound:
      return -EBUSY;
    case abi::status::lam_not_pre:
      return -EAGAIN;
    case abi::status::bad_pkt:
      return -EINVAL;
    case abi::status::bad_size:
      return -ENOMEM;
    case abi::status::multi_func_req:
      return -EACCES;
  }
  return -EIO;
}

bool command_channel::pending() {
  const std::uint32_t control = bus_.mmio_read32(0, abi::bar0::hcr + abi::hcr::control);
  return (control & abi::hcr::go) != 0 || toggle_ == (control >> abi::hcr::toggle_bit & 1);
}

int command_channel::post(const arguments& args, std::uint16_t token, bool event) {
  const std::uint64_t deadline = bus_.now_ps() + (event ? cfg_.go_timeout_us * ps_per_us : 0);
  while (pending()) {
    if (bus_.now_ps() >= deadline) return -EIO;
    bus_.spend_ps(cfg_.poll_interval_ns * 1000);
  }
  const auto put = [&](unsigned offset, std::uint32_t value) { bus_.mmio_write32(0, abi::bar0::hcr + offset, value); };
  put(abi::hcr::in_param_high, static_cast<std::uint32_t>(args.in >> 32));
  put(abi::hcr::in_param_low, static_cast<std::uint32_t>(args.in));
  put(abi::hcr::in_modifier, args.modifier);
  put(abi::hcr::out_param_high, static_cast<std::uint32_t>(args.out >> 32));
  put(abi::hcr::out_param_low, static_cast<std::uint32_t>(args.out));
  put(abi::hcr::token, std::uint32_t{token} << abi::hcr::token_shift);
  put(abi::hcr::control, abi::hcr::go | toggle_ << abi::hcr::toggle_bit | (event ? abi::hcr::event : 0) |
                             std::uint32_t{args.op_modifier} << abi::hcr::opcode_modifier_shift |
                             static_cast<std::uint32_t>(args.op));
  toggle_ ^= 1;
  return 0;
}

int command_channel::wait_polling(const arguments& args) {
  const std::uint64_t deadline = bus_.now_ps() + cfg_.command_timeout_us * ps_per_us;
  while (pending()) {
    if (bus_.now_ps() >= deadline) return -ETIMEDOUT;
    bus_.spend_ps(cfg_.poll_interval_ns * 1000);
  }
  if (args.immediate != nullptr) {
    const std::uint64_t high = bus_.mmio_read32(0, abi::bar0::hcr + abi::hcr::out_param_high);
    *args.immediate = high << 32 | bus_.mmio_read32(0, abi::bar0::hcr + abi::hcr::out_param_low);
  }
  const std::uint32_t control = bus_.mmio_read32(0, abi::bar0::hcr + abi::hcr::control);
  last_status_ = static_cast<std::uint8_t>(control >> abi::hcr::status_shift);
  return errno_of(last_status_);
}

int command_channel::wait_event(const arguments& args) {
  event_pump_if& pump = *pump_;  // the mode may change while this command waits
  const std::uint64_t deadline = bus_.now_ps() + cfg_.command_timeout_us * ps_per_us;
  while (!done_) {
    if (lost_) return result_without_device(args.op);
    const std::uint64_t now = bus_.now_ps();
    if (now >= deadline) return args.op == abi::opcode::nop ? -EBUSY : -ETIMEDOUT;
    pump.pump(std::min(deadline - now, event_slice_ps));
  }
  if (args.immediate != nullptr) *args.immediate = out_;
  last_status_ = status_;
  return errno_of(status_);
}

int command_channel::execute(const arguments& args) {
  // Those who wait are served in the order in which they came, as by the kernel's semaphore.
  const std::uint32_t ticket = last_ticket_++;
  while (ticket != serving_) bus_.spend_ps(cfg_.poll_interval_ns * 1000);
  const int result = execute_alone(args);
  ++serving_;
  return result;
}

int command_channel::execute_alone(const arguments& args) {
  if (lost_) return result_without_device(args.op);
  if (virtual_ != nullptr)
    return virtual_->execute(args.op, args.op_modifier, args.modifier, args.in, args.out, args.immediate,
                             &last_status_);
  const bool event = pump_ != nullptr;
  if (event) token_ = static_cast<std::uint16_t>(token_ + token_step_);
  const std::uint16_t token = event ? token_ : polling_token;
  done_ = false;
  int result = post(args, token, event);
  if (result == 0) result = event ? wait_event(args) : wait_polling(args);
  return result;
}

void command_channel::complete(std::uint16_t token, std::uint8_t status, std::uint64_t out) {
  if (serving_ == last_ticket_ || token != token_) return;
  status_ = status;
  out_ = out;
  done_ = true;
}

}  // namespace rnic::host_driver
