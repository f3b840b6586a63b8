// SPDX-License-Identifier: Apache-2.0
// Requests on memory keys between two hosts, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {

inline constexpr std::uint32_t region_bytes = 16384;
inline constexpr unsigned all_remote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

inline hosts::connection_options quick() {
  hosts::connection_options o;
  o.mtu = 1024;
  o.ack_timeout = 8;
  return o;
}

/// Host a uses memory of host b: regions that windows may lie on, and work requests on keys.
class shop {
 public:
  explicit shop(hosts::two_nodes& system, const hosts::connection_options& options = quick()) : options_(options) {
    options_.access = static_cast<int>(all_remote);
    l = make_link(system, options_);
    near = hosts::make_buffer(l.a.at, region_bytes);
    far = region(l.b.at, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    fill_random(near.at(), region_bytes, random);
    fill_random(far.at(), region_bytes, random);
  }

  static hosts::buffer region(const hosts::endpoint& e, int access) {
    hosts::buffer b;
    b.memory = e.device->allocate_buffer(region_bytes);
    b.region = e.device->reg_mr(e.pd, b.memory.pointer, region_bytes, access);
    EXPECT_NE(b.region, nullptr);
    return b;
  }
  link sibling(bool kernel = false) {
    hosts::connection_options o = options_;
    o.kernel = kernel;
    return make_sibling(l, o, psn_ += 1000);
  }
  host_driver::memory_window* window(ibv_mw_type type) {
    host_driver::memory_window* const w = l.b.dev().alloc_mw(l.b.at.pd, type);
    EXPECT_NE(w, nullptr);
    return w;
  }
  ibv_send_wr binding(ibv_mw& mw, std::uint32_t key, std::uint64_t offset, std::uint64_t bytes, unsigned access) const {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = &mw;
    wr.bind_mw.rkey = key;
    wr.bind_mw.bind_info = {far.region, far.address(offset), bytes, access};
    return wr;
  }
  /// Posts one request and gives its completion.
  static ibv_wc run(const side& s, ibv_send_wr& wr) {
    ibv_send_wr* bad = nullptr;
    hosts::require(s.dev().post_send(s.qp, &wr, &bad), "post_send");
    return s.wait_send();
  }
  /// Binds a type 2 window of host b to `s`'s queue pair; its new key.
  std::uint32_t bind(const side& s, ibv_mw& mw, std::uint64_t offset, std::uint64_t bytes, unsigned access) const {
    const std::uint32_t key = ibv_inc_rkey(mw.rkey);
    ibv_send_wr wr = binding(mw, key, offset, bytes, access);
    const ibv_wc wc = run(s, wr);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);
    mw.rkey = key;
    return key;
  }
  static ibv_wc invalidate(const side& s, std::uint32_t key) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = key;
    return run(s, wr);
  }
  static void send_invalidate(const side& s, std::vector<ibv_sge> sges, std::uint32_t key) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = key;
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    ibv_send_wr* bad = nullptr;
    hosts::require(s.dev().post_send(s.qp, &wr, &bad), "post_send");
  }

  /// RDMA of `bytes` between near + `at` and `remote`; its status.
  ibv_wc_status rdma(const link& via, ibv_wr_opcode verb, std::uint64_t at, std::uint64_t remote, std::uint32_t key,
                     std::uint32_t bytes) const {
    request r;
    r.opcode = verb;
    r.sges = {{near.address(at), bytes, near.region->lkey}};
    r.remote = remote;
    r.rkey = key;
    post(via.a, r);
    return via.a.wait_send().status;
  }
  void settle() const { l.b.at.bus->spend_ps(20 * us); }

  /// What is in far now stays there while `via` tries in vain to write and read `bytes` at `remote`.
  void refused(std::uint64_t remote, std::uint32_t key, std::uint32_t bytes) {
    settle();
    const std::vector<std::uint8_t> before(far.at(), far.at() + region_bytes);
    const std::vector<std::uint8_t> mine(near.at(), near.at() + region_bytes);
    for (const ibv_wr_opcode verb : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ})
      refused_on(sibling(), verb, remote, key, bytes);
    EXPECT_EQ(std::memcmp(far.at(), before.data(), region_bytes), 0);
    EXPECT_EQ(std::memcmp(near.at(), mine.data(), region_bytes), 0);
  }
  void refused_on(const link& via, ibv_wr_opcode verb, std::uint64_t remote, std::uint32_t key, std::uint32_t bytes) {
    EXPECT_EQ(rdma(via, verb, 0, remote, key, bytes), IBV_WC_REM_ACCESS_ERR);
    settle();
    EXPECT_EQ(via.b.state(), IBV_QPS_ERR);
  }
  void receives(const link& via, std::uint64_t id = 0) const {
    post_receive(via.b, {{inbox().address(), region_bytes, inbox().region->lkey}}, id);
  }
  const hosts::buffer& inbox() const {
    if (inbox_.region == nullptr) inbox_ = hosts::make_buffer(l.b.at, region_bytes);
    return inbox_;
  }

  link l;
  hosts::buffer near, far;
  std::mt19937_64 random{11};

 private:
  hosts::connection_options options_;
  mutable hosts::buffer inbox_;
  std::uint32_t psn_ = 0;
};

