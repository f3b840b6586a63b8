// SPDX-License-Identifier: Apache-2.0
// Posting by itself: queues exactly full, laps of the ring, BlueFlame, inline data. Nothing of it reaches the device.
#include "testbenches/system/driver/shim.h"

namespace rnic::driver_test {
namespace {

using host_driver::queue_pair;
using rule = host_driver::config::blue_flame_rule;

ibv_qp_cap caps(std::uint32_t sends, std::uint32_t receives, std::uint32_t send_sges = 1, std::uint32_t inlined = 0,
                std::uint32_t receive_sges = 1) {
  return {sends, receives, send_sges, receive_sges, inlined};
}

TEST(DriverPostRecv, TakesExactlyAsManyAsTheQueueHas) {
  with_shim([](shim& s) {
    auto* cq = s.device.create_cq(255);
    queue_pair* qp = s.qp(caps(8, 16), cq);
    ASSERT_EQ(qp->caps.max_recv_wr, 16u);
    const ibv_sge sge = s.sge();
    receives most(15, &sge, 1);
    EXPECT_EQ(most.post(s, qp), 0);
    EXPECT_EQ(abi::load32(qp->record.pointer), 15u);
    receives three(3, &sge, 1);
    EXPECT_EQ(three.post(s, qp), -ENOMEM) << "one has a place";
    EXPECT_EQ(three.bad, &three[1]);
    EXPECT_EQ(abi::load32(qp->record.pointer), 16u);
    receives one(1, &sge, 1);
    one.bad = nullptr;
    EXPECT_EQ(one.post(s, qp), -ENOMEM);
    EXPECT_EQ(one.bad, &one[0]);
    EXPECT_EQ(abi::load32(qp->record.pointer), 16u) << "and the device is not told of it";

    forged_completions completions(*cq);
    completions.receive(*qp);
    ibv_wc wc{};
    ASSERT_EQ(s.device.poll_cq(cq, 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, 0u);
    one[0].wr_id = 77;
    EXPECT_EQ(one.post(s, qp), 0) << "a completion that was polled has given its place back";
    EXPECT_EQ(one.post(s, qp), -ENOMEM);
    EXPECT_EQ(abi::load32(qp->record.pointer), 17u);
    for (unsigned n = 0; n < 16; ++n) completions.receive(*qp);
    std::vector<std::uint64_t> ids;
    for (unsigned n = 0; n < 16; ++n) {
      ASSERT_EQ(s.device.poll_cq(cq, 1, &wc), 1);
      ids.push_back(wc.wr_id);
    }
    EXPECT_EQ(ids[0], 1u);
    EXPECT_EQ(ids[14], 0u) << "the first of the three";
    EXPECT_EQ(ids[15], 77u);
    EXPECT_EQ(s.device.poll_cq(cq, 1, &wc), 0);
    EXPECT_TRUE(s.bus.stores.empty() || s.bus.stores.back().offset != 0x14) << "receives ring no doorbell";
  });
}

/// The record has 16 bits of the count and goes on over their end.
TEST(DriverPostRecv, CountsOverTheEndOfItsRecord) {
  with_shim([](shim& s) {
    auto* cq = s.device.create_cq(255);
    queue_pair* qp = s.qp(caps(8, 16), cq);
    qp->rq.head = qp->rq.tail = 0xfff8;
    const ibv_sge sge = s.sge();
    receives most(16, &sge, 1);
    EXPECT_EQ(most.post(s, qp), 0);
    EXPECT_EQ(abi::load32(qp->record.pointer), 8u);
    EXPECT_EQ(most.post(s, qp), -ENOMEM);
    EXPECT_EQ(most.bad, &most[0]);
  });
}

TEST(DriverPostRecv, ListsExactlyAsLongAsTheEntryAndShorterOnesWithTheirEnd) {
  with_shim([](shim& s) {
    auto* cq = s.device.create_cq(255);
    queue_pair* qp = s.qp(caps(8, 16, 1, 0, 4), cq);
    std::vector<ibv_sge> list(5, s.sge());
    receives four(1, list.data(), 4), five(1, list.data(), 5), two(1, list.data(), 2);
    EXPECT_EQ(four.post(s, qp), 0);
    EXPECT_EQ(five.post(s, qp), -ENOMEM);
    EXPECT_EQ(five.bad, &five[0]);
    EXPECT_EQ(two.post(s, qp), 0);
    const std::uint8_t* second = qp->receive_entry(1);
    EXPECT_EQ(abi::load32(second, 16), 64u);
    EXPECT_EQ(abi::load32(second, 32), 0u);
    EXPECT_EQ(abi::load32(second, 36), 0x100u) << "the key that ends a list (adapter data plane A.3.3)";
    EXPECT_EQ(abi::load32(qp->receive_entry(0), 52), s.page.region->lkey) << "a full list has no end";
  });
}

TEST(DriverPostRecv, ASharedQueueTakesAllButOneOfItsEntries) {
  with_shim([](shim& s) {
    ibv_srq_init_attr init{};
    init.attr.max_wr = 15;
    init.attr.max_sge = 1;
    auto* srq = s.device.create_srq(s.pd, &init);
    ASSERT_NE(srq, nullptr);
    ASSERT_EQ(init.attr.max_wr, 15u);
    const ibv_sge sge = s.sge();
    receives all(16, &sge, 1);
    EXPECT_EQ(s.device.post_srq_recv(srq, all.wrs.data(), &all.bad), -ENOMEM);
    EXPECT_EQ(all.bad, &all[15]);
    EXPECT_EQ(abi::load32(srq->record.pointer), 15u);
    receives one(1, &sge, 1);
    EXPECT_EQ(s.device.post_srq_recv(srq, one.wrs.data(), &one.bad), -ENOMEM);
    EXPECT_EQ(one.bad, &one[0]);
    EXPECT_EQ(abi::load32(srq->record.pointer), 15u);
  });
}

/// The top bit of a length means something else to the device: neither kind of receive queue takes it.
TEST(DriverPostRecv, NoSegmentIsTwoGiBLong) {
  with_shim([](shim& s) {
    auto* cq = s.device.create_cq(255);
    queue_pair* qp = s.qp(caps(8, 16), cq);
    ibv_srq_init_attr init{};
    init.attr.max_wr = 15;
    init.attr.max_sge = 1;
    auto* srq = s.device.create_srq(s.pd, &init);
    const ibv_sge most = s.sge(0x7fffffff), more = s.sge(0x80000000);
    receives legal(1, &most, 1), illegal(1, &more, 1);
    EXPECT_EQ(legal.post(s, qp), 0);
    EXPECT_EQ(illegal.post(s, qp), -EINVAL);
    EXPECT_EQ(illegal.bad, &illegal[0]);
    EXPECT_EQ(s.device.post_srq_recv(srq, legal.wrs.data(), &legal.bad), 0);
    illegal.bad = nullptr;
    EXPECT_EQ(s.device.post_srq_recv(srq, illegal.wrs.data(), &illegal.bad), -EINVAL);
    EXPECT_EQ(illegal.bad, &illegal[0]);
    EXPECT_EQ(abi::load32(srq->record.pointer), 1u);
  });
}

/// Requests of one, two and eight basic blocks of 64 bytes: the bound counts requests.
TEST(DriverPostSend, TakesExactlyAsManyAsTheQueueHasWhateverTheirSize) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    for (const std::uint32_t sges : {1u, 6u, 28u}) {
      auto* cq = s.device.create_cq(255);
      queue_pair* qp = s.qp(caps(20, 1, sges), cq);
      const unsigned blocks = 1u << (qp->sq.log_stride - 6);
      EXPECT_EQ(blocks, sges == 1 ? 1u : sges == 6 ? 2u : 8u);
      const std::uint32_t most = qp->caps.max_send_wr;
      EXPECT_EQ(most, qp->sq.count - qp->spare_wqes);
      const ibv_sge sge = s.sge();
      sends fill(most - 2, &sge, 1), four(4, &sge, 1), one(1, &sge, 1);
      EXPECT_EQ(fill.post(s, qp), 0);
      s.bus.stores.clear();
      EXPECT_EQ(four.post(s, qp), -ENOMEM) << "two have a place";
      EXPECT_EQ(four.bad, &four[2]);
      ASSERT_EQ(s.bus.stores.size(), 1u) << "which are rung for";
      EXPECT_EQ(s.bus.stores[0].word(), qp->qp_num << 8);
      EXPECT_EQ(qp->sq.head, most);
      EXPECT_EQ(one.post(s, qp), -ENOMEM);
      EXPECT_EQ(one.bad, &one[0]);
      EXPECT_EQ(s.bus.stores.size(), 1u) << "nothing was posted";
      // One completion of the third request: the two before it were not signalled and are done with it.
      forged_completions completions(*cq);
      completions.send(*qp, 2);
      ibv_wc wc{};
      ASSERT_EQ(s.device.poll_cq(cq, 1, &wc), 1);
      EXPECT_EQ(wc.wr_id, 2u);
      sends again(4, &sge, 1);
      EXPECT_EQ(again.post(s, qp), -ENOMEM);
      EXPECT_EQ(again.bad, &again[3]) << "three places were given back";
    }
  });
}

