// SPDX-License-Identifier: Apache-2.0
// Operations on memory keys: windows of both types, fast registration, invalidation from here and from afar; what goes
// through a key, byte for byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "testbenches/system/verbs/keys.h"

namespace rnic::system_test {
namespace {

using hosts::connection_options;
using wire::operation;

TEST(Windows, Type2GivesAccessUntilTheOwnerInvalidatesIt) {
  in_shop([](shop& s) {
    auto* w = s.window(IBV_MW_TYPE_2);
    const std::uint32_t first_key = w->rkey;
    for (unsigned round = 0; round < 3; ++round) {
      const std::uint32_t key = s.bind(s.l.b, *w, 1000, 5000, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
      EXPECT_EQ(key >> 8, first_key >> 8);
      fill_random(s.near.at(), region_bytes, s.random);
      EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_WRITE, 16, s.far.address(1000), key, 5000), IBV_WC_SUCCESS);
      s.settle();
      EXPECT_EQ(std::memcmp(s.far.at(1000), s.near.at(16), 5000), 0);
      EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_READ, 8000, s.far.address(2000), key, 3000), IBV_WC_SUCCESS);
      EXPECT_EQ(std::memcmp(s.near.at(8000), s.far.at(2000), 3000), 0);
      const ibv_wc wc = shop::invalidate(s.l.b, key);
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.opcode, IBV_WC_LOCAL_INV);
      EXPECT_EQ(w->rkey, key);
    }
    s.refused(s.far.address(1000), w->rkey, 100);
    s.refused(s.far.address(1000), first_key, 100);
    EXPECT_EQ(s.l.b.dev().dealloc_mw(w), 0);
    expect_works(s.sibling());
  });
}

TEST(Windows, SendWithInvalidateEndsIt) {
  in_shop([](shop& s) {
    auto* w = s.window(IBV_MW_TYPE_2);
    for (const std::uint32_t bytes : {0u, 1u, 700u, 1024u, 1025u, 5000u}) {
      SCOPED_TRACE(bytes);
      const std::uint32_t key = s.bind(s.l.b, *w, 0, region_bytes, all_remote);
      EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_WRITE, 0, s.far.address(), key, 3000), IBV_WC_SUCCESS);
      std::memset(s.inbox().at(), 0, region_bytes);
      s.receives(s.l, 77);
      shop::send_invalidate(s.l.a, {{s.near.address(100), bytes, s.near.region->lkey}}, key);
      EXPECT_EQ(s.l.a.wait_send().status, IBV_WC_SUCCESS);
      const ibv_wc wc = s.l.b.wait_receive();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.opcode, IBV_WC_RECV);
      EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_INV, static_cast<unsigned>(IBV_WC_WITH_INV));
      EXPECT_EQ(wc.invalidated_rkey, key);
      EXPECT_EQ(wc.byte_len, bytes);
      EXPECT_EQ(wc.wr_id, 77U);
      EXPECT_EQ(std::memcmp(s.inbox().at(), s.near.at(100), bytes), 0);
      EXPECT_EQ(*s.inbox().at(bytes), 0);
      s.refused(s.far.address(), key, 64);
    }
  });
}

/// The same requests on queue pairs whose messages nobody acknowledges: what no key allows is lost without a word.
TEST(Windows, UnreliableConnectionsBindAndInvalidateToo) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options o = quick();
    o.type = IBV_QPT_UC;
    shop s(system, o);
    auto* w = s.window(IBV_MW_TYPE_2);
    const std::uint32_t key = s.bind(s.l.b, *w, 1000, 5000, IBV_ACCESS_REMOTE_WRITE);
    EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_WRITE, 16, s.far.address(1000), key, 5000), IBV_WC_SUCCESS);
    s.settle();
    EXPECT_EQ(std::memcmp(s.far.at(1000), s.near.at(16), 5000), 0);
    const ibv_wc wc = shop::invalidate(s.l.b, key);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_LOCAL_INV);
    const std::vector<std::uint8_t> before(s.far.at(), s.far.at() + region_bytes);
    EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_WRITE, 8000, s.far.address(1000), key, 5000), IBV_WC_SUCCESS);
    s.settle();
    EXPECT_EQ(std::memcmp(s.far.at(), before.data(), region_bytes), 0);
  });
}

