// SPDX-License-Identifier: Apache-2.0
// Loss, damage, receivers that are not ready and peers that are gone: everything arrives once, or says that it did not.
#include <gtest/gtest.h>

#include <cstring>

#include "model/wire/icrc.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using hosts::connection_options;
using fate = fabric::cable_fault_if::fate;
using wire::operation;

/// Loses or damages the `nth` (from 1) packet with one of some operations.
class packet_fault : public fabric::cable_fault_if {
 public:
  enum class kind : std::uint8_t { lose, flip_payload_bit, flip_under_bad_fcs };
  void arm(operation which, unsigned nth, kind what = kind::lose) {
    which_ = which;
    left_ = nth;
    what_ = what;
    hits = 0;
  }
  void cut() { cut_ = true; }

  fate on_frame(unsigned, payload::frame& f) override {
    if (cut_) return fate::lose;
    wire::packet p;
    if (wire::decode(f.data(), f.length, p) != wire::decode_error::none) return fate::pass;
    if (left_ == 0 || wire::operation_of(p.bth.opcode) != which_ || --left_ != 0) return fate::pass;
    ++hits;
    if (what_ == kind::lose) return fate::lose;
    f.data()[p.payload_length != 0 ? p.payload_offset + p.payload_length / 2 : p.icrc_offset] ^= 0x10;
    if (what_ == kind::flip_payload_bit) f.fcs = wire::ethernet_fcs(f.data(), f.length);
    return fate::pass;
  }
  unsigned hits = 0;

 private:
  operation which_ = operation::acknowledge;
  kind what_ = kind::lose;
  unsigned left_ = 0;
  bool cut_ = false;
};

connection_options fast_retry() {
  connection_options o;
  o.mtu = 1024;
  o.ack_timeout = 6;  // 262 us
  return o;
}

/// A run of messages in flight at once, each with a place of its own.
class burst {
 public:
  static constexpr unsigned messages = 8;
  static constexpr std::uint32_t slot = 4096;

  explicit burst(link& l)
      : link_(l),
        near_(hosts::make_buffer(l.a.at, messages * slot)),
        far_(hosts::make_buffer(l.b.at, messages * slot)) {}

  /// Posts all, waits for all, and compares all; on `lane`, a sibling of the link.
  void run(const link& lane, ibv_wr_opcode verb, std::uint32_t size) {
    const bool reads = verb == IBV_WR_RDMA_READ, receives = verb != IBV_WR_RDMA_WRITE && !reads;
    fill_random(near_.at(), messages * slot, random_);
    fill_random(far_.at(), messages * slot, random_);
    hosts::buffer& from = reads ? far_ : near_;
    hosts::buffer& to = reads ? near_ : far_;
    std::vector<std::uint8_t> expected(to.at(), to.at() + messages * slot);
    for (unsigned i = 0; i < messages; ++i) {
      std::memcpy(expected.data() + i * slot, from.at(i * slot), size);
      if (receives) post_receive(lane.b, {{far_.address(i * slot), slot, far_.region->lkey}}, i);
    }
    for (unsigned i = 0; i < messages; ++i) {
      request r;
      r.opcode = verb;
      r.id = i;
      r.immediate = i + 1000;
      r.sges = {{near_.address(i * slot), size, near_.region->lkey}};
      r.remote = far_.address(i * slot);
      r.rkey = far_.region->rkey;
      post(lane.a, r);
    }
    for (unsigned i = 0; i < messages; ++i) {
      const ibv_wc wc = lane.a.wait_send();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, i);
    }
    for (unsigned i = 0; receives && i < messages; ++i) {
      const ibv_wc wc = lane.b.wait_receive();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, i);
      ASSERT_EQ(wc.byte_len, size);
      if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) {
        ASSERT_EQ(__builtin_bswap32(wc.imm_data), i + 1000);
      }
    }
    link_.b.at.bus->spend_ps(2 * ms);  // a message that came twice would show now
    ASSERT_TRUE(lane.a.silent());
    ASSERT_TRUE(lane.b.silent()) << "a message was received twice";
    ASSERT_EQ(std::memcmp(to.at(), expected.data(), expected.size()), 0);
  }

 private:
  link& link_;
  hosts::buffer near_, far_;
  std::mt19937_64 random_{5};
};

