// SPDX-License-Identifier: Apache-2.0
// What a peer or a program may not do: the status both ends see, and memory that stays as it was.
#include <gtest/gtest.h>

#include <cstring>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using hosts::connection_options;

constexpr std::uint32_t guarded_bytes = 8192;

/// Two connections in one pair of protection domains: one commits the offence, the other must not notice.
class court {
 public:
  explicit court(hosts::two_nodes& system, connection_options options = {}) : options_(options), system_(system) {
    options_.mtu = 1024;
    options_.ack_timeout = 8;
    innocent_ = make_link(system, {});
    near_ = hosts::make_buffer(innocent_.a.at, guarded_bytes);
    far_ = hosts::make_buffer(innocent_.b.at, guarded_bytes);
    before_ = hosts::make_buffer(innocent_.b.at, guarded_bytes);
    std::mt19937_64 random(8);
    fill_random(near_.at(), guarded_bytes, random);
    fill_random(far_.at(), guarded_bytes, random);
    near_image_.assign(near_.at(), near_.at() + guarded_bytes);
    far_image_.assign(far_.at(), far_.at() + guarded_bytes);
  }

  link new_lane() { return make_sibling(innocent_, options_, psn_ += 1000); }
  request write(std::uint32_t bytes = 100) const {
    request r;
    r.sges = {{near_.address(), bytes, near_.region->lkey}};
    r.remote = far_.address();
    r.rkey = far_.region->rkey;
    return r;
  }

  /// `r` fails with `status` at the requester, which is in error then; what follows is flushed.
  void fails(const link& l, request r, ibv_wc_status status) {
    r.id = 1;
    post(l.a, r);
    r.id = 2;
    post(l.a, r);
    const ibv_wc first = l.a.wait_send(), second = l.a.wait_send();
    EXPECT_EQ(first.status, status);
    EXPECT_EQ(first.wr_id, 1U);
    EXPECT_EQ(second.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(second.wr_id, 2U);
    EXPECT_EQ(l.a.state(), IBV_QPS_ERR);
  }

  /// After a remote offence: the responder's queue pair is in error too, and told of it.
  void responder_stopped(const link& l, ibv_event_type event) {
    EXPECT_EQ(l.b.state(), IBV_QPS_ERR);
    ibv_async_event e{};
    ASSERT_TRUE(l.b.dev().get_async_event(&e, ms));
    while (e.event_type == IBV_EVENT_COMM_EST || e.event_type == IBV_EVENT_PORT_ACTIVE)
      ASSERT_TRUE(l.b.dev().get_async_event(&e, ms));
    EXPECT_EQ(e.event_type, event);
    EXPECT_EQ(e.element.qp, l.b.qp);
  }

  void nothing_changed() {
    innocent_.b.at.bus->spend_ps(10 * us);
    EXPECT_EQ(std::memcmp(near_.at(), near_image_.data(), guarded_bytes), 0);
    EXPECT_EQ(std::memcmp(far_.at(), far_image_.data(), guarded_bytes), 0);
    // The other connection still works, both ways.
    request r = write(1000);
    r.remote = before_.address();
    r.rkey = before_.region->rkey;
    post(innocent_.a, r);
    EXPECT_EQ(innocent_.a.wait_send().status, IBV_WC_SUCCESS);
    innocent_.b.at.bus->spend_ps(10 * us);
    EXPECT_EQ(std::memcmp(before_.at(), near_.at(), 1000), 0);
    EXPECT_EQ(innocent_.a.state(), IBV_QPS_RTS);
    EXPECT_EQ(innocent_.b.state(), IBV_QPS_RTS);
  }

  void restore() {
    innocent_.b.at.bus->spend_ps(10 * us);
    std::memcpy(near_.at(), near_image_.data(), guarded_bytes);
    std::memcpy(far_.at(), far_image_.data(), guarded_bytes);
  }

  link& innocent() { return innocent_; }
  hosts::buffer& near() { return near_; }
  hosts::buffer& far() { return far_; }
  hosts::two_nodes& system() { return system_; }

 private:
  connection_options options_;
  hosts::two_nodes& system_;
  link innocent_;
  hosts::buffer near_, far_, before_;
  std::vector<std::uint8_t> near_image_, far_image_;
  std::uint32_t psn_ = 0;
};

constexpr ibv_wr_opcode remote_verbs[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

template <class Body>
void in_court(Body body) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    court c(system);
    body(c);
  });
}

TEST(Security, WrongRemoteKey) {
  in_court([](court& c) {
    for (const ibv_wr_opcode verb : remote_verbs) {
      for (const std::uint32_t wrong : {1u, 0x100u, 0x8000'0000u, 0xffff'ffffu}) {
        SCOPED_TRACE(wrong);
        const link l = c.new_lane();
        request r = c.write();
        r.opcode = verb;
        r.rkey ^= wrong;
        c.fails(l, r, IBV_WC_REM_ACCESS_ERR);
        c.responder_stopped(l, IBV_EVENT_QP_ACCESS_ERR);
        c.nothing_changed();
      }
    }
  });
}