template <class Body>
void in_shop(Body body, const hosts::two_nodes_config& config = default_system()) {
  hosts::two_nodes system(config);
  run(system, [&] {
    shop s(system);
    body(s);
  });
}

/// Pages of host b for fast registration, in no order.
struct patchwork {
  explicit patchwork(const shop& s) : patchwork(s.l.b.at) {}
  explicit patchwork(const hosts::endpoint& at) : owner(at) {
    memory = owner.device->allocate_buffer(64 * 4096);
    std::memset(memory.pointer, 0x33, 64 * 4096);
    region = owner.device->alloc_fast_reg_mr(owner.pd, 32);
    EXPECT_NE(region, nullptr);
  }
  std::uint8_t* byte(std::uint64_t offset) const {
    return memory.pointer + std::size_t{order[(first + offset) / 4096]} * 4096 + (first + offset) % 4096;
  }
  /// A request that maps the pages `order` from `iova` on, without the first `skip` bytes.
  host_driver::fast_register_wr registration(std::vector<unsigned> pages, std::uint64_t skip, std::uint64_t length,
                                             int access) {
    order = std::move(pages);
    first = skip;
    std::vector<std::uint64_t> addresses;
    for (const unsigned p : order) addresses.push_back(memory.bus_address + p * 4096ull);
    hosts::require(owner.device->set_fast_reg_pages(
                       region, addresses.data(), static_cast<std::uint32_t>(addresses.size()), 12, iova + skip, length),
                   "set_fast_reg_pages");
    host_driver::fast_register_wr wr;
    wr.region = region;
    wr.key = ibv_inc_rkey(region->rkey);
    wr.access = access;
    wr.send_flags = IBV_SEND_SIGNALED;
    return wr;
  }
  ibv_wc register_on(const side& s, host_driver::fast_register_wr& wr) {
    const ibv_wc wc = shop::run(s, wr);
    if (wc.status == IBV_WC_SUCCESS) region->rkey = region->lkey = wr.key;
    return wc;
  }
  static constexpr std::uint64_t iova = 0x7700'0000'0000;
  hosts::endpoint owner;
  host_driver::bus_if::dma_memory memory;
  host_driver::memory_region* region = nullptr;
  std::vector<unsigned> order;
  std::uint64_t first = 0;
};

/// Loses the next packet with an operation.
class loss : public fabric::cable_fault_if {
 public:
  void arm(wire::operation which) {
    armed_ = true;
    which_ = which;
  }
  fabric::cable_fault_if::fate on_frame(unsigned, payload::frame& f) override {
    wire::packet p;
    if (!armed_ || wire::decode(f.data(), f.length, p) != wire::decode_error::none)
      return fabric::cable_fault_if::fate::pass;
    if (wire::operation_of(p.bth.opcode) != which_) return fabric::cable_fault_if::fate::pass;
    armed_ = false;
    ++hits;
    return fabric::cable_fault_if::fate::lose;
  }
  unsigned hits = 0;

 private:
  bool armed_ = false;
  wire::operation which_ = wire::operation::acknowledge;
};

}  // namespace rnic::system_test