struct loss_case {
  ibv_wr_opcode verb;
  std::uint32_t size;
  operation lost;
};

const loss_case loss_cases[] = {
    {IBV_WR_RDMA_WRITE, 4000, operation::write_first},
    {IBV_WR_RDMA_WRITE, 4000, operation::write_middle},
    {IBV_WR_RDMA_WRITE, 4000, operation::write_last},
    {IBV_WR_RDMA_WRITE, 1000, operation::write_only},
    {IBV_WR_RDMA_WRITE, 4000, operation::acknowledge},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 4000, operation::write_last_immediate},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 100, operation::write_only_immediate},
    {IBV_WR_RDMA_WRITE_WITH_IMM, 100, operation::acknowledge},
    {IBV_WR_SEND, 4000, operation::send_first},
    {IBV_WR_SEND, 4000, operation::send_middle},
    {IBV_WR_SEND, 4000, operation::send_last},
    {IBV_WR_SEND, 64, operation::send_only},
    {IBV_WR_SEND, 4000, operation::acknowledge},
    {IBV_WR_SEND_WITH_IMM, 4000, operation::send_last_immediate},
    {IBV_WR_SEND_WITH_IMM, 64, operation::send_only_immediate},
    {IBV_WR_RDMA_READ, 4000, operation::read_request},
    {IBV_WR_RDMA_READ, 4000, operation::read_response_first},
    {IBV_WR_RDMA_READ, 4000, operation::read_response_middle},
    {IBV_WR_RDMA_READ, 4000, operation::read_response_last},
    {IBV_WR_RDMA_READ, 1000, operation::read_response_only},
};

void every_loss(packet_fault::kind what, const std::string& counter) {
  hosts::two_nodes system(default_system());
  packet_fault fault;
  system.cable().set_fault(&fault);
  run(system, [&] {
    connection_options options = fast_retry();
    link first = make_link(system, options);
    burst b(first);
    link lane = first;
    for (const loss_case& c : loss_cases) {
      for (unsigned nth = 1; nth <= burst::messages; ++nth) {
        // Acknowledgements are coalesced: how many there are is the responder's business, the first is always there.
        if (c.lost == operation::acknowledge && nth > 1) break;
        SCOPED_TRACE("verb " + std::to_string(c.verb) + ", lost operation " +
                     std::to_string(static_cast<unsigned>(c.lost)) + " number " + std::to_string(nth));
        const std::uint64_t before = counter.empty() ? 0 : counted(system, counter);
        fault.arm(c.lost, nth, what);
        b.run(lane, c.verb, c.size);
        if (::testing::Test::HasFatalFailure()) return;
        ASSERT_EQ(fault.hits, 1U) << "the packet to be lost was not sent";
        if (!counter.empty()) {
          ASSERT_EQ(counted(system, counter), before + 1) << counter;
        }
      }
    }
  });
  EXPECT_GT(counted(system, "retransmissions"), 10U);
}

TEST(Adversity, EveryKindOfPacketLostOnce) { every_loss(packet_fault::kind::lose, ""); }
TEST(Adversity, BitFlippedUnderRightFcs) { every_loss(packet_fault::kind::flip_payload_bit, "drop.bad_icrc"); }
TEST(Adversity, BitFlippedOnTheCable) { every_loss(packet_fault::kind::flip_under_bad_fcs, "drop_fcs"); }

