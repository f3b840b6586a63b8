// SPDX-License-Identifier: Apache-2.0
#include "testbenches/system/platform/lt_platform.h"

#include <algorithm>
#include <cstring>

namespace rnic::platform_test {

namespace {

constexpr std::uint32_t first_vector = 0x40;
constexpr int memory_latency_ns = 60;

}  // namespace

// ---------------------------------------------------------------- memory, interrupts, bus

lt_memory::lt_memory(const sc_core::sc_module_name& name)
    : sc_core::sc_module(name), socket("socket"), bytes(map::memory_bytes) {
  socket.register_b_transport(this, &lt_memory::transport);
}

void lt_memory::transport(::tlm::tlm_generic_payload& p, sc_core::sc_time& delay) {
  if (p.get_address() >= bytes.size() || p.get_data_length() > bytes.size() - p.get_address()) {
    p.set_response_status(::tlm::TLM_ADDRESS_ERROR_RESPONSE);
    return;
  }
  std::uint8_t* const at = bytes.data() + p.get_address();
  if (p.is_read()) {
    ++reads;
    std::memcpy(p.get_data_ptr(), at, p.get_data_length());
  } else if (p.is_write()) {
    ++writes;
    if (write_time != sc_core::SC_ZERO_TIME) sc_core::wait(write_time);
    std::memcpy(at, p.get_data_ptr(), p.get_data_length());
    written.notify(sc_core::SC_ZERO_TIME);
  }
  delay += sc_core::sc_time(memory_latency_ns, sc_core::SC_NS);
  p.set_response_status(::tlm::TLM_OK_RESPONSE);
}

lt_interrupts::lt_interrupts(const sc_core::sc_module_name& name) : sc_core::sc_module(name), socket("socket") {
  socket.register_b_transport(this, &lt_interrupts::transport);
}

void lt_interrupts::transport(::tlm::tlm_generic_payload& p, sc_core::sc_time&) {
  std::uint32_t data = 0;
  if (!p.is_write() || p.get_data_length() != sizeof data) {
    p.set_response_status(::tlm::TLM_COMMAND_ERROR_RESPONSE);
    return;
  }
  std::memcpy(&data, p.get_data_ptr(), sizeof data);
  ++messages;
  ++pending[data];
  raised.notify(sc_core::SC_ZERO_TIME);
  p.set_response_status(::tlm::TLM_OK_RESPONSE);
}

lt_bus::lt_bus(const sc_core::sc_module_name& name)
    : sc_core::sc_module(name),
      from_processor("from_processor"),
      from_device("from_device"),
      to_memory("to_memory"),
      to_window("to_window"),
      to_interrupts("to_interrupts"),
      to_config("to_config") {
  from_processor.register_b_transport(this, &lt_bus::transport);
  from_device.register_b_transport(this, &lt_bus::transport);
}

void lt_bus::transport(::tlm::tlm_generic_payload& p, sc_core::sc_time& delay) {
  const std::uint64_t address = p.get_address();
  const auto inside = [address](std::uint64_t base, std::uint64_t bytes) { return address - base < bytes; };
  const auto pass = [&](auto& socket, std::uint64_t base) {
    p.set_address(address - base);
    socket->b_transport(p, delay);
    p.set_address(address);
  };
  if (inside(map::memory, map::memory_bytes)) return pass(to_memory, map::memory);
  if (inside(map::window, map::window_bytes)) return pass(to_window, 0);
  if (inside(map::config, map::config_bytes)) return pass(to_config, map::config);
  if (inside(map::interrupts, map::interrupts_bytes)) return pass(to_interrupts, map::interrupts);
  p.set_response_status(::tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

// ---------------------------------------------------------------- processor

lt_processor::lt_processor(const sc_core::sc_module_name& name, lt_memory& memory, lt_interrupts& interrupts)
    : sc_core::sc_module(name), socket("socket"), memory_(memory), interrupts_(interrupts) {}

::tlm::tlm_response_status lt_processor::access(::tlm::tlm_command command, std::uint64_t address, void* data,
                                                unsigned bytes) {
  ::tlm::tlm_generic_payload p;
  p.set_command(command);
  p.set_address(address);
  p.set_data_ptr(static_cast<unsigned char*>(data));
  p.set_data_length(bytes);
  p.set_streaming_width(bytes);
  sc_core::sc_time delay;
  socket->b_transport(p, delay);
  sc_core::wait(delay);
  return p.get_response_status();
}

std::uint32_t lt_processor::config_read32(std::uint16_t offset) {
  std::uint32_t value = 0;
  access(::tlm::TLM_READ_COMMAND, map::config + offset, &value, 4);
  return value;
}
void lt_processor::config_write32(std::uint16_t offset, std::uint32_t value) {
  access(::tlm::TLM_WRITE_COMMAND, map::config + offset, &value, 4);
}

std::uint64_t lt_processor::bar(unsigned index) {
  const auto reg = static_cast<std::uint16_t>(0x10 + 4 * index);
  return (std::uint64_t{config_read32(static_cast<std::uint16_t>(reg + 4))} << 32 | config_read32(reg)) & ~15ull;
}

std::uint16_t lt_processor::capability(std::uint8_t id) {
  for (unsigned at = config_read32(0x34) & 0xfc; at != 0;) {
    const std::uint32_t header = config_read32(static_cast<std::uint16_t>(at));
    if ((header & 0xff) == id) return static_cast<std::uint16_t>(at);
    at = header >> 8 & 0xfc;
  }
  return 0;
}

void lt_processor::enumerate() {
  std::uint64_t next = map::window;
  for (const std::uint16_t reg : {std::uint16_t{0x10}, std::uint16_t{0x18}}) {
    config_write32(reg, 0xffff'ffff);
    const std::uint64_t bytes = (~std::uint64_t{config_read32(reg) & ~15u} + 1) & 0xffff'ffff;
    next = (next + bytes - 1) / bytes * bytes;
    config_write32(reg, static_cast<std::uint32_t>(next));
    config_write32(static_cast<std::uint16_t>(reg + 4), static_cast<std::uint32_t>(next >> 32));
    next += bytes;
  }
  const auto control = static_cast<std::uint16_t>(capability(0x10) + 8);
  config_write32(control, (config_read32(control) & 0x8f1f) | 1u << 5 | 2u << 12);  // 256 and 512 bytes
  config_write32(0x04, 0x0006);                                                     // memory space, bus master
}

std::uint32_t lt_processor::mmio_read32(unsigned index, std::uint64_t offset) {
  std::uint32_t value = 0;
  access(::tlm::TLM_READ_COMMAND, bar(index) + offset, &value, 4);
  return __builtin_bswap32(value);
}
void lt_processor::mmio_write32(unsigned index, std::uint64_t offset, std::uint32_t value) {
  value = __builtin_bswap32(value);
  access(::tlm::TLM_WRITE_COMMAND, bar(index) + offset, &value, 4);
}
void lt_processor::mmio_write64(unsigned index, std::uint64_t offset, std::uint64_t value) {
  value = __builtin_bswap64(value);
  access(::tlm::TLM_WRITE_COMMAND, bar(index) + offset, &value, 8);
}
void lt_processor::mmio_write_combined(unsigned index, std::uint64_t offset, const void* from, std::size_t bytes) {
  std::vector<std::uint8_t> copy(bytes);
  std::memcpy(copy.data(), from, bytes);
  access(::tlm::TLM_WRITE_COMMAND, bar(index) + offset, copy.data(), static_cast<unsigned>(bytes));
}

host_driver::bus_if::dma_memory lt_processor::allocate(std::size_t bytes, std::size_t alignment) {
  alignment = std::max<std::size_t>(alignment, 4096);
  const std::uint64_t offset = (allocated_ + alignment - 1) / alignment * alignment;
  if (offset + bytes > map::memory_bytes) return {};
  allocated_ = offset + bytes;
  return {map::memory + offset, memory_.bytes.data() + offset, bytes};
}

void lt_processor::spend_ps(std::uint64_t ps) {
  if (ps != 0) sc_core::wait(sc_core::sc_time::from_value(ps));
}

/// Wakes for any write, which is good enough for who looks again.
bool lt_processor::wait_for_write(std::uint64_t address, std::size_t bytes, std::uint64_t timeout_ps) {
  const std::uint64_t offset = address - map::memory;
  const std::vector<std::uint8_t> before(memory_.bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                                         memory_.bytes.begin() + static_cast<std::ptrdiff_t>(offset + bytes));
  const std::uint64_t deadline = timeout_ps == 0 ? ~std::uint64_t{0} : now_ps() + timeout_ps;
  ended_ = 0;
  while (std::equal(before.begin(), before.end(), memory_.bytes.data() + offset)) {
    if (ended_ - address < bytes || now_ps() >= deadline) return false;
    if (deadline == ~std::uint64_t{0})
      sc_core::wait(memory_.written);
    else
      sc_core::wait(sc_core::sc_time::from_value(deadline - now_ps()), memory_.written);
  }
  return true;
}

void lt_processor::end_wait(std::uint64_t address) {
  ended_ = address;
  memory_.written.notify(sc_core::SC_ZERO_TIME);
}

void lt_interrupts::wire(unsigned vector) {
  ++pending[first_vector + vector];
  raised.notify(sc_core::SC_ZERO_TIME);
}

bool lt_processor::wait_interrupt(unsigned vector, std::uint64_t timeout_ps) {
  const std::uint64_t deadline = timeout_ps == 0 ? ~std::uint64_t{0} : now_ps() + timeout_ps;
  unsigned& pending = interrupts_.pending[first_vector + vector];
  while (pending == 0) {
    if (now_ps() >= deadline) return false;
    if (deadline == ~std::uint64_t{0})
      sc_core::wait(interrupts_.raised);
    else
      sc_core::wait(sc_core::sc_time::from_value(deadline - now_ps()), interrupts_.raised);
  }
  pending = 0;
  return true;
}

bool lt_processor::enable_interrupt(unsigned vector) {
  const std::uint16_t msix = capability(0x11);
  const std::uint32_t control = config_read32(msix), table = config_read32(static_cast<std::uint16_t>(msix + 4));
  if (msix == 0 || vector > (control >> 16 & 0x7ff)) return false;
  std::uint32_t entry[] = {static_cast<std::uint32_t>(map::interrupts) + 4 * vector, 0, first_vector + vector, 0};
  access(::tlm::TLM_WRITE_COMMAND, bar(table & 7) + (table & ~7u) + 16 * vector, entry, sizeof entry);
  config_write32(msix, (control & ~(1u << 30)) | 1u << 31);
  return true;
}

lt_platform::lt_platform(const sc_core::sc_module_name& name)
    : sc_core::sc_module(name),
      memory("memory"),
      interrupts("interrupts"),
      bus("bus"),
      processor("processor", memory, interrupts) {
  processor.socket.bind(bus.from_processor);
  bus.to_memory.bind(memory.socket);
  bus.to_interrupts.bind(interrupts.socket);
}

}  // namespace rnic::platform_test
