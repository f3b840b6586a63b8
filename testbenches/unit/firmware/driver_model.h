// SPDX-License-Identifier: Apache-2.0
// What the tests need of a driver: mailboxes, the ICM layout, buffers with translations, contexts.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "firmware/firmware.h"
#include "model/abi/command_set.h"
#include "model/icm/contexts.h"
#include "testbenches/unit/firmware/fake_hardware.h"

namespace rnic {

/// ICM layout: entry sizes as QUERY_DEV_CAP of this device gives them, sizes as the default profile.
struct icm_layout {
  std::uint64_t cmpt = 0x0, rdmarc = 0x100000000, qpc = 0x110000000, altc = 0x114000000, dmpt = 0x118000000,
                mtt = 0x11a000000, srqc = 0x11b000000, cqc = 0x11b800000, mcg = 0x11c000000, auxc = 0x11c800000,
                eqc = 0x11c840000;
};

class driver_model {
 public:
  explicit driver_model(const firmware::firmware_config& config = {});

  abi::status run(abi::opcode op, std::uint32_t modifier = 0, std::uint8_t op_modifier = 0);
  abi::status run_immediate(abi::opcode op, std::uint64_t in, std::uint32_t modifier = 0, std::uint8_t op_modifier = 0);
  std::uint8_t* in() { return hw.host(in_address); }
  std::uint8_t* out() { return hw.host(out_address); }
  void clear_in();

  void fill_map(unsigned entries, unsigned log_pages, std::uint64_t icm_address = 0);
  std::vector<std::uint64_t> probe_chunks() const;  ///< the 45 chunks that are mapped before INIT_HCA
  void fill_init_hca();
  unsigned log_eqs = 7;
  bool windows = true;  ///< asks INIT_HCA for memory windows
  /// Everything up to a working device with EQ 8, as the recording does it.
  void bring_up();

  struct buffer {
    std::uint64_t mtt = 0, address = 0;
  };
  buffer make_buffer(std::uint64_t bytes);
  void fill_eq(unsigned log_size);
  buffer fill_cq(std::uint8_t eqn, unsigned log_size);
  void fill_mpt(std::uint32_t index, bool physical);
  void fill_qp(icm::service service, std::uint32_t qpn, std::uint32_t cqn, std::uint32_t optional = 0);
  abi::status make_rts(icm::service service, std::uint32_t qpn, std::uint32_t cqn);
  template <class T>
  void put(abi::field<T> f, std::uint64_t value, std::size_t base = 0) {
    abi::set(in() + base, f, static_cast<T>(value));
  }
  template <class T>
  T got(abi::field<T> f, std::size_t base = 0) {
    return abi::get(out() + base, f);
  }
  /// The hardware's context of an object, as it lies in ICM.
  template <class Context>
  Context hardware_context(std::uint64_t address) {
    Context c{};
    if (!hw.icm_read(address, &c, sizeof c)) throw std::runtime_error("context is not mapped");
    return c;
  }

  fake_hardware hw;
  firmware::firmware fw;
  icm_layout icm;
  std::uint64_t in_address, out_address;
  std::uint64_t result = 0;  ///< immediate result of the last command

 private:
  std::uint64_t next_mtt_ = 16 * 8;
};

}  // namespace rnic