TEST(Adversity, ReceiverNotReadyWaits) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    link l = make_link(system, fast_retry());
    hosts::buffer from = hosts::make_buffer(l.a.at, 8192), to = hosts::make_buffer(l.b.at, 8192);
    std::mt19937_64 random(6);
    for (const ibv_wr_opcode verb : {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM}) {
      fill_random(from.at(), 8192, random);
      request r;
      r.opcode = verb;
      r.sges = {{from.address(), 5000, from.region->lkey}};
      r.remote = to.address();
      r.rkey = to.region->rkey;
      for (r.id = 0; r.id < 3; ++r.id) post(l.a, r);
      l.b.at.bus->spend_ps(20 * ms);
      ASSERT_TRUE(l.a.silent()) << "completed before it was received";
      ASSERT_TRUE(l.b.silent());
      for (unsigned i = 0; i < 3; ++i) {
        post_receive(l.b, {{to.address(), 8192, to.region->lkey}}, i);
        const ibv_wc got = l.b.wait_receive();
        ASSERT_EQ(got.status, IBV_WC_SUCCESS);
        ASSERT_EQ(got.wr_id, i);
        ASSERT_EQ(got.byte_len, 5000U);
        ASSERT_EQ(std::memcmp(from.at(), to.at(), 5000), 0);
        const ibv_wc sent = l.a.wait_send();
        ASSERT_EQ(sent.status, IBV_WC_SUCCESS);
        ASSERT_EQ(sent.wr_id, i);
      }
      l.b.at.bus->spend_ps(2 * ms);
      ASSERT_TRUE(l.a.silent() && l.b.silent());
    }
  });
  EXPECT_GT(counted(system, "rnr_naks"), 10U);
}

TEST(Adversity, ReceiverNeverReady) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options options = fast_retry();
    options.rnr_retries = 3;
    link l = make_link(system, options);
    hosts::buffer from = hosts::make_buffer(l.a.at, 4096);
    request r;
    r.opcode = IBV_WR_SEND;
    r.sges = {{from.address(), 100, from.region->lkey}};
    for (r.id = 0; r.id < 3; ++r.id) post(l.a, r);
    const ibv_wc failed = l.a.wait_send();
    EXPECT_EQ(failed.status, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(failed.wr_id, 0U);
    for (unsigned i = 1; i < 3; ++i) {
      const ibv_wc wc = l.a.wait_send();
      EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(wc.wr_id, i);
    }
    EXPECT_EQ(l.a.state(), IBV_QPS_ERR);
    EXPECT_EQ(l.b.state(), IBV_QPS_RTS) << "the responder has done nothing wrong";
  });
  EXPECT_EQ(counted(system, "rnr_naks"), 4U) << "the first and three retries";
}

TEST(Adversity, PeerGone) {
  hosts::two_nodes system(default_system());
  packet_fault fault;
  system.cable().set_fault(&fault);
  run(system, [&] {
    connection_options options = fast_retry();
    options.retries = 3;
    link l = make_link(system, options);
    hosts::buffer from = hosts::make_buffer(l.a.at, 4096), to = hosts::make_buffer(l.b.at, 4096);
    request r;
    r.sges = {{from.address(), 3000, from.region->lkey}};
    r.remote = to.address();
    r.rkey = to.region->rkey;
    post(l.a, r);
    ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    fault.cut();
    const std::uint64_t start = l.a.at.bus->now_ps();
    post_receive(l.a, {{from.address(), 100, from.region->lkey}}, 77);
    for (r.id = 1; r.id <= 4; ++r.id) post(l.a, r);
    r.opcode = IBV_WR_RDMA_READ;
    post(l.a, r);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_RETRY_EXC_ERR);
    // IBA 9.7.6.1.3: a timeout lasts between 1 and 4 times 4.096 us * 2^n; the first transmission and 3 retries.
    const std::uint64_t took = l.a.at.bus->now_ps() - start;
    EXPECT_GE(took, 4 * 262 * us);
    EXPECT_LE(took, 4 * 4 * 263 * us);
    for (unsigned i = 2; i <= 5; ++i) {
      const ibv_wc wc = l.a.wait_send();
      EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(wc.wr_id, i);
    }
    const ibv_wc received = l.a.wait_receive();
    EXPECT_EQ(received.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(received.wr_id, 77U);
    r.id = 6;
    post(l.a, r);  // posted to a queue pair in error
    const ibv_wc late = l.a.wait_send();
    EXPECT_EQ(late.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(late.wr_id, 6U);
    EXPECT_EQ(l.a.state(), IBV_QPS_ERR);
    EXPECT_TRUE(l.a.silent());
  });
}

}  // namespace
}  // namespace rnic::system_test