/// A region up to the last address there is: what ends there is served, what would go round is refused, for requests
/// from the wire as for the lists of work requests.
TEST(Security, EndOfTheAddressSpace) {
  in_court([](court& c) {
    const auto map_to_end = [](const hosts::endpoint& at, const hosts::buffer& b) {
      const std::uint64_t first = std::uint64_t{0} - guarded_bytes;
      return at.device->reg_mr(at.pd, b.at(), guarded_bytes,
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, &first);
    };
    const auto* const far = map_to_end(c.innocent().b.at, c.far());
    const auto* const near = map_to_end(c.innocent().a.at, c.near());
    ASSERT_NE(far, nullptr);
    ASSERT_NE(near, nullptr);
    const std::uint64_t round = std::uint64_t{0} - 4096;
    const hosts::endpoint& e = c.innocent().b.at;
    EXPECT_EQ(e.device->reg_mr(e.pd, c.far().at(), guarded_bytes, IBV_ACCESS_LOCAL_WRITE, &round), nullptr);
    struct range {
      std::uint64_t before_end;
      std::uint32_t bytes;
      bool legal;
    };
    for (const range& x : {range{0x20, 0x20, true}, range{0x20, 0x21, false}, range{0x20, 0x40, false},
                           range{1, 1, true}, range{1, 2, false}, range{1, 0, true}, range{1024, 2048, false},
                           range{guarded_bytes, guarded_bytes, true}, range{4096, guarded_bytes, false}})
      for (const ibv_wr_opcode verb : remote_verbs) {
        SCOPED_TRACE(testing::Message() << x.before_end << " before the end, " << x.bytes << " bytes, verb " << verb);
        const link remote = c.new_lane(), local = c.new_lane();
        request r = c.write(x.bytes);
        r.opcode = verb;
        r.remote = std::uint64_t{0} - x.before_end;
        r.rkey = far->rkey;
        request own = c.write(x.bytes);
        own.opcode = verb;
        own.sges = {{std::uint64_t{0} - x.before_end, x.bytes, near->lkey}};
        if (x.legal) {
          post(remote.a, r);
          EXPECT_EQ(remote.a.wait_send().status, IBV_WC_SUCCESS);
          remote.b.at.bus->spend_ps(10 * us);
          EXPECT_EQ(std::memcmp(c.near().at(), c.far().at(guarded_bytes - x.before_end), x.bytes), 0);
          c.restore();
          post(local.a, own);
          EXPECT_EQ(local.a.wait_send().status, IBV_WC_SUCCESS);
          local.b.at.bus->spend_ps(10 * us);
          EXPECT_EQ(std::memcmp(c.near().at(guarded_bytes - x.before_end), c.far().at(), x.bytes), 0);
          c.restore();
        } else {
          c.fails(remote, r, IBV_WC_REM_ACCESS_ERR);
          c.responder_stopped(remote, IBV_EVENT_QP_ACCESS_ERR);
          c.nothing_changed();
          c.fails(local, own, IBV_WC_LOC_PROT_ERR);
          if (x.bytes > 1024) c.restore();  // of several packets those before the end were legal
        }
        c.nothing_changed();
      }
  });
}

TEST(Security, KeyOfAnotherProtectionDomain) {
  in_court([](court& c) {
    hosts::endpoint other = c.innocent().b.at;
    other.pd = other.device->alloc_pd();
    ASSERT_NE(other.pd, nullptr);
    hosts::buffer theirs = hosts::make_buffer(other, 4096);
    std::memset(theirs.at(), 0x77, 4096);
    for (const ibv_wr_opcode verb : remote_verbs) {
      const link l = c.new_lane();
      request r = c.write();
      r.opcode = verb;
      r.remote = theirs.address();
      r.rkey = theirs.region->rkey;
      c.fails(l, r, IBV_WC_REM_ACCESS_ERR);
      c.responder_stopped(l, IBV_EVENT_QP_ACCESS_ERR);
      c.nothing_changed();
    }
    for (unsigned i = 0; i < 4096; ++i) ASSERT_EQ(*theirs.at(i), 0x77);
  });
}

