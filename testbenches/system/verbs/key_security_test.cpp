// SPDX-License-Identifier: Apache-2.0
// What must not go through a memory key, and requests on keys that are refused.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "testbenches/system/verbs/keys.h"

namespace rnic::system_test {
namespace {

TEST(KeySecurity, NoAccessBeyondBoundsOrRights) {
  in_shop([](shop& s) {
    const auto with_window = [&](unsigned access, const std::function<void(const link&, std::uint32_t)>& body) {
      auto* w = s.window(IBV_MW_TYPE_2);
      const link via = s.sibling();
      body(via, s.bind(via.b, *w, 1000, 2000, access));
      EXPECT_EQ(s.l.b.dev().dealloc_mw(w), 0);
    };
    const std::uint64_t begin = s.far.address(1000);
    const std::vector<std::uint8_t> before(s.far.at(), s.far.at() + region_bytes);
    for (const auto& [at, bytes] : {std::pair{begin - 1, 1u}, std::pair{begin + 2000, 1u}, std::pair{begin + 1, 2000u},
                                    std::pair{begin - 1, 2u}, std::pair{std::uint64_t{0}, 8u}})
      with_window(all_remote, [&, to = at, n = bytes](const link& via, std::uint32_t key) {
        s.refused_on(via, IBV_WR_RDMA_WRITE, to, key, n);
      });
    with_window(IBV_ACCESS_REMOTE_READ, [&](const link& via, std::uint32_t key) {
      EXPECT_EQ(s.rdma(via, IBV_WR_RDMA_READ, 0, begin, key, 2000), IBV_WC_SUCCESS);
      s.refused_on(via, IBV_WR_RDMA_WRITE, begin, key, 1);
    });
    with_window(IBV_ACCESS_REMOTE_WRITE,
                [&](const link& via, std::uint32_t key) { s.refused_on(via, IBV_WR_RDMA_READ, begin, key, 1); });
    with_window(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, [&](const link& via, std::uint32_t key) {
      ibv_send_wr wr{};
      ibv_sge sge{s.near.address(), 8, s.near.region->lkey};
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.send_flags = IBV_SEND_SIGNALED;
      hosts::make_atomic(wr, false, begin, key, 0);
      EXPECT_EQ(shop::run(via.a, wr).status, IBV_WC_REM_ACCESS_ERR);
    });
    s.settle();
    EXPECT_EQ(std::memcmp(s.far.at(), before.data(), region_bytes), 0);
    with_window(IBV_ACCESS_REMOTE_ATOMIC, [&](const link& via, std::uint32_t key) {
      ibv_send_wr wr{};
      ibv_sge sge{s.near.address(), 8, s.near.region->lkey};
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.send_flags = IBV_SEND_SIGNALED;
      hosts::make_atomic(wr, false, begin, key, 0);
      EXPECT_EQ(shop::run(via.a, wr).status, IBV_WC_SUCCESS);
      EXPECT_EQ(std::memcmp(s.near.at(), before.data() + 1000, 8), 0);
    });
  });
}

TEST(KeySecurity, Type2BelongsToOneQueuePair) {
  in_shop([](shop& s) {
    auto* w = s.window(IBV_MW_TYPE_2);
    const std::uint32_t key = s.bind(s.l.b, *w, 0, region_bytes, all_remote);
    s.refused(s.far.address(), key, 100);  // by other queue pairs of the same domain
    EXPECT_EQ(shop::invalidate(s.sibling().b, key).status, IBV_WC_LOC_QP_OP_ERR);
    const link other = s.sibling();
    s.receives(other);
    shop::send_invalidate(other.a, {}, key);
    EXPECT_EQ(other.b.wait_receive().status, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_WRITE, 0, s.far.address(), key, 5000), IBV_WC_SUCCESS);
    s.settle();
    EXPECT_EQ(std::memcmp(s.far.at(), s.near.at(), 5000), 0);
  });
}

TEST(KeySecurity, OfAnotherDomainDoNotExist) {
  in_shop([](shop& s) {
    hosts::endpoint stranger = s.l.b.at;
    stranger.pd = stranger.device->alloc_pd();
    const hosts::buffer theirs = shop::region(stranger, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    auto* window_1 = stranger.device->alloc_mw(stranger.pd, IBV_MW_TYPE_1);
    auto* window_2 = stranger.device->alloc_mw(stranger.pd, IBV_MW_TYPE_2);
    // Neither their windows on our regions, nor ours on theirs, nor theirs on theirs by our queue pairs.
    for (ibv_mw* w : {static_cast<ibv_mw*>(window_1), static_cast<ibv_mw*>(window_2)})
      for (const hosts::buffer& to : {s.far, theirs}) {
        ibv_send_wr wr = s.binding(*w, ibv_inc_rkey(w->rkey), 0, 64, all_remote);
        wr.bind_mw.bind_info = {to.region, to.address(), 64, all_remote};
        EXPECT_EQ(shop::run(s.sibling().b, wr).status, IBV_WC_MW_BIND_ERR);
      }
    for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
      auto* w = s.window(type);
      ibv_send_wr wr = s.binding(*w, ibv_inc_rkey(w->rkey), 0, 64, all_remote);
      wr.bind_mw.bind_info = {theirs.region, theirs.address(), 64, all_remote};
      EXPECT_EQ(shop::run(s.sibling().b, wr).status, IBV_WC_MW_BIND_ERR);
    }
    // A window that its own domain has bound.
    link insider = s.l;
    insider.b.at.pd = stranger.pd;
    insider = make_sibling(insider, quick(), 99000);
    ibv_send_wr wr = s.binding(*window_1, ibv_inc_rkey(window_1->rkey), 0, 64, all_remote);
    wr.bind_mw.bind_info = {theirs.region, theirs.address(), 64, all_remote};
    ASSERT_EQ(shop::run(insider.b, wr).status, IBV_WC_SUCCESS);
    EXPECT_EQ(s.rdma(insider, IBV_WR_RDMA_WRITE, 0, theirs.address(), wr.bind_mw.rkey, 64), IBV_WC_SUCCESS);
    s.settle();
    EXPECT_EQ(std::memcmp(theirs.at(), s.near.at(), 64), 0);
    std::memset(theirs.at(), 0x55, region_bytes);
    s.refused(theirs.address(), wr.bind_mw.rkey, 8);
    for (unsigned i = 0; i < region_bytes; ++i) ASSERT_EQ(*theirs.at(i), 0x55);
  });
}

TEST(KeySecurity, BindingsThatAreRefused) {
  in_shop([](shop& s) {
    auto* w = s.window(IBV_MW_TYPE_2);
    const std::uint32_t next = ibv_inc_rkey(w->rkey);
    const auto refused = [&](const char* why, ibv_send_wr wr) {
      SCOPED_TRACE(why);
      const link via = s.sibling();
      EXPECT_EQ(shop::run(via.b, wr).status, IBV_WC_MW_BIND_ERR);
      EXPECT_EQ(via.b.state(), IBV_QPS_ERR);
      s.refused_on(s.sibling(), IBV_WR_RDMA_READ, wr.bind_mw.bind_info.addr, wr.bind_mw.rkey, 1);
    };
    const auto on = [&](ibv_mr* mr) {
      ibv_send_wr wr = s.binding(*w, next, 0, 64, IBV_ACCESS_REMOTE_READ);
      wr.bind_mw.bind_info.mr = mr;
      wr.bind_mw.bind_info.addr = static_cast<host_driver::memory_region*>(mr)->iova;
      return wr;
    };
    refused("region without the right to be bound to", on(shop::region(s.l.b.at, IBV_ACCESS_LOCAL_WRITE).region));
    ibv_send_wr wr = on(shop::region(s.l.b.at, IBV_ACCESS_MW_BIND).region);
    wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
    refused("writing to a region that may not be written", wr);
    wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_ATOMIC;
    refused("atomics on a region that may not be written", wr);
    refused("before the region", s.binding(*w, next, ~std::uint64_t{0}, 64, IBV_ACCESS_REMOTE_READ));
    refused("beyond the region", s.binding(*w, next, 1, region_bytes, IBV_ACCESS_REMOTE_READ));
    refused("around the end of addresses", s.binding(*w, next, 8, ~std::uint64_t{0} - 4, IBV_ACCESS_REMOTE_READ));
    refused("type 2 of no length", s.binding(*w, next, 0, 0, IBV_ACCESS_REMOTE_READ));
    refused("another entry", s.binding(*w, next + 0x100, 0, 64, IBV_ACCESS_REMOTE_READ));
    refused("an entry that is a region", s.binding(*w, s.far.region->rkey, 0, 64, IBV_ACCESS_REMOTE_READ));
    auto* one = s.window(IBV_MW_TYPE_1);
    ibv_mw disguised = *one;
    disguised.type = IBV_MW_TYPE_2;
    refused("type 1 as type 2", s.binding(disguised, ibv_inc_rkey(one->rkey), 0, 64, IBV_ACCESS_REMOTE_READ));
    disguised = *w;
    disguised.type = IBV_MW_TYPE_1;
    refused("type 2 as type 1", s.binding(disguised, next, 0, 64, IBV_ACCESS_REMOTE_READ));
    wr = on(s.far.region);
    ibv_mr stale = *s.far.region;
    stale.lkey ^= 1;
    wr.bind_mw.bind_info.mr = &stale;
    refused("region's key with another tag", wr);
    // On top of a window that is bound already.
    s.bind(s.l.b, *w, 0, 64, IBV_ACCESS_REMOTE_READ);
    refused("type 2 twice", s.binding(*w, ibv_inc_rkey(w->rkey), 0, 64, IBV_ACCESS_REMOTE_READ));
    EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_READ, 0, s.far.address(), w->rkey, 64), IBV_WC_SUCCESS);
  });
}

