// SPDX-License-Identifier: Apache-2.0
// Register front end of BAR0.
#include "model/command/command_block.h"

#include <utility>

#include "model/abi/endian.h"
#include "model/command/command_cr.h"

namespace rnic::command {

namespace bar0 = abi::bar0;
namespace hcr = abi::hcr;

namespace {

constexpr unsigned word(unsigned offset) { return offset / 4; }
constexpr unsigned control_word = word(hcr::control);

}  // namespace

command_block::command_block(std::string name, sim::clock_domain& core, const config& cfg)
    : clocked_block(name, core), mmio(*this), config_(sim::checked(cfg, this->name())) {
  channel_.reset(0);
}

void command_block::function_level_reset(std::uint16_t function) {
  function_resets_.push_back({now(), function});
  wake_next();
}

/// Those of the edges before, so that it does not matter whether the endpoint is ticked first.
void command_block::reset_functions() {
  for (; !function_resets_.empty() && function_resets_.front().asked < now(); function_resets_.pop_front()) {
    const std::uint16_t function = function_resets_.front().function;
    if (function == 0) {
      ownership_.release(now());
      reset();
    } else {
      channel_.function_was_reset(function, now());
      tell_firmware(register_bus::notice::functions);
    }
  }
}

void command_block::tick() {
  reset_functions();
  post();
  if (!mmio.can_pop()) return;
  const pcie::mmio_write w = mmio.pop();
  if ((w.length != 4 && w.length != 8) || w.offset % w.length != 0) {
    ++stats_.bad_access;
    return;
  }
  for (std::uint32_t i = 0; i < w.length; i += 4) {
    const std::uint32_t value = abi::load32(w.data.data(), i);
    if (w.function == 0)
      write_word(w.offset + i, value);
    else
      write_channel(w.function, w.offset + i, value);
  }
}

/// The registers, to be changed in this tick: keeps what readers of this cycle are to see.
command_block::registers& command_block::change() {
  if (changed_at_ != now()) {
    before_ = registers_;
    changed_at_ = now();
  }
  return registers_;
}

std::uint32_t command_block::read32(std::uint16_t function, std::uint64_t offset) {
  if (function != 0) return channel_.virtual_read(function, offset, now());
  if (of_channel(offset)) return channel_.physical_read(offset - bar0::comm, now());
  const registers& r = changed_at_ == now() ? before_ : registers_;
  if (offset >= bar0::hcr && offset < bar0::hcr + hcr::bytes) return r.hcr[(offset - bar0::hcr) / 4];
  if (offset >= bar0::catas && offset < bar0::catas + 4 * bar0::catas_words) return r.catas[(offset - bar0::catas) / 4];
  switch (offset) {
    case bar0::ownership:
      return ownership_.claim(now());
    case bar0::flash_semaphore:
      return flash_.claim(now());
    case bar0::clock:
      return static_cast<std::uint32_t>(now() >> 32);
    case bar0::clock + 4:
      return static_cast<std::uint32_t>(now());
    default:
      return 0;
  }
}

/// Of a virtual function.
void command_block::write_channel(std::uint16_t function, std::uint64_t offset, std::uint32_t value) {
  const comm_channel::effect e = channel_.virtual_write(function, offset, value, now());
  if (e == comm_channel::effect::tell_firmware) tell_firmware(register_bus::notice::functions);
  if (e == comm_channel::effect::unknown) ++stats_.bad_access;
}

void command_block::write_word(std::uint64_t offset, std::uint32_t value) {
  if (offset == bar0::hcr + hcr::control) {
    write_control(value);
  } else if (offset >= bar0::hcr && offset < bar0::hcr + hcr::control) {
    if ((registers_.hcr[control_word] & hcr::go) != 0) {
      ++stats_.overrun;
      return;
    }
    change().hcr[(offset - bar0::hcr) / 4] = value;
  } else if (of_channel(offset)) {
    channel_.physical_write(offset - bar0::comm, value, now());
  } else if (offset == bar0::ownership) {
    if (value == 0) ownership_.release(now());
  } else if (offset == bar0::flash_semaphore) {
    if (value == 0) flash_.release(now());
  } else if (offset == bar0::reset) {
    if ((value & 1) != 0) reset();
  } else {
    ++stats_.bad_access;
  }
}

void command_block::write_control(std::uint32_t value) {
  if ((registers_.hcr[control_word] & hcr::go) != 0) {
    ++stats_.overrun;
    return;
  }
  change().hcr[control_word] = value & 0x00ffffff;
  if ((value & hcr::go) != 0) post();
}

/// Takes the command in the register, if any, into the queue when there is room. One with the event bit frees the
/// register; a polled one stays in it until it is completed.
void command_block::post() {
  const std::uint32_t control = registers_.hcr[control_word];
  if ((control & hcr::go) == 0 || taken_ || queue_.size() == config_.max_commands) return;
  queue_.push_back({registers_.hcr});
  ++stats_.commands;
  if ((control & hcr::event) != 0)
    change().hcr[control_word] = control & ~hcr::go;
  else
    taken_ = true;
  tell_firmware(register_bus::notice::command);
}

void command_block::complete(std::uint32_t status) {
  registers_.hcr[word(hcr::out_param_high)] = out_high_;
  registers_.hcr[word(hcr::out_param_low)] = out_low_;
  std::uint32_t& control = registers_.hcr[control_word];
  control = (control & 0x00ffffff & ~hcr::go) | status << hcr::status_shift;
  taken_ = false;
}

void command_block::reset() {
  change() = registers{};
  queue_.clear();
  taken_ = false;
  out_high_ = out_low_ = 0;
  flash_.release(now());
  channel_.reset(now());
  ++stats_.resets;
  tell_firmware(register_bus::notice::reset);
}

void command_block::tell_firmware(register_bus::notice what) {
  RNIC_ASSERT(firmware_ != nullptr, name() + ": firmware is not bound");
  firmware_->pulse(what, now_ps() + config_.notice_ps);
}

std::uint32_t command_block::cr_read(std::uint32_t offset) {
  const auto front = [this](unsigned w) { return queue_.empty() ? 0 : queue_.front().hcr[w]; };
  switch (offset) {
    case cr::status:
      return static_cast<std::uint32_t>(queue_.size() << 8 | (queue_.empty() ? 0 : cr::status_pending));
    case cr::in_param_high:
      return front(word(hcr::in_param_high));
    case cr::in_param_low:
      return front(word(hcr::in_param_low));
    case cr::in_modifier:
      return front(word(hcr::in_modifier));
    case cr::control:
      return front(control_word) & (hcr::event | 0xffff);
    case cr::token:
      return front(word(hcr::token)) >> hcr::token_shift;
    case cr::out_param_high:
      return front(word(hcr::out_param_high));
    case cr::out_param_low:
      return front(word(hcr::out_param_low));
    case cr::count_commands:
      return static_cast<std::uint32_t>(stats_.commands);
    case cr::count_overrun:
      return static_cast<std::uint32_t>(stats_.overrun);
    case cr::count_bad_access:
      return static_cast<std::uint32_t>(stats_.bad_access);
    case cr::count_resets:
      return static_cast<std::uint32_t>(stats_.resets);
    default:
      break;
  }
  if (offset - cr::catas < 4 * bar0::catas_words) return registers_.catas[(offset - cr::catas) / 4];
  constexpr std::uint32_t vector_bytes = 4 * std::uint32_t{function_vector{}.size()};
  if (offset - cr::channel_written < vector_bytes) return channel_.take_written((offset - cr::channel_written) / 4);
  if (offset - cr::channel_reset_requests < vector_bytes)
    return channel_.take_reset_requests((offset - cr::channel_reset_requests) / 4);
  if (offset - cr::channel_function_resets < vector_bytes)
    return channel_.take_function_resets((offset - cr::channel_function_resets) / 4);
  if (offset - cr::channel_flags < 4 * abi::comm::functions) return channel_.flags((offset - cr::channel_flags) / 4);
  return 0;
}

void command_block::cr_write(std::uint32_t offset, std::uint32_t value) {
  switch (offset) {
    case cr::accept:
      if (!queue_.empty()) queue_.pop_front();
      if ((registers_.hcr[control_word] & hcr::go) != 0) wake_next();  // a command may have waited for room
      return;
    case cr::out_param_high:
      out_high_ = value;
      return;
    case cr::out_param_low:
      out_low_ = value;
      return;
    case cr::complete:
      if (taken_) complete(value & 0xff);
      return;
    default:
      break;
  }
  if (offset - cr::catas < 4 * bar0::catas_words) registers_.catas[(offset - cr::catas) / 4] = value;
  if (offset - cr::channel_flags < 4 * abi::comm::functions)
    channel_.set_flags((offset - cr::channel_flags) / 4, value, now());
}

void command_block::announce(sim::statistics& to) const {
  to.add(name() + ".commands", stats_.commands);
  to.add(name() + ".overrun", stats_.overrun);
  to.add(name() + ".bad_access", stats_.bad_access);
  to.add(name() + ".resets", stats_.resets);
}

}  // namespace rnic::command