/// Owner bits by lap, and the words by which the device tells a written request from a prefetched one: in front of it
/// as many entries as it may prefetch are stamped in each of their later lines (libmlx4 stamp_send_wqe).
TEST(DriverPostSend, LapsOfTheRingAndTheStampsInFrontOfIt) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    auto* cq = s.device.create_cq(255);
    queue_pair* qp = s.qp(caps(20, 1, 6), cq);  // 128 bytes
    ASSERT_EQ(qp->sq.log_stride, 7u);
    forged_completions completions(*cq);
    const std::vector<ibv_sge> list(6, s.sge());
    const std::uint32_t count = qp->sq.count;
    for (std::uint32_t n = 0; n < 3 * count + 5; ++n) {
      sends one(1, list.data(), n % 3 == 0 ? 1 : 6);
      ASSERT_EQ(one.post(s, qp), 0) << n;
      const std::uint8_t* entry = qp->send_entry(n);
      ASSERT_EQ(abi::load32(entry) >> 31, n / count & 1) << n;
      ASSERT_EQ(entry[7] & 0x3f, n % 3 == 0 ? 2 : 7) << n;
      if (n % 3 != 0) {
        ASSERT_EQ(abi::load32(entry, 64), 64u) << "a segment of data, no stamp: " << n;
      }
      for (std::uint32_t ahead = 1; ahead <= qp->spare_wqes; ++ahead) {
        const std::uint8_t* next = qp->send_entry(n + ahead);
        ASSERT_EQ(abi::load32(next) >> 31, (((n + ahead) / count & 1) ^ 1)) << "of the lap before: " << n;
        if ((next[7] & 0x3f) > 4) {
          ASSERT_EQ(abi::load32(next, 64), 0xffffffffu) << n << " + " << ahead;
        }
      }
      completions.send(*qp, n);
      ibv_wc wc{};
      ASSERT_EQ(s.device.poll_cq(cq, 1, &wc), 1);
    }
  });
}