TEST(Windows, Type1MovesByBinding) {
  in_shop([](shop& s) {
    auto* w = s.window(IBV_MW_TYPE_1);
    const auto bind = [&](std::uint64_t offset, std::uint64_t bytes, unsigned access) {
      ibv_mw_bind b{};
      b.wr_id = 5;
      b.send_flags = IBV_SEND_SIGNALED;
      b.bind_info = {bytes != 0 ? s.far.region : nullptr, bytes != 0 ? s.far.address(offset) : 0, bytes, access};
      ASSERT_EQ(s.l.b.dev().bind_mw(s.l.b.qp, w, &b), 0);
      const ibv_wc wc = s.l.b.wait_send();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);
      EXPECT_EQ(wc.wr_id, 5U);
    };
    s.refused(s.far.address(), w->rkey, 8);  // nothing was bound yet
    bind(4096, 4096, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    const std::uint32_t first = w->rkey;
    // A type 1 window belongs to a protection domain, not to a queue pair.
    EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_WRITE, 0, s.far.address(4096), first, 4096), IBV_WC_SUCCESS);
    EXPECT_EQ(s.rdma(s.sibling(), IBV_WR_RDMA_READ, 8192, s.far.address(4096), first, 4096), IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(s.near.at(8192), s.near.at(), 4096), 0);
    bind(0, 100, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    s.refused(s.far.address(4096), first, 8);
    s.refused(s.far.address(4096), w->rkey, 8);
    EXPECT_EQ(s.rdma(s.sibling(), IBV_WR_RDMA_WRITE, 0, s.far.address(), w->rkey, 100), IBV_WC_SUCCESS);
    bind(0, 0, 0);
    s.refused(s.far.address(), w->rkey, 8);
    EXPECT_EQ(shop::invalidate(s.sibling().b, w->rkey).status, IBV_WC_LOC_QP_OP_ERR);  // only bindings end it
  });
}

TEST(Windows, ZeroBasedOnesCountFromTheirFirstByte) {
  in_shop([](shop& s) {
    auto* w = s.window(IBV_MW_TYPE_2);
    const std::uint32_t key = s.bind(s.l.b, *w, 3333, 4000, all_remote | IBV_ACCESS_ZERO_BASED);
    EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_WRITE, 50, 0, key, 4000), IBV_WC_SUCCESS);
    s.settle();
    EXPECT_EQ(std::memcmp(s.far.at(3333), s.near.at(50), 4000), 0);
    EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_READ, 9000, 3999, key, 1), IBV_WC_SUCCESS);
    EXPECT_EQ(*s.near.at(9000), *s.far.at(3333 + 3999));
    s.refused_on(s.l, IBV_WR_RDMA_READ, s.far.address(3333), key, 8);
    for (const auto& [va, bytes] : {std::pair{std::uint64_t{0} - 0x20, 0x40u}, std::pair{std::uint64_t{0} - 1, 1u},
                                    std::pair{std::uint64_t{3999}, 2u}, std::pair{std::uint64_t{4000}, 1u}})
      for (const ibv_wr_opcode verb : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
        const link other = s.sibling();
        s.refused_on(other, verb, va,
                     s.bind(other.b, *s.window(IBV_MW_TYPE_2), 3333, 4000, all_remote | IBV_ACCESS_ZERO_BASED), bytes);
      }
    // Type 1 has no such form (IBA o10-36.2.2).
    auto* one = s.window(IBV_MW_TYPE_1);
    ibv_send_wr wr = s.binding(*one, ibv_inc_rkey(one->rkey), 0, 100, all_remote | IBV_ACCESS_ZERO_BASED);
    EXPECT_EQ(shop::run(s.sibling().b, wr).status, IBV_WC_MW_BIND_ERR);
  });
}

