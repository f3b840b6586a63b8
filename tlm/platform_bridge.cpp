// SPDX-License-Identifier: Apache-2.0
#include "tlm/platform_bridge.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "model/sim/check.h"

namespace rnic::tlm {

namespace {

constexpr std::uint64_t config_bytes = 4096 * 256;  // of all functions of a bus
constexpr unsigned dword = 4, line = 64;

bool enabled(const ::tlm::tlm_generic_payload& p, unsigned at) {
  const unsigned char* const enables = p.get_byte_enable_ptr();
  return enables == nullptr || enables[at % p.get_byte_enable_length()] == TLM_BYTE_ENABLED;
}

/// What is wrong with a transaction before anything is done for it.
::tlm::tlm_response_status legality(const ::tlm::tlm_generic_payload& p) {
  if (p.get_data_length() == 0 || p.get_data_ptr() == nullptr || p.get_streaming_width() < p.get_data_length())
    return ::tlm::TLM_BURST_ERROR_RESPONSE;
  if (p.get_byte_enable_ptr() != nullptr && p.get_byte_enable_length() == 0)
    return ::tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE;
  return ::tlm::TLM_OK_RESPONSE;
}

::tlm::tlm_response_status response_of(payload::tlp_status status) {
  if (status == payload::tlp_status::success) return ::tlm::TLM_OK_RESPONSE;
  return status == payload::tlp_status::unsupported_request ? ::tlm::TLM_ADDRESS_ERROR_RESPONSE
                                                            : ::tlm::TLM_GENERIC_ERROR_RESPONSE;
}

payload::tlp_status status_of(::tlm::tlm_response_status response) {
  if (response == ::tlm::TLM_OK_RESPONSE) return payload::tlp_status::success;
  return response == ::tlm::TLM_ADDRESS_ERROR_RESPONSE ? payload::tlp_status::unsupported_request
                                                       : payload::tlp_status::completer_abort;
}

const platform_bridge::config& checked(const std::string& name, const platform_bridge::config& c) {
  if (c.reads_under_way == 0 || c.reads_under_way > 64)
    throw sim::config_error(name + ".reads_under_way: must be 1 to 64");
  if (c.wire_pulse_ps == 0) throw sim::config_error(name + ".wire_pulse_ps: must be at least 1");
  if (c.uncore_khz == 0) throw sim::config_error(name + ".uncore_khz: must be at least 1");
  return c;
}

}  // namespace

struct platform_bridge::split_read {
  sc_core::sc_event done;
  bool completed = false;
  std::uint64_t behind = 0;  ///< so many writes of the adapter
  payload::tlp_status status = payload::tlp_status::success;
  std::array<std::uint8_t, line> data{};
};

platform_bridge::platform_bridge(const sc_core::sc_module_name& module_name, sim::timebase& base,
                                 payload::tlp_pool& packets, sim::span_recorder& spans, sim::statistics& statistics,
                                 const config& cfg)
    : sc_core::sc_module(module_name),
      config_space("config_space"),
      memory("memory"),
      dma("dma"),
      wires("wire", cfg.wires),
      config_(checked(name(), cfg)),
      base_(base),
      packets_(packets),
      uncore_(std::string(name()) + ".uncore", base, {1'000'000'000, cfg.uncore_khz, 0}),
      no_memory_({0, host::host_memory::page_bytes}),
      root_(std::string(name()) + ".root_port", uncore_, cfg.root, no_memory_, packets, spans, statistics),
      slot_("slot", root_),
      sender_([this]() -> payload_sender::forward& { return *dma.operator->(); }, cfg.non_blocking) {
  wiring_.rises.resize(cfg.wires);
  wiring_.falls.resize(cfg.wires);
  root_.forward(*this);
  config_space.register_b_transport(this, &platform_bridge::config_transport);
  config_space.register_transport_dbg(this, &platform_bridge::config_debug);
  config_space.register_get_direct_mem_ptr(this, &platform_bridge::no_dmi);
  memory.register_b_transport(this, &platform_bridge::memory_transport);
  memory.register_transport_dbg(this, &platform_bridge::memory_debug);
  memory.register_get_direct_mem_ptr(this, &platform_bridge::no_dmi);
  dma.register_nb_transport_bw(this, &platform_bridge::dma_backward);
  sc_core::sc_spawn([this] { dispatch(); }, "dispatch");
  for (unsigned i = 0; i < cfg.reads_under_way; ++i)
    sc_core::sc_spawn([this] { read(); }, ("reader" + std::to_string(i)).c_str());
  if (cfg.wires != 0) sc_core::sc_spawn([this] { drive_wires(); }, "drive_wires");
  const std::string prefix = std::string(name()) + ".";
  statistics.add(prefix + "failed_writes", failed_writes_);
  statistics.add(prefix + "failed_reads", failed_reads_);
  statistics.add(prefix + "poisoned", poisoned_);
  statistics.add(prefix + "pulses", pulses_);
}

platform_bridge::~platform_bridge() = default;

// ---------------------------------------------------------------- from the platform

/// Accesses begin in the order in which they came, also when the store buffer is full.
template <class Start>
void platform_bridge::in_turn(Start start) {
  const std::uint64_t turn = accesses_asked_++;
  while (turn != accesses_begun_ || !start()) {
    if (turn == accesses_begun_) root_.wait_for_space(*this);
    sc_core::wait(space_);
  }
  if (++accesses_begun_ != accesses_asked_) space_.notify();  // the next one may find room too
}

void platform_bridge::access(space where, generic_payload& p, sc_core::sc_time& delay) {
  if (delay != sc_core::SC_ZERO_TIME) sc_core::wait(delay);
  delay = sc_core::SC_ZERO_TIME;
  p.set_dmi_allowed(false);
  ::tlm::tlm_response_status status = legality(p);
  const unsigned length = p.get_data_length();
  if (status == ::tlm::TLM_OK_RESPONSE && where == space::config &&
      (p.get_address() >= config_bytes || length > config_bytes - p.get_address()))
    status = ::tlm::TLM_ADDRESS_ERROR_RESPONSE;
  if (p.get_command() == ::tlm::TLM_IGNORE_COMMAND || status != ::tlm::TLM_OK_RESPONSE) {
    p.set_response_status(status);
    return;
  }
  const std::uint64_t base = where == space::memory ? config_.memory_base : 0;
  const unsigned boundary = where == space::memory ? line : dword;
  for (unsigned at = 0; at < length;) {
    if (!enabled(p, at)) {
      ++at;
      continue;
    }
    const auto room = boundary - static_cast<unsigned>((base + p.get_address() + at) % boundary);
    unsigned bytes = 1;
    while (bytes < room && at + bytes < length && enabled(p, at + bytes)) ++bytes;
    const ::tlm::tlm_response_status one = piece(where, p, at, bytes);
    if (status == ::tlm::TLM_OK_RESPONSE) status = one;
    at += bytes;
  }
  p.set_response_status(status);
}

/// One packet: `bytes` enabled bytes from `at` on.
::tlm::tlm_response_status platform_bridge::piece(space where, generic_payload& p, unsigned at, unsigned bytes) {
  const std::uint64_t address = p.get_address() + at;
  std::uint8_t* const data = p.get_data_ptr() + at;
  const bool is_read = p.get_command() == ::tlm::TLM_READ_COMMAND;
  if (where == space::memory && !is_read) {
    in_turn([&] { return root_.mmio_store(config_.memory_base + address, data, bytes, 0); });
    return ::tlm::TLM_OK_RESPONSE;
  }
  split_read r;
  const auto token = reinterpret_cast<std::uint64_t>(&r);
  const auto function = static_cast<std::uint16_t>(address >> 12);
  const auto offset = static_cast<std::uint16_t>(address & 0xfff);
  in_turn([&] {
    if (where == space::memory) return root_.start_mmio_read(config_.memory_base + address, bytes, *this, token);
    return is_read ? root_.start_config_read(function, offset, bytes, *this, token)
                   : root_.start_config_write(function, offset, data, bytes, *this, token);
  });
  while (!r.completed) sc_core::wait(r.done);
  while (writes_.done < r.behind) sc_core::wait(writes_.one_done);
  if (is_read) std::memcpy(data, r.data.data(), bytes);
  return response_of(r.status);
}

void platform_bridge::read_completed(std::uint64_t token, payload::tlp_status status, const std::uint8_t* data,
                                     std::uint32_t bytes) {
  auto& r = *reinterpret_cast<split_read*>(token);
  std::memcpy(r.data.data(), data, std::min<std::size_t>(bytes, r.data.size()));
  r.status = status;
  r.behind = writes_.arrived;
  r.completed = true;
  base_.notify(r.done);
}

/// What the adapter can tell without noticing.
unsigned platform_bridge::debug(space where, generic_payload& p) {
  const unsigned length = p.get_data_length();
  if (p.get_command() != ::tlm::TLM_READ_COMMAND || length == 0 || length > payload::tlp::max_data) return 0;
  payload::pcie_payload question;
  question.packet = packets_.get();
  payload::tlp& t = *question.packet;
  t.type = where == space::config ? payload::tlp_type::cfg_read : payload::tlp_type::mem_read;
  t.length = length;
  if (where == space::config) {
    t.completer = static_cast<std::uint16_t>(config_.root.device_id + (p.get_address() >> 12));
    t.address = p.get_address() & 0xfff;
  } else {
    t.address = config_.memory_base + p.get_address();
  }
  const unsigned bytes = slot_.socket->transport_dbg(question);
  std::memcpy(p.get_data_ptr(), t.data.data(), bytes);
  if (bytes != 0) p.set_response_status(::tlm::TLM_OK_RESPONSE);
  return bytes;
}

// ---------------------------------------------------------------- from the adapter

void platform_bridge::request(payload::tlp_ptr packet, sim::time_ps arrival) {
  if (packet->posted()) ++writes_.arrived;
  arrived_.push_back({std::move(packet), arrival});
  if (arrived_.size() == 1) base_.notify(arrival_, arrival);
}

/// Takes the packets in their order; a write is done before anything behind it.
void platform_bridge::dispatch() {
  for (;;) {
    while (arrived_.empty()) sc_core::wait(arrival_);
    const sim::time_ps now = sc_core::sc_time_stamp().value();
    if (arrived_.front().at > now) sc_core::wait(sc_core::sc_time::from_value(arrived_.front().at - now));
    payload::tlp_ptr packet = std::move(arrived_.front().packet);
    arrived_.pop_front();
    if (packet->posted()) {
      write(*packet);
      root_.done_with(*packet);
      ++writes_.done;
      writes_.one_done.notify();
      continue;
    }
    while (reads_.readers_free == 0) sc_core::wait(reads_.reader_free);
    --reads_.readers_free;
    reads_.waiting.push_back(std::move(packet));
    reads_.read_waits.notify();
  }
}

void platform_bridge::write(const payload::tlp& packet) {
  if (packet.poisoned) {
    ++poisoned_;
    return;
  }
  if (packet.type == payload::tlp_type::message) return move_line(packet.code == payload::message_code::assert_inta);
  if (raise(packet)) return;
  std::array<std::uint8_t, payload::tlp::max_data>
      data;  // a target may take the pointer, but not change what it points to
  std::memcpy(data.data(), packet.data.data(), packet.length);
  if (sender_.send(::tlm::TLM_WRITE_COMMAND, packet.address, data.data(), packet.length) != ::tlm::TLM_OK_RESPONSE)
    ++failed_writes_;
}

void platform_bridge::read() {
  for (;;) {
    ++reads_.readers_free;
    reads_.reader_free.notify();
    while (reads_.waiting.empty()) sc_core::wait(reads_.read_waits);
    payload::tlp_ptr packet = std::move(reads_.waiting.front());
    reads_.waiting.pop_front();
    payload::tlp_status status = payload::tlp_status::unsupported_request;
    if (packet->type == payload::tlp_type::mem_read && packet->length != 0 && packet->length <= payload::tlp::max_data)
      status = status_of(sender_.send(::tlm::TLM_READ_COMMAND, packet->address, packet->data.data(), packet->length));
    if (status != payload::tlp_status::success) ++failed_reads_;
    root_.answer(std::move(packet), status);
  }
}

::tlm::tlm_sync_enum platform_bridge::dma_backward(generic_payload& p, ::tlm::tlm_phase& phase,
                                                   sc_core::sc_time& delay) {
  return sender_.backward(p, phase, delay);
}

// ---------------------------------------------------------------- interrupts as wires

bool platform_bridge::raise(const payload::tlp& packet) {
  const std::uint64_t offset = packet.address - config_.wire_address;
  if (packet.length != dword || offset % dword != 0 || offset / dword >= wiring_.falls.size()) return false;
  const std::size_t wire = offset / dword;
  ++pulses_;
  wiring_.rises[wire] = true;
  wiring_.move.notify(sc_core::SC_ZERO_TIME);
  return true;
}

/// INTA is the first wire, which it keeps up until it is taken back.
void platform_bridge::move_line(bool asserted) {
  if (wiring_.falls.empty()) return;
  wiring_.held = asserted;
  wiring_.rises[0] = wiring_.rises[0] || asserted;
  if (!asserted) wiring_.falls[0] = sc_core::sc_time_stamp().value();
  wiring_.move.notify(sc_core::SC_ZERO_TIME);
}

/// The one process that writes the wires. A message during a pulse makes it longer.
void platform_bridge::drive_wires() {
  for (;;) {
    const sim::time_ps now = sc_core::sc_time_stamp().value();
    sim::time_ps next = 0;
    for (std::size_t i = 0; i < wiring_.falls.size(); ++i) {
      if (wiring_.rises[i]) {
        wires[i].write(true);
        wiring_.rises[i] = false;
        wiring_.falls[i] = now + config_.wire_pulse_ps;
      }
      if (wiring_.falls[i] == 0 || (i == 0 && wiring_.held)) continue;
      if (wiring_.falls[i] <= now) {
        wires[i].write(false);
        wiring_.falls[i] = 0;
      } else if (next == 0 || wiring_.falls[i] < next) {
        next = wiring_.falls[i];
      }
    }
    if (next == 0)
      sc_core::wait(wiring_.move);
    else
      sc_core::wait(sc_core::sc_time::from_value(next - now), wiring_.move);
  }
}

}  // namespace rnic::tlm