/// A chain is stamped request by request.
TEST(DriverPostSend, AChainLeavesTheSameStampsAsOneAfterTheOther) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    auto* cq = s.device.create_cq(255);
    queue_pair* qp = s.qp(caps(20, 1, 6), cq);
    forged_completions completions(*cq);
    const std::vector<ibv_sge> list(6, s.sge());
    for (std::uint32_t n = 0; n < 4 * qp->sq.count; n += 5) {
      sends five(5, list.data(), 6);
      ASSERT_EQ(five.post(s, qp), 0) << n;
      for (std::uint32_t ahead = 0; ahead < qp->spare_wqes; ++ahead) {
        const std::uint8_t* next = qp->send_entry(n + 5 + ahead);
        ASSERT_EQ(abi::load32(next, 64), 0xffffffffu) << n << " + " << ahead;
      }
      completions.send(*qp, n + 4);
      ibv_wc wc{};
      ASSERT_EQ(s.device.poll_cq(cq, 1, &wc), 1);
    }
  });
}

TEST(DriverBlueFlame, HalvesAlternateAndTheDescriptorNamesItsQueueAndIndex) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    auto* cq = s.device.create_cq(255);
    queue_pair* qp = s.qp(caps(20, 1, 1, 100), cq);
    const ibv_sge sge = s.sge(16);
    s.bus.stores.clear();
    for (std::uint32_t n = 0; n < 5; ++n) {
      sends one(1, &sge, 1, IBV_SEND_INLINE);
      ASSERT_EQ(one.post(s, qp), 0);
    }
    ASSERT_EQ(s.bus.stores.size(), 5u);
    const std::uint64_t first = s.bus.stores[0].offset;
    EXPECT_EQ(first % 512, 0u);
    for (std::uint32_t n = 0; n < 5; ++n) {
      const auto& store = s.bus.stores[n];
      EXPECT_EQ(store.offset, first + (n % 2) * 256) << n;
      EXPECT_EQ(store.bytes.size(), 64u);
      EXPECT_EQ(store.word(0) >> 8 & 0xffff, n);
      EXPECT_EQ(store.word(4) >> 8, qp->qp_num);
      EXPECT_EQ(store.word(4) & 0x3f, 3u) << "control, and 20 bytes of inline data";
      EXPECT_EQ(std::memcmp(store.bytes.data(), qp->send_entry(n), 64), 0);
    }
  });
}