TEST(KeySecurity, InvalidationsThatAreRefused) {
  in_shop([](shop& s) {
    hosts::endpoint stranger = s.l.b.at;
    stranger.pd = stranger.device->alloc_pd();
    const hosts::buffer plain = shop::region(s.l.b.at, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    auto* one = s.window(IBV_MW_TYPE_1);
    auto* theirs = stranger.device->alloc_mw(stranger.pd, IBV_MW_TYPE_2);
    auto* mine = s.window(IBV_MW_TYPE_2);
    const std::uint32_t key = s.bind(s.l.b, *mine, 0, region_bytes, all_remote);
    const std::uint32_t keys[] = {plain.region->rkey, one->rkey, theirs->rkey, key ^ 1, key + 0x100, 0, ~0u};
    for (const std::uint32_t k : keys) {
      SCOPED_TRACE(k);
      const link via = s.sibling();
      EXPECT_EQ(shop::invalidate(via.b, k).status, IBV_WC_LOC_QP_OP_ERR);
      EXPECT_EQ(via.b.state(), IBV_QPS_ERR);
    }
    for (const std::uint32_t k : keys) {
      SCOPED_TRACE(k);
      const link via = s.sibling();
      s.receives(via, 3);
      s.receives(via, 4);
      shop::send_invalidate(via.a, {{s.near.address(), 100, s.near.region->lkey}}, k);
      const ibv_wc wc = via.b.wait_receive();
      EXPECT_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
      EXPECT_EQ(wc.wr_id, 3U);
      EXPECT_EQ(via.b.wait_receive().status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(via.a.wait_send().status, IBV_WC_RETRY_EXC_ERR);  // class J: nobody tells the requester
    }
    // What was not to be touched still works.
    EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_WRITE, 0, plain.address(), plain.region->rkey, 1000), IBV_WC_SUCCESS);
    EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_WRITE, 0, s.far.address(), key, 1000), IBV_WC_SUCCESS);
    s.settle();
    EXPECT_EQ(std::memcmp(plain.at(), s.near.at(), 1000), 0);
  });
}