TEST(Windows, RegionsOutliveTheirWindows) {
  in_shop([](shop& s) {
    auto* one = s.window(IBV_MW_TYPE_1);
    auto* two = s.window(IBV_MW_TYPE_2);
    ibv_send_wr wr = s.binding(*one, ibv_inc_rkey(one->rkey), 0, 64, IBV_ACCESS_REMOTE_READ);
    EXPECT_EQ(shop::run(s.l.b, wr).status, IBV_WC_SUCCESS);
    one->rkey = wr.bind_mw.rkey;
    const std::uint32_t key = s.bind(s.l.b, *two, 0, 64, IBV_ACCESS_REMOTE_READ);
    EXPECT_EQ(s.l.b.dev().dereg_mr(s.far.region), -EBUSY);
    EXPECT_EQ(shop::invalidate(s.l.b, key).status, IBV_WC_SUCCESS);
    EXPECT_EQ(s.l.b.dev().dereg_mr(s.far.region), -EBUSY);
    EXPECT_EQ(s.rdma(s.l, IBV_WR_RDMA_READ, 0, s.far.address(), one->rkey, 64), IBV_WC_SUCCESS);
    EXPECT_EQ(s.l.b.dev().dealloc_mw(one), 0);  // bound as it is
    EXPECT_EQ(s.l.b.dev().dereg_mr(s.far.region), 0);
    EXPECT_EQ(s.l.b.dev().dealloc_mw(two), 0);
  });
}

/// What hardware does to an entry on chip is in ICM too, where firmware reads it.
TEST(Windows, TablesInMemoryFollow) {
  in_shop([](shop& s) {
    host_driver::device& dev = s.l.b.dev();
    host_driver::command_channel::mailbox box(dev.commands());
    const auto entry = [&](std::uint32_t key) {
      const auto slot = abi::key_to_index(key) & ((1u << dev.profile()[host_driver::icm_region::dmpt].log_count) - 1);
      hosts::require(dev.commands().read(box, abi::opcode::query_mpt, slot), "QUERY_MPT");
      return box.data();
    };
    auto* w = s.window(IBV_MW_TYPE_2);
    EXPECT_EQ(abi::get(entry(w->rkey), abi::mpt::owner), abi::mpt::owner_free);
    EXPECT_EQ(abi::get(entry(s.far.region->rkey), abi::mpt::window_count), 0U);
    const std::uint32_t key = s.bind(s.l.b, *w, 100, 200, IBV_ACCESS_REMOTE_READ);
    EXPECT_EQ(abi::get(entry(key), abi::mpt::owner), abi::mpt::owner_hardware);
    EXPECT_EQ(abi::get(entry(key), abi::mpt::flags), abi::mpt::flag_remote_read);
    EXPECT_EQ(abi::index_to_key(abi::get(entry(key), abi::mpt::key)), key);
    EXPECT_EQ(abi::get(entry(key), abi::mpt::start), s.far.address(100));
    EXPECT_EQ(abi::get(entry(key), abi::mpt::length), 200U);
    EXPECT_EQ(abi::get(entry(key), abi::mpt::lkey), s.far.region->lkey);
    EXPECT_EQ(abi::get(entry(s.far.region->rkey), abi::mpt::window_count), 1U);
    EXPECT_EQ(shop::invalidate(s.l.b, key).status, IBV_WC_SUCCESS);
    EXPECT_EQ(abi::get(entry(key), abi::mpt::owner), abi::mpt::owner_free);
    EXPECT_EQ(abi::get(entry(s.far.region->rkey), abi::mpt::window_count), 0U);
  });
}