/// 256 bytes fit, 272 do not; the halves do not change places for a plain doorbell.
TEST(DriverBlueFlame, ADescriptorExactlyAsLongAsTheBufferAndOneThatIsLonger) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    auto* cq = s.device.create_cq(255);
    queue_pair* qp = s.qp(caps(20, 1, 1, 300), cq);
    // 16 bytes of control; 44, 60, 60, 60 bytes of data with 4 bytes of header in each of four lines.
    const auto stores = [&](std::uint32_t bytes) {
      const ibv_sge sge = s.sge(bytes);
      sends one(1, &sge, 1, IBV_SEND_INLINE);
      EXPECT_EQ(one.post(s, qp), 0);
      return s.bus.stores.back();
    };
    const auto small = stores(16), fits = stores(44 + 3 * 60), longer = stores(44 + 3 * 60 + 1), after = stores(16);
    EXPECT_EQ(fits.bytes.size(), 256u);
    EXPECT_EQ(fits.word(4) & 0x3f, 16u);
    EXPECT_EQ(fits.offset, small.offset ^ 256);
    EXPECT_EQ(longer.bytes.size(), 4u) << "a doorbell";
    EXPECT_EQ(longer.word(), qp->qp_num << 8);
    EXPECT_EQ(after.offset, small.offset) << "it is the turn of the first half again";
  });
}

TEST(DriverBlueFlame, OnlySingleRequestsThatTheRuleNames) {
  const auto kinds = [](rule r) {
    std::string seen;
    with_shim(
        [&seen](shim& s) {
          s.bus.closed = true;
          auto* cq = s.device.create_cq(255);
          queue_pair* qp = s.qp(caps(30, 1, 1, 100), cq);
          const ibv_sge sge = s.sge(16);
          const auto post = [&](sends& w) {
            EXPECT_EQ(w.post(s, qp), 0);
            seen += s.bus.stores.back().bytes.size() == 4 ? 'd' : 'B';
          };
          sends inlined(1, &sge, 1, IBV_SEND_INLINE), plain(1, &sge, 1), two(2, &sge, 1, IBV_SEND_INLINE);
          sends read(1, &sge, 1), empty(1), write(1);
          read[0].opcode = IBV_WR_RDMA_READ;
          write[0].opcode = IBV_WR_RDMA_WRITE;  // without data
          for (sends* w : {&inlined, &plain, &two, &read, &empty, &write}) post(*w);
        },
        [r](host_driver::config& c) { c.blue_flame = r; });
    return seen;
  };
  EXPECT_EQ(kinds(rule::with_inline_data), "BddBdB") << "as libmlx4: a READ counts as inline, a SEND of 16 bytes of "
                                                        "control alone has nothing for it";
}