TEST(KeySecurity, RegistrationsThatAreRefused) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    shop s(system);
    patchwork p(s);
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    const auto refused = [&](const char* why, host_driver::fast_register_wr wr, bool kernel = true) {
      SCOPED_TRACE(why);
      const link via = s.sibling(kernel);
      EXPECT_EQ(shop::run(via.b, wr).status, IBV_WC_LOC_QP_OP_ERR);
      s.refused_on(s.sibling(), IBV_WR_RDMA_WRITE, wr.region->iova, wr.key, 1);
    };
    const std::vector<unsigned> pages = {1, 2, 3};
    refused("queue pair of a program", p.registration(pages, 0, 8192, access), false);
    refused("rights without local write", p.registration(pages, 0, 8192, IBV_ACCESS_REMOTE_WRITE));
    refused("no length", p.registration(pages, 0, 0, access));
    refused("more pages than it has", p.registration(pages, 0, 33 * 4096, access));
    auto wr = p.registration(pages, 0, 8192, access);
    wr.key += 0x100;
    refused("another entry", wr);
    wr = p.registration(pages, 0, 8192, access);
    wr.key = s.far.region->rkey;
    wr.region = s.far.region;
    refused("a plain region", wr);
    for (unsigned i = 0; i < 64 * 4096; ++i) ASSERT_EQ(p.memory.pointer[i], 0x33);
  });
}