/// SEND with invalidate on the cable, as Wireshark's dissector reads it.
TEST(Windows, TsharkReadsTheKeyToInvalidate) {
  if (std::system("command -v tshark > /dev/null") != 0) GTEST_SKIP() << "no tshark";
  hosts::two_nodes_config config = default_system();
  config.capture = testing::TempDir() + "send_with_invalidate.pcap";
  config.capture_options.overwrite = true;
  std::uint32_t first = 0, second = 0;
  {
    hosts::two_nodes system(config);
    run(system, [&] {
      shop s(system);
      auto* w = s.window(IBV_MW_TYPE_2);
      for (const std::uint32_t bytes : {5u, 3000u}) {
        s.receives(s.l);
        (bytes == 5 ? first : second) = s.bind(s.l.b, *w, 0, 64, all_remote);
        shop::send_invalidate(s.l.a, {{s.near.address(), bytes, s.near.region->lkey}}, w->rkey);
        EXPECT_EQ(s.l.a.wait_send().status, IBV_WC_SUCCESS);
      }
    });
  }
  const std::string command = "tshark -r " + config.capture +
                              " -Y infiniband.ieth -T fields -E occurrence=f -e infiniband.bth.opcode -e "
                              "infiniband.ieth 2>/dev/null";
  FILE* const out = popen(command.c_str(), "r");
  ASSERT_NE(out, nullptr);
  unsigned opcode = 0, key = 0;
  std::vector<std::pair<unsigned, unsigned>> seen;
  while (std::fscanf(out, "%u %x", &opcode, &key) == 2) seen.emplace_back(opcode, key);
  pclose(out);
  const std::vector<std::pair<unsigned, unsigned>> expected = {{0x17, first}, {0x16, second}};
  EXPECT_EQ(seen, expected);
}

TEST(FastRegistration, PagesInAnyOrderUnderEveryKey) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    shop s(system);
    patchwork p(s);
    const link l = s.sibling(true);
    std::vector<unsigned> pages = {9, 3, 61, 4, 17, 2, 40, 39, 38, 11, 0, 63, 5, 6, 7, 8, 20, 22, 21, 1};
    for (unsigned round = 0; round < 3; ++round) {
      SCOPED_TRACE(round);
      const std::uint64_t skip = round * 1001;
      auto wr = p.registration(pages, skip, pages.size() * 4096 - skip - round, IBV_ACCESS_LOCAL_WRITE | all_remote);
      const ibv_wc wc = p.register_on(l.b, wr);
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      const std::uint64_t begin = p.region->iova;
      fill_random(s.near.at(), region_bytes, s.random);
      EXPECT_EQ(s.rdma(l, IBV_WR_RDMA_WRITE, 0, begin + 10, p.region->rkey, region_bytes), IBV_WC_SUCCESS);
      s.settle();
      for (unsigned i = 0; i < region_bytes; ++i) ASSERT_EQ(*p.byte(10 + i), *s.near.at(i)) << i;
      std::vector<std::uint8_t> image(region_bytes);
      for (unsigned i = 0; i < region_bytes; ++i) image[i] = *p.byte(5000 + i);
      EXPECT_EQ(s.rdma(l, IBV_WR_RDMA_READ, 0, begin + 5000, p.region->rkey, region_bytes), IBV_WC_SUCCESS);
      EXPECT_EQ(std::memcmp(s.near.at(), image.data(), region_bytes), 0);
      // Also for the owner's own requests.
      request mine;
      mine.opcode = IBV_WR_SEND;
      mine.sges = {{begin + 3, 9000, p.region->lkey}};
      post_receive(l.a, {{s.near.address(), region_bytes, s.near.region->lkey}});
      post(l.b, mine);
      EXPECT_EQ(l.b.wait_send().status, IBV_WC_SUCCESS);
      EXPECT_EQ(l.a.wait_receive().byte_len, 9000U);
      for (unsigned i = 0; i < 9000; ++i) ASSERT_EQ(*s.near.at(i), *p.byte(3 + i)) << i;
      const std::uint32_t old = p.region->rkey;
      if (round == 1) {
        s.receives(l);
        shop::send_invalidate(l.a, {}, old);
        EXPECT_EQ(l.b.wait_receive().invalidated_rkey, old);
        EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      } else {
        EXPECT_EQ(shop::invalidate(l.b, old).status, IBV_WC_SUCCESS);
      }
      s.refused(begin, old, 16);
      std::rotate(pages.begin(), pages.begin() + 7, pages.end());
    }
    EXPECT_EQ(l.b.dev().dereg_mr(p.region), 0);
  });
}