/// Exactly what the queue pair has room for, over several segments and lines, and one byte more.
TEST(DriverInline, ExactlyAtTheLimitAndOneByteMore) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    auto* cq = s.device.create_cq(255);
    queue_pair* qp = s.qp(caps(20, 1, 4, 100), cq);
    const std::uint32_t most = qp->caps.max_inline_data;
    ASSERT_GE(most, 100u);
    for (std::uint32_t i = 0; i < 4096; ++i) s.page.at()[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    const auto list = [&](std::uint32_t total) {
      return std::vector<ibv_sge>{
          {s.page.address(0), 37, 0}, {s.page.address(37), total - 38, 0}, {s.page.address(total - 1), 1, 0}};
    };
    const auto fits = list(most), longer = list(most + 1);
    sends one(1, fits.data(), 3, IBV_SEND_INLINE), more(1, longer.data(), 3, IBV_SEND_INLINE);
    s.bus.stores.clear();
    EXPECT_EQ(more.post(s, qp), -ENOMEM);
    EXPECT_EQ(more.bad, &more[0]);
    EXPECT_EQ(qp->sq.head, 0u);
    EXPECT_TRUE(s.bus.stores.empty());
    EXPECT_EQ(one.post(s, qp), 0);
    EXPECT_EQ(qp->sq.head, 1u);
    // What the device finds: segments that end with their line, each with its length.
    const std::uint8_t* entry = qp->send_entry(0);
    std::vector<std::uint8_t> found;
    std::size_t at = 16;
    while (found.size() < most) {
      const std::uint32_t header = abi::load32(entry, at);
      ASSERT_EQ(header >> 31, 1u) << at;
      const std::uint32_t bytes = header & 0x7fffffff;
      ASSERT_LE(at % 64 + 4 + bytes, 64u) << "none goes over the end of its line";
      found.insert(found.end(), entry + at + 4, entry + at + 4 + bytes);
      at += 4 + bytes;
      if (found.size() < most) {
        ASSERT_EQ(at % 64, 0u);
      }
    }
    EXPECT_EQ(found, std::vector<std::uint8_t>(s.page.at(), s.page.at() + most));
    EXPECT_EQ(entry[7] & 0x3fu, (at + 15) / 16);
    EXPECT_LE(at, std::size_t{1} << qp->sq.log_stride);
  });
}

/// The second of a chain does not fit: the first goes, and its doorbell.
TEST(DriverInline, ARefusalInAChainKeepsWhatIsBeforeIt) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    auto* cq = s.device.create_cq(255);
    queue_pair* qp = s.qp(caps(20, 1, 1, 60), cq);
    const ibv_sge small = s.sge(16), large = s.sge(qp->caps.max_inline_data + 1);
    sends chain(3, &small, 1, IBV_SEND_INLINE);
    chain[1].sg_list = const_cast<ibv_sge*>(&large);
    s.bus.stores.clear();
    EXPECT_EQ(chain.post(s, qp), -ENOMEM);
    EXPECT_EQ(chain.bad, &chain[1]);
    EXPECT_EQ(qp->sq.head, 1u);
    EXPECT_EQ(s.bus.stores.size(), 1u);
  });
}

TEST(DriverPostSend, ControlWordsAsAsked) {
  with_shim([](shim& s) {
    s.bus.closed = true;
    auto* cq = s.device.create_cq(255);
    const ibv_sge sge = s.sge();
    for (const bool all : {false, true}) {
      queue_pair* qp = s.qp(caps(20, 1), cq, all);
      const unsigned asked[] = {0, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED, IBV_SEND_FENCE};
      for (const unsigned flags : asked) {
        sends one(1, &sge, 1, flags);
        ASSERT_EQ(one.post(s, qp), 0);
      }
      const std::uint32_t signalled = 0xc, solicited = 0x2;  // adapter data plane A.4.1
      for (std::uint32_t n = 0; n < 4; ++n) {
        const std::uint32_t expected =
            (all || asked[n] == IBV_SEND_SIGNALED ? signalled : 0) | (asked[n] == IBV_SEND_SOLICITED ? solicited : 0);
        EXPECT_EQ(abi::load32(qp->send_entry(n), 8), expected) << all << " " << n;
        EXPECT_EQ(qp->send_entry(n)[7] >> 6 & 1, asked[n] == IBV_SEND_FENCE ? 1 : 0) << n;
      }
    }
  });
}

}  // namespace
}  // namespace rnic::driver_test
