// SPDX-License-Identifier: Apache-2.0
// The driver shim on a bus that a test listens to, with completions that the test writes itself: what the shim does
// with a queue, without a device that uses it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <vector>

#include "host_driver/device.h"
#include "host_driver/hosts/two_nodes.h"
#include "model/abi/bar_layout.h"
#include "model/abi/queue_entries.h"

namespace rnic::driver_test {

/// Passes everything on; remembers stores to BAR 2 and, while closed, keeps those of work and completion queues from
/// the device. Commands go on, and their events.
class tapped_bus : public host_driver::bus_if {
 public:
  struct store {
    std::uint64_t offset = 0;
    std::vector<std::uint8_t> bytes;
    std::uint32_t word(std::size_t at = 0) const { return abi::load32(bytes.data(), at); }
  };
  explicit tapped_bus(host_driver::bus_if& to) : to_(to) {}
  std::vector<store> stores;
  bool closed = false;

  std::uint32_t config_read32(std::uint16_t offset) override { return to_.config_read32(offset); }
  void config_write32(std::uint16_t offset, std::uint32_t value) override { to_.config_write32(offset, value); }
  std::uint32_t mmio_read32(unsigned bar, std::uint64_t offset) override { return to_.mmio_read32(bar, offset); }
  void mmio_write32(unsigned bar, std::uint64_t offset, std::uint32_t value) override {
    std::uint8_t bytes[4];
    abi::store32(bytes, 0, value);
    if (keep(bar, offset, bytes, 4)) to_.mmio_write32(bar, offset, value);
  }
  void mmio_write64(unsigned bar, std::uint64_t offset, std::uint64_t value) override {
    std::uint8_t bytes[8];
    abi::store64(bytes, 0, value);
    if (keep(bar, offset, bytes, 8)) to_.mmio_write64(bar, offset, value);
  }
  void mmio_write_combined(unsigned bar, std::uint64_t offset, const void* from, std::size_t bytes) override {
    if (keep(bar, offset, from, bytes)) to_.mmio_write_combined(bar, offset, from, bytes);
  }
  dma_memory allocate(std::size_t bytes, std::size_t alignment) override { return to_.allocate(bytes, alignment); }
  void release(const dma_memory& memory) override { to_.release(memory); }
  void spend_ps(std::uint64_t ps) override { to_.spend_ps(ps); }
  std::uint64_t now_ps() const override { return to_.now_ps(); }
  bool wait_for_write(std::uint64_t address, std::size_t bytes, std::uint64_t timeout_ps) override {
    return to_.wait_for_write(address, bytes, timeout_ps);
  }
  void end_wait(std::uint64_t address) override { to_.end_wait(address); }
  bool wait_interrupt(unsigned vector, std::uint64_t timeout_ps) override {
    return to_.wait_interrupt(vector, timeout_ps);
  }
  bool enable_interrupt(unsigned vector) override { return to_.enable_interrupt(vector); }
  bool enable_line() override { return to_.enable_line(); }

 private:
  bool keep(unsigned bar, std::uint64_t offset, const void* from, std::size_t bytes) {
    if (bar != 2) return true;
    store s{offset, std::vector<std::uint8_t>(bytes)};
    std::memcpy(s.bytes.data(), from, bytes);
    stores.push_back(std::move(s));
    return !closed || (offset & 0xfff) >= abi::uar::eq_doorbell;
  }
  host_driver::bus_if& to_;
};

/// An opened device with one protection domain and a registered page.
struct shim {
  shim(hosts::two_nodes& system, host_driver::config cfg) : bus(*system.a().bus), device(bus, cfg) {
    hosts::require(system.a().device->close(), "close");
    hosts::require(device.open(), "open");
    at.device = &device;
    at.bus = &bus;
    at.pd = pd = device.alloc_pd();
    page = hosts::make_buffer(at, 4096);
  }
  host_driver::queue_pair* qp(ibv_qp_cap cap, host_driver::completion_queue* cq, bool all_signalled = false,
                              ibv_qp_type type = IBV_QPT_RC) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = type;
    init.cap = cap;
    init.sq_sig_all = all_signalled ? 1 : 0;
    host_driver::queue_pair* q = device.create_qp(pd, &init);
    if (q == nullptr) throw std::runtime_error("create_qp");
    return q;
  }
  ibv_sge sge(std::uint32_t bytes = 64) const { return {page.address(), bytes, page.region->lkey}; }