/// Requests on keys and on data in one list: each sees what was before it.
TEST(Windows, InOrderWithinTheQueue) {
  in_shop([](shop& s) {
    auto* w = s.window(IBV_MW_TYPE_2);
    const std::uint32_t key = ibv_inc_rkey(w->rkey);
    // b: bind, tell a the key by a WRITE; a uses it and sends it back; b: READ from a, invalidate.
    ibv_send_wr bind = s.binding(*w, key, 0, 4096, all_remote), tell{}, read{}, invalidate{}, last{};
    ibv_sge sge{s.far.address(8192), 4096, s.far.region->lkey};
    bind.send_flags = invalidate.send_flags = 0;
    tell.opcode = IBV_WR_RDMA_WRITE;
    read.opcode = IBV_WR_RDMA_READ;
    last.opcode = IBV_WR_RDMA_WRITE;
    for (ibv_send_wr* wr : {&tell, &read, &last}) {
      wr->sg_list = &sge;
      wr->num_sge = 1;
      wr->wr.rdma.remote_addr = s.near.address(8192);
      wr->wr.rdma.rkey = s.near.region->rkey;
    }
    last.send_flags = IBV_SEND_SIGNALED;
    invalidate.opcode = IBV_WR_LOCAL_INV;
    invalidate.invalidate_rkey = key;
    bind.next = &tell;
    tell.next = &read;
    read.next = &invalidate;
    invalidate.next = &last;
    EXPECT_EQ(shop::run(s.l.b, bind).status, IBV_WC_SUCCESS);
    s.settle();
    EXPECT_EQ(std::memcmp(s.near.at(8192), s.far.at(8192), 4096), 0);
    EXPECT_TRUE(s.l.b.silent());
    s.refused_on(s.l, IBV_WR_RDMA_READ, s.far.address(), key, 8);
  });
}

/// Entries that go to memory and come back between any two uses, and page lists in small pieces.
TEST(Windows, WithHardlyAnyRoomOnChip) {
  hosts::two_nodes_config config = default_system();
  config.node.adapter.translation.mpt_entries = 1;
  config.node.adapter.translation.mpt_ways = 1;
  config.node.adapter.translation.keys.page_list_entries = 3;
  hosts::two_nodes system(config);
  run(system, [&] {
    shop s(system);
    patchwork p(s);
    const link l = s.sibling(true);
    ibv_mw* windows[] = {s.window(IBV_MW_TYPE_2), s.window(IBV_MW_TYPE_2), s.window(IBV_MW_TYPE_2)};
    std::vector<unsigned> pages(32);
    for (unsigned i = 0; i < 32; ++i) pages[i] = (i * 7 + 3) % 64;
    for (unsigned round = 0; round < 4; ++round) {
      std::uint32_t keys[3];
      for (unsigned i = 0; i < 3; ++i) keys[i] = s.bind(l.b, *windows[i], i * 5000, 5000, all_remote);
      fill_random(s.near.at(), region_bytes, s.random);
      for (unsigned i = 0; i < 3; ++i)
        EXPECT_EQ(s.rdma(l, IBV_WR_RDMA_WRITE, i * 5000, s.far.address(i * 5000), keys[i], 5000), IBV_WC_SUCCESS);
      s.settle();
      EXPECT_EQ(std::memcmp(s.far.at(), s.near.at(), 15000), 0);
      auto wr = p.registration(pages, round * 100, 32 * 4096 - round * 100, IBV_ACCESS_LOCAL_WRITE | all_remote);
      ASSERT_EQ(p.register_on(l.b, wr).status, IBV_WC_SUCCESS);
      for (std::uint64_t at = 0; at + region_bytes <= 7 * region_bytes; at += region_bytes) {
        EXPECT_EQ(s.rdma(l, IBV_WR_RDMA_WRITE, 0, p.region->iova + at, p.region->rkey, region_bytes), IBV_WC_SUCCESS);
        s.settle();
        for (unsigned i = 0; i < region_bytes; ++i) ASSERT_EQ(*p.byte(at + i), *s.near.at(i)) << at << " " << i;
      }
      EXPECT_EQ(l.b.dev().dereg_mr(s.far.region), -EBUSY);
      for (const std::uint32_t key : keys) EXPECT_EQ(shop::invalidate(l.b, key).status, IBV_WC_SUCCESS);
      EXPECT_EQ(shop::invalidate(l.b, p.region->rkey).status, IBV_WC_SUCCESS);
      s.refused_on(s.sibling(), IBV_WR_RDMA_WRITE, s.far.address(), keys[0], 1);
    }
    for (ibv_mw* w : windows) EXPECT_EQ(l.b.dev().dealloc_mw(w), 0);
    EXPECT_EQ(l.b.dev().dereg_mr(s.far.region), 0);
  });
}