TEST(Security, OneByteBeyondTheRegion) {
  in_court([](court& c) {
    for (const ibv_wr_opcode verb : remote_verbs) {
      struct {
        std::int64_t offset;
        std::uint32_t bytes;
      } const ranges[] = {
          {guarded_bytes - 99, 100}, {-1, 100}, {1, guarded_bytes}, {guarded_bytes, 1}, {guarded_bytes - 3000, 3001}};
      for (const auto& range : ranges) {
        SCOPED_TRACE("verb " + std::to_string(verb) + " at " + std::to_string(range.offset) + " of " +
                     std::to_string(range.bytes));
        const link l = c.new_lane();
        request r = c.write(range.bytes);
        r.opcode = verb;
        r.remote += static_cast<std::uint64_t>(range.offset);
        c.fails(l, r, IBV_WC_REM_ACCESS_ERR);
        c.responder_stopped(l, IBV_EVENT_QP_ACCESS_ERR);
        c.nothing_changed();
      }
    }
    // The last byte itself is within.
    request r = c.write(1);
    r.opcode = IBV_WR_RDMA_READ;
    r.remote += guarded_bytes - 1;
    hosts::buffer scratch = hosts::make_buffer(c.innocent().a.at, 64);
    r.sges = {{scratch.address(), 1, scratch.region->lkey}};
    const link l = c.new_lane();
    post(l.a, r);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(*scratch.at(), *c.far().at(guarded_bytes - 1));
  });
}

TEST(Security, RegionWithoutTheRight) {
  in_court([](court& c) {
    hosts::endpoint& b = c.innocent().b.at;
    const auto memory = b.device->allocate_buffer(4096);
    std::memset(memory.pointer, 0x33, 4096);
    struct {
      ibv_wr_opcode verb;
      int access;
    } const cases[] = {{IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ},
                       {IBV_WR_RDMA_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE},
                       {IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE},
                       {IBV_WR_RDMA_READ, 0}};
    for (const auto& k : cases) {
      host_driver::memory_region* mr = b.device->reg_mr(b.pd, memory.pointer, 4096, k.access);
      ASSERT_NE(mr, nullptr);
      const link l = c.new_lane();
      request r = c.write();
      r.opcode = k.verb;
      r.remote = mr->iova;
      r.rkey = mr->rkey;
      c.fails(l, r, IBV_WC_REM_ACCESS_ERR);
      c.responder_stopped(l, IBV_EVENT_QP_ACCESS_ERR);
      c.nothing_changed();
    }
    for (unsigned i = 0; i < 4096; ++i) ASSERT_EQ(memory.pointer[i], 0x33);
  });
}

TEST(Security, QueuePairWithoutTheRight) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    struct {
      ibv_wr_opcode verb;
      int access;
    } const cases[] = {{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_READ},
                       {IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_WRITE},
                       {IBV_WR_RDMA_WRITE, 0},
                       {IBV_WR_RDMA_READ, 0}};
    court c(system);
    for (const auto& k : cases) {
      connection_options options;
      options.access = k.access;
      const link l = make_sibling(c.innocent(), options);
      request r = c.write();
      r.opcode = k.verb;
      c.fails(l, r, IBV_WC_REM_INV_REQ_ERR);
      c.responder_stopped(l, IBV_EVENT_QP_REQ_ERR);
      c.nothing_changed();
    }
  });
}

TEST(Security, DeregisteredKey) {
  in_court([](court& c) {
    hosts::endpoint& b = c.innocent().b.at;
    for (const ibv_wr_opcode verb : remote_verbs) {
      const auto memory = b.device->allocate_buffer(4096);
      std::memset(memory.pointer, 0x44, 4096);
      host_driver::memory_region* mr = b.device->reg_mr(
          b.pd, memory.pointer, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
      const link l = c.new_lane();
      request r = c.write();
      r.opcode = verb;
      r.sges = {{c.near().address(), 0, c.near().region->lkey}};
      r.remote = mr->iova;
      r.rkey = mr->rkey;
      request good = c.write();
      good.remote = r.remote;
      good.rkey = r.rkey;
      post(l.a, good);  // the key is in the adapter's cache now
      ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      l.b.at.bus->spend_ps(10 * us);
      std::memset(memory.pointer, 0x44, 4096);
      hosts::require(b.device->dereg_mr(mr), "dereg_mr");
      r.sges[0].length = 100;
      c.fails(l, r, IBV_WC_REM_ACCESS_ERR);
      c.responder_stopped(l, IBV_EVENT_QP_ACCESS_ERR);
      c.nothing_changed();
      for (unsigned i = 0; i < 4096; ++i) ASSERT_EQ(memory.pointer[i], 0x44);
    }
  });
}

TEST(Security, WrongLocalKey) {
  in_court([](court& c) {
    for (const ibv_wr_opcode verb : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND}) {
      SCOPED_TRACE(verb);
      struct {
        std::uint32_t key;
        std::int64_t offset;
        std::uint32_t bytes;
      } const cases[] = {
          {0x100, 0, 100}, {1, 0, 100}, {0, guarded_bytes - 99, 100}, {0, -1, 100}, {0, guarded_bytes - 3000, 3001}};
      for (const auto& k : cases) {
        SCOPED_TRACE(k.offset);
        const link l = c.new_lane();
        if (verb == IBV_WR_SEND) {
          post_receive(l.b, {{c.far().address(), guarded_bytes, c.far().region->lkey}}, 5);
          post_receive(l.b, {{c.far().address(), guarded_bytes, c.far().region->lkey}}, 6);
        }
        request r = c.write();
        r.opcode = verb;
        r.sges = {{c.near().address(0) + static_cast<std::uint64_t>(k.offset), k.bytes, c.near().region->lkey ^ k.key}};
        c.fails(l, r, IBV_WC_LOC_PROT_ERR);
        EXPECT_EQ(l.b.state(), IBV_QPS_RTS) << "the offence was local";
        if (k.bytes > 1024) c.restore();  // of a longer message the legal beginning may have gone out
        c.nothing_changed();
      }
    }
  });
}