/// Not too late: a key is dead when its invalidation is complete, whatever was on its way under it.
void nothing_arrives(const hosts::two_nodes_config& config) {
  in_shop(
      [](shop& s) {
        for (unsigned round = 0; round < 12; ++round) {
          SCOPED_TRACE(round);
          const link via = s.sibling();
          auto* w = s.window(IBV_MW_TYPE_2);
          const std::uint32_t key = s.bind(via.b, *w, 0, region_bytes, all_remote);
          const bool reads = round % 3 == 2;
          for (unsigned i = 0; i < 60; ++i) {
            request r;
            r.opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
            r.sges = {{s.near.address(), 4096, s.near.region->lkey}};
            r.remote = s.far.address((i % 4) * 4096);
            r.rkey = key;
            post(via.a, r);
            std::memset(s.near.at(), static_cast<int>(i), 64);
          }
          s.l.b.at.bus->spend_ps(round * 777 * 1000 + us);
          // A READ under way ends in error, and the queue pair with it, maybe before the invalidation could be
          // reported.
          const ibv_wc_status status = shop::invalidate(via.b, key).status;
          EXPECT_TRUE(status == IBV_WC_SUCCESS || (reads && status == IBV_WC_WR_FLUSH_ERR)) << status;
          const std::vector<std::uint8_t> then(s.far.at(), s.far.at() + region_bytes);
          if (!reads) fill_random(s.near.at(), region_bytes, s.random);
          s.l.b.at.bus->spend_ps(100 * us);
          EXPECT_EQ(std::memcmp(s.far.at(), then.data(), region_bytes), 0);
          unsigned good = 0, refused = 0, flushed = 0;
          for (unsigned i = 0; i < 60; ++i) {
            const ibv_wc_status ended = via.a.wait_send().status;
            good += ended == IBV_WC_SUCCESS ? 1 : 0;
            refused += ended == IBV_WC_REM_ACCESS_ERR ? 1 : 0;
            flushed += ended == IBV_WC_WR_FLUSH_ERR ? 1 : 0;
          }
          EXPECT_EQ(refused, 1U);
          EXPECT_EQ(good + refused + flushed, 60U);
          EXPECT_EQ(s.l.b.dev().dealloc_mw(w), 0);
        }
        EXPECT_EQ(s.l.b.dev().dereg_mr(s.far.region), 0);
      },
      config);
}

TEST(KeySecurity, NothingArrivesAfterInvalidation) { nothing_arrives(default_system()); }

/// Packets that were translated long before they write.
TEST(KeySecurity, NothingArrivesAfterInvalidationFromALongPipeline) {
  hosts::two_nodes_config config = default_system();
  config.node.adapter.responder.receive.order = 6000;
  nothing_arrives(config);
}

}  // namespace
}  // namespace rnic::system_test