/// Queue pairs that go away while operations on keys are under way, at either end.
TEST(Windows, QueuePairsEndInTheMiddle) {
  in_shop([](shop& s) {
    for (unsigned round = 0; round < 24; ++round) {
      SCOPED_TRACE(round);
      const link via = s.sibling();
      auto* w = s.window(IBV_MW_TYPE_2);
      const std::uint32_t key = ibv_inc_rkey(w->rkey);
      ibv_send_wr bind = s.binding(*w, key, 0, 4096, all_remote), end{}, *bad = nullptr;
      end.opcode = IBV_WR_LOCAL_INV;
      end.invalidate_rkey = key;
      if (round % 2 == 0) {
        bind.next = &end;
        ASSERT_EQ(via.b.dev().post_send(via.b.qp, &bind, &bad), 0);
      } else {
        EXPECT_EQ(shop::run(via.b, bind).status, IBV_WC_SUCCESS);
        s.receives(via);
        shop::send_invalidate(via.a, {{s.near.address(), 2000, s.near.region->lkey}}, key);
      }
      s.l.b.at.bus->spend_ps(round * 150'000);
      EXPECT_EQ(via.b.dev().destroy_qp(via.b.qp), 0);
      EXPECT_EQ(via.a.dev().destroy_qp(via.a.qp), 0);
      s.refused_on(s.sibling(), IBV_WR_RDMA_READ, s.far.address(), key, 8);
      EXPECT_EQ(s.l.b.dev().dealloc_mw(w), 0);
    }
    EXPECT_EQ(s.l.b.dev().dereg_mr(s.far.region), 0);
    expect_works(s.sibling());
  });
}

/// A retransmission goes back behind operations that were executed: they are not executed again.
TEST(Windows, OnceWhateverIsLost) {
  hosts::two_nodes system(default_system());
  loss fault;
  system.cable().set_fault(&fault);
  run(system, [&] {
    connection_options options = quick();
    options.ack_timeout = 6;
    shop s(system, options);
    unsigned expected = 0;
    for (const operation lost : {operation::write_first, operation::write_last, operation::acknowledge}) {
      auto* w = s.window(IBV_MW_TYPE_2);
      const std::uint32_t key = ibv_inc_rkey(w->rkey);
      ibv_sge sge{s.far.address(), 5000, s.far.region->lkey};
      ibv_send_wr before{}, after{}, bind = s.binding(*w, key, 0, 4096, all_remote);
      for (ibv_send_wr* wr : {&before, &after}) {
        wr->opcode = IBV_WR_RDMA_WRITE;
        wr->sg_list = &sge;
        wr->num_sge = 1;
        wr->send_flags = IBV_SEND_SIGNALED;
        wr->wr.rdma.remote_addr = s.near.address(wr == &after ? 8192 : 0);
        wr->wr.rdma.rkey = s.near.region->rkey;
      }
      before.next = &bind;
      bind.next = &after;
      fault.arm(lost);
      EXPECT_EQ(shop::run(s.l.b, before).status, IBV_WC_SUCCESS);
      EXPECT_EQ(s.l.b.wait_send().status, IBV_WC_SUCCESS);
      EXPECT_EQ(s.l.b.wait_send().status, IBV_WC_SUCCESS);
      EXPECT_EQ(fault.hits, ++expected);
      s.settle();
      EXPECT_EQ(std::memcmp(s.near.at(), s.far.at(), 5000), 0);
      EXPECT_EQ(std::memcmp(s.near.at(8192), s.far.at(), 5000), 0);
      // The other end names the key once, and again when the answer is lost.
      for (const operation gone : {operation::send_last_invalidate, operation::acknowledge}) {
        const std::uint32_t now = gone == operation::acknowledge ? s.bind(s.l.b, *w, 0, 64, all_remote) : key;
        w->rkey = now;
        s.receives(s.l);
        fault.arm(gone);
        shop::send_invalidate(s.l.a, {{s.near.address(), 3000, s.near.region->lkey}}, now);
        EXPECT_EQ(s.l.a.wait_send().status, IBV_WC_SUCCESS);
        EXPECT_EQ(s.l.b.wait_receive().invalidated_rkey, now);
        EXPECT_EQ(fault.hits, ++expected);
        EXPECT_TRUE(s.l.b.silent());
      }
    }
    EXPECT_EQ(counted(system, "responder.invalidations"), 2U * 3);
  });
}

/// The same work, told by its times and results.
std::string history(const sim::timebase::options& timing) {
  hosts::two_nodes_config config = default_system();
  config.timing = timing;
  hosts::two_nodes system(config);
  std::string text;
  run(system, [&] {
    shop s(system);
    patchwork p(s);
    const link l = s.sibling(true);
    auto* w = s.window(IBV_MW_TYPE_2);
    const auto note = [&](const ibv_wc& wc) {
      text += std::to_string(system.now_ps()) + ":" + std::to_string(wc.status) + " ";
    };
    for (unsigned i = 0; i < 3; ++i) {
      const std::uint32_t key = s.bind(l.b, *w, 100, 5000, all_remote);
      EXPECT_EQ(s.rdma(l, IBV_WR_RDMA_WRITE, 0, s.far.address(200), key, 4800), IBV_WC_SUCCESS);
      s.receives(l);
      shop::send_invalidate(l.a, {{s.near.address(), 3000, s.near.region->lkey}}, key);
      note(l.b.wait_receive());
      note(l.a.wait_send());
      auto wr = p.registration({5, 4, 3, 2}, 0, 16384, IBV_ACCESS_LOCAL_WRITE | all_remote);
      note(p.register_on(l.b, wr));
      EXPECT_EQ(s.rdma(l, IBV_WR_RDMA_READ, 0, p.region->iova, p.region->rkey, 10000), IBV_WC_SUCCESS);
      note(shop::invalidate(l.b, p.region->rkey));
    }
  });
  return text;
}

TEST(Windows, SleepOrderAndRunningAheadChangeNothing) {
  const std::string sleeping = in_child([] { return history({}); });
  EXPECT_GT(sleeping.size(), 100U);
  sim::timebase::options always, shuffled, stepping;
  always.always_tick = true;
  shuffled.shuffle_seed = 7;
  stepping.run_ahead = false;
  for (const auto& timing : {always, shuffled, stepping})
    EXPECT_EQ(in_child([&] { return history(timing); }), sleeping);
}

}  // namespace
}  // namespace rnic::system_test