TEST(Security, ReadIntoARegionWithoutLocalWrite) {
  in_court([](court& c) {
    hosts::endpoint& a = c.innocent().a.at;
    const auto memory = a.device->allocate_buffer(4096);
    std::memset(memory.pointer, 0x55, 4096);
    host_driver::memory_region* mr = a.device->reg_mr(a.pd, memory.pointer, 4096, 0);
    ASSERT_NE(mr, nullptr);
    const link l = c.new_lane();
    request r = c.write();
    r.opcode = IBV_WR_RDMA_READ;
    r.sges = {{mr->iova, 100, mr->lkey}};
    c.fails(l, r, IBV_WC_LOC_PROT_ERR);
    c.nothing_changed();
    for (unsigned i = 0; i < 4096; ++i) ASSERT_EQ(memory.pointer[i], 0x55);
  });
}

/// A SEND to a receive that cannot take it.
void receive_fails(court& c, const std::vector<ibv_sge>& place, std::uint32_t bytes, ibv_wc_status receiver,
                   ibv_wc_status sender) {
  const link l = c.new_lane();
  post_receive(l.b, place, 11);
  post_receive(l.b, place, 12);
  request r = c.write(bytes);
  r.opcode = IBV_WR_SEND;
  c.fails(l, r, sender);
  const ibv_wc failed = l.b.wait_receive(), flushed = l.b.wait_receive();
  EXPECT_EQ(failed.status, receiver);
  EXPECT_EQ(failed.wr_id, 11U);
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(flushed.wr_id, 12U);
  EXPECT_EQ(l.b.state(), IBV_QPS_ERR);
}

TEST(Security, ReceiveBufferTooSmall) {
  in_court([](court& c) {
    hosts::buffer small = hosts::make_buffer(c.innocent().b.at, 8192);
    std::memset(small.at(), 0x66, 8192);
    receive_fails(c, {{small.address(), 99, small.region->lkey}}, 100, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
    for (unsigned i = 99; i < 8192; ++i) ASSERT_EQ(*small.at(i), 0x66);
    receive_fails(c, {}, 1, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
    receive_fails(c, {{small.address(), 3000, small.region->lkey}}, 3001, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
    for (unsigned i = 3000; i < 8192; ++i) ASSERT_EQ(*small.at(i), 0x66);
    c.nothing_changed();
  });
}

TEST(Security, ReceiveWithAWrongKey) {
  in_court([](court& c) {
    const hosts::buffer& far = c.far();
    receive_fails(c, {{far.address(), 1000, far.region->lkey ^ 0x100}}, 100, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
    receive_fails(c, {{far.address(guarded_bytes - 99), 100, far.region->lkey}}, 100, IBV_WC_LOC_PROT_ERR,
                  IBV_WC_REM_OP_ERR);
    c.nothing_changed();
  });
}

TEST(Security, SegmentOf2GibibytesIsRefusedWhenPosted) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    const hosts::buffer near = hosts::make_buffer(l.a.at, guarded_bytes);
    ibv_sge sge{near.address(), 1u << 31, near.region->lkey};
    ibv_send_wr send{};
    send.sg_list = &sge;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    ibv_send_wr* bad_send = nullptr;
    EXPECT_EQ(l.a.dev().post_send(l.a.qp, &send, &bad_send), -EINVAL);
    EXPECT_EQ(bad_send, &send);
    ibv_recv_wr receive{};
    receive.sg_list = &sge;
    receive.num_sge = 1;
    ibv_recv_wr* bad_receive = nullptr;
    EXPECT_EQ(l.a.dev().post_recv(l.a.qp, &receive, &bad_receive), -EINVAL);
    EXPECT_EQ(bad_receive, &receive);
    EXPECT_TRUE(l.a.silent());
  });
}

}  // namespace
}  // namespace rnic::system_test