  tapped_bus bus;
  host_driver::device device;
  hosts::endpoint at;
  host_driver::protection_domain* pd = nullptr;
  hosts::buffer page;
};

/// Runs `body` with such a device.
inline void with_shim(const std::function<void(shim&)>& body,
                      const std::function<void(host_driver::config&)>& change = {}) {
  hosts::two_nodes_config c;
  c.node = hosts::make_node_config("connectx3pro_40g");
  hosts::two_nodes system(c);
  system.run(
      [&] {
        host_driver::config cfg = c.node.driver;
        if (change) change(cfg);
        shim s(system, cfg);
        body(s);
        hosts::require(s.device.close(), "close");
        hosts::require(system.a().device->open(), "open");
      },
      [] {});
}

/// Requests in a chain, as a program posts them.
template <class Wr>
struct chain {
  explicit chain(std::size_t many, const ibv_sge* list = nullptr, int count = 0) : wrs(many) {
    for (std::size_t i = 0; i < many; ++i) {
      wrs[i].wr_id = i;
      wrs[i].next = i + 1 < many ? &wrs[i + 1] : nullptr;
      wrs[i].sg_list = const_cast<ibv_sge*>(list);
      wrs[i].num_sge = count;
    }
  }
  Wr& operator[](std::size_t i) { return wrs[i]; }
  Wr* bad = nullptr;
  std::vector<Wr> wrs;
};
struct sends : chain<ibv_send_wr> {
  explicit sends(std::size_t many, const ibv_sge* list = nullptr, int count = 0, unsigned flags = 0)
      : chain(many, list, count) {
    for (ibv_send_wr& w : wrs) {
      w.opcode = IBV_WR_SEND;
      w.send_flags = flags;
    }
  }
  int post(shim& s, ibv_qp* qp) { return s.device.post_send(qp, wrs.data(), &bad); }
};
struct receives : chain<ibv_recv_wr> {
  using chain::chain;
  int post(shim& s, ibv_qp* qp) { return s.device.post_recv(qp, wrs.data(), &bad); }
};

/// Writes the completion of index `n` of the queue, as the device would (adapter data plane A.5).
struct forged_completions {
  forged_completions(host_driver::completion_queue& to) : cq(to) {}
  void send(const host_driver::queue_pair& qp, std::uint32_t wqe_index) { put(qp, wqe_index, 0x40 | 0x0a, true); }
  void receive(const host_driver::queue_pair& qp) { put(qp, 0, 1, true); }
  /// One whose owner bit says that it is the device's still.
  void unfinished(const host_driver::queue_pair& qp) { put(qp, 0, 1, false); }
  host_driver::completion_queue& cq;
  std::uint32_t next = 0;

 private:
  void put(const host_driver::queue_pair& qp, std::uint32_t wqe_index, std::uint8_t opcode, bool valid) {
    std::uint8_t* e = cq.entry(next);
    std::memset(e, 0, 31);
    abi::store32(e, 0, qp.qp_num);
    abi::store32(e, 0x14, 64);
    abi::store16(e, 0x18, static_cast<std::uint16_t>(wqe_index));
    const bool parity = ((next & cq.entries) != 0) == valid;
    e[0x1f] = static_cast<std::uint8_t>(opcode | (parity ? 0x80 : 0));
    if (valid) ++next;
  }
};

}  // namespace rnic::driver_test
