// SPDX-License-Identifier: Apache-2.0
// Shared receive queues: every message in one entry and every entry back, whatever happens to the queue pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using host_driver::roce_types;
using host_driver::shared_receive_queue;
using hosts::connection_options;

constexpr std::uint32_t slot = 4096;

/// Host b receives through one queue; host a has ordinary queue pairs.
class shared_hosts {
 public:
  shared_hosts(hosts::two_nodes& system, const connection_options& options, unsigned entries, unsigned hosts = 1)
      : options_(options), first_(make_link(system, options, hosts)) {
    srq_ = make_queue(first_.b.at.pd, entries);
    near_ = hosts::make_buffer(first_.a.at, std::uint64_t{slot} * 64);
    far_ = hosts::make_buffer(first_.b.at, std::uint64_t{slot} * 256);
  }
  shared_receive_queue* make_queue(ibv_pd* pd, unsigned entries) {
    ibv_srq_init_attr attr{};
    attr.attr.max_wr = entries;
    attr.attr.max_sge = 3;
    shared_receive_queue* q = first_.b.dev().create_srq(pd, &attr);
    EXPECT_NE(q, nullptr);
    EXPECT_GE(attr.attr.max_wr, entries);
    return q;
  }
  link connect(shared_receive_queue* q = nullptr) {
    link l = first_;
    l.a.qp = hosts::make_qp(l.a.at, options_, *l.a.send_cq, *l.a.receive_cq);
    l.b.qp = hosts::make_qp(l.b.at, options_, *l.b.send_cq, *l.b.receive_cq, q != nullptr ? q : srq_);
    psn_ += 1000;
    hosts::connect(l.a.at, options_, *l.a.qp, l.b.at, l.b.qp->qp_num, psn_, psn_ + 7);
    hosts::connect(l.b.at, options_, *l.b.qp, l.a.at, l.a.qp->qp_num, psn_ + 7, psn_);
    return l;
  }
  int post(std::uint64_t id, std::vector<ibv_sge> sges, shared_receive_queue* q = nullptr) {
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    return first_.b.dev().post_srq_recv(q != nullptr ? q : srq_, &wr, &bad);
  }
  /// Entry `id` has slot `id` of the buffer, in two pieces.
  int post(std::uint64_t id) {
    return post(id, {{far_.address(id * slot), 100, far_.region->lkey},
                     {far_.address(id * slot + 100), slot - 100, far_.region->lkey}});
  }
  void send(const link& l, std::uint32_t from, std::uint32_t bytes, ibv_wr_opcode opcode = IBV_WR_SEND) {
    request r;
    r.opcode = opcode;
    r.immediate = from;
    r.sges = {{near_.address(std::uint64_t{from} * slot), bytes, near_.region->lkey}};
    r.remote = far_.address(std::uint64_t{slot} * 255);
    r.rkey = far_.region->rkey;
    system_test::post(l.a, r);
  }
  /// The next event of host b that is not of the connections' beginning.
  ibv_async_event event() {
    ibv_async_event e{};
    bool any = true;
    do any = first_.b.dev().get_async_event(&e, ms);
    while (any && (e.event_type == IBV_EVENT_COMM_EST || e.event_type == IBV_EVENT_PORT_ACTIVE));
    if (!any) e.event_type = IBV_EVENT_DEVICE_FATAL;
    return e;
  }
  shared_receive_queue& queue() { return *srq_; }
  link& first() { return first_; }
  hosts::buffer& near() { return near_; }
  hosts::buffer& far() { return far_; }

 private:
  connection_options options_;
  link first_;
  shared_receive_queue* srq_ = nullptr;
  hosts::buffer near_, far_;
  std::uint32_t psn_ = 0;
};

/// Messages of many packets on several queue pairs at once; entries come back in another order than they were taken.
void serve_many(roce_types roce, unsigned ip) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options options;
    options.roce = roce;
    options.ip = ip;
    options.mtu = 256;
    shared_hosts h(system, options, 15);
    std::vector<link> lanes;
    for (unsigned i = 0; i < 4; ++i) lanes.push_back(h.connect());
    std::mt19937_64 random(4);
    fill_random(h.near().at(), std::uint64_t{slot} * 64, random);
    std::vector<std::uint64_t> spare;
    for (std::uint64_t id = 0; id < 15; ++id) ASSERT_EQ(h.post(id), 0);
    EXPECT_EQ(h.post(15), -ENOMEM) << "one entry is never posted";
    std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::uint32_t>>> sent;  // by QPN: slot, bytes
    for (unsigned round = 0; round < 40; ++round) {
      for (unsigned i = 0; i < 8; ++i) {
        const link& l = lanes[random() % lanes.size()];
        const auto from = static_cast<std::uint32_t>(random() % 64);
        const auto bytes = static_cast<std::uint32_t>(random() % 3 == 0 ? random() % 64 : random() % slot);
        h.send(l, from, bytes, i % 2 == 0 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM);
        sent[l.b.qp->qp_num].emplace_back(from, bytes);
      }
      for (unsigned i = 0; i < 8; ++i) {
        const ibv_wc wc = h.first().b.wait_receive();
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
        auto& of_lane = sent[wc.qp_num];
        ASSERT_FALSE(of_lane.empty());
        const auto [from, bytes] = of_lane.front();
        of_lane.erase(of_lane.begin());
        ASSERT_EQ(wc.byte_len, bytes);
        ASSERT_EQ(std::memcmp(h.far().at(wc.wr_id * slot), h.near().at(std::uint64_t{from} * slot), bytes), 0);
        if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) {
          ASSERT_EQ(__builtin_bswap32(wc.imm_data), from);
        }
        spare.push_back(wc.wr_id);
        ASSERT_EQ(h.first().a.wait_send().status, IBV_WC_SUCCESS);
      }
      std::shuffle(spare.begin(), spare.end(), random);
      for (const std::uint64_t id : spare) ASSERT_EQ(h.post(id), 0);
      spare.clear();
    }
    EXPECT_TRUE(h.first().b.silent());
    EXPECT_EQ(h.first().b.dev().destroy_srq(&h.queue()), -EBUSY);
    for (link& l : lanes) ASSERT_EQ(l.b.dev().destroy_qp(l.b.qp), 0);
    EXPECT_EQ(h.first().b.dev().destroy_srq(&h.queue()), 0);
  });
}
TEST(SharedReceive, ServesManyQueuePairsV1) { serve_many(roce_types::v1, 4); }
TEST(SharedReceive, ServesManyQueuePairsV2) { serve_many(roce_types::v2, 6); }

TEST(SharedReceive, EmptyQueueIsNotReady) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    shared_hosts h(system, {}, 8);
    const link l = h.connect(), other = h.connect();
    std::memset(h.near().at(), 0x5a, slot);
    h.send(l, 0, 3000);
    h.send(other, 0, 500, IBV_WR_RDMA_WRITE_WITH_IMM);
    h.first().b.at.bus->spend_ps(5 * ms);
    EXPECT_TRUE(h.first().a.silent());
    EXPECT_TRUE(h.first().b.silent());
    for (std::uint64_t id = 3; id < 5; ++id) {
      ASSERT_EQ(h.post(id), 0);
      const ibv_wc wc = h.first().b.wait_receive();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, id);
      if (wc.opcode == IBV_WC_RECV) {
        EXPECT_EQ(std::memcmp(h.far().at(id * slot), h.near().at(), 3000), 0);
      }
      EXPECT_EQ(h.first().a.wait_send().status, IBV_WC_SUCCESS);
    }
  });
  EXPECT_GT(counted(system, "responder.rnr"), 0U);
}

TEST(SharedReceive, LimitIsToldOnce) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    shared_hosts h(system, {}, 31);
    host_driver::device& dev = h.first().b.dev();
    const link l = h.connect();
    ibv_srq_attr attr{};
    for (unsigned round = 0; round < 3; ++round) {
      attr.srq_limit = 4;
      ASSERT_EQ(dev.modify_srq(&h.queue(), &attr, IBV_SRQ_LIMIT), 0);
      for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(h.post(id), 0);
      const auto one = [&] {
        h.send(l, 0, 10);
        ASSERT_EQ(h.first().b.wait_receive().status, IBV_WC_SUCCESS);
        ASSERT_EQ(h.first().a.wait_send().status, IBV_WC_SUCCESS);
      };
      for (unsigned n = 0; n < 4; ++n) one();  // four are left
      ASSERT_EQ(h.event().event_type, IBV_EVENT_DEVICE_FATAL) << "too early";
      ASSERT_EQ(dev.query_srq(&h.queue(), &attr), 0);
      EXPECT_EQ(attr.srq_limit, 4U);
      one();
      const ibv_async_event e = h.event();
      ASSERT_EQ(e.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
      EXPECT_EQ(e.element.srq, &h.queue());
      one();
      one();
      one();
      ASSERT_EQ(h.event().event_type, IBV_EVENT_DEVICE_FATAL) << "told twice";
      ASSERT_EQ(dev.query_srq(&h.queue(), &attr), 0);
      EXPECT_EQ(attr.srq_limit, 0U);
    }
    attr.srq_limit = 1000;
    EXPECT_EQ(dev.modify_srq(&h.queue(), &attr, IBV_SRQ_LIMIT), -EINVAL);
  });
}

/// A queue pair dies with messages in all stages. Its entries come back, the others go on.
TEST(SharedReceive, EntriesOfADeadQueuePairComeBack) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    connection_options options;
    options.mtu = 256;
    shared_hosts h(system, options, 15);
    std::mt19937_64 random(9);
    const link alive = h.connect();
    for (unsigned round = 0; round < 12; ++round) {
      const link l = h.connect();
      std::set<std::uint64_t> posted;
      // The second or third message does not fit.
      const std::uint64_t small = round % 2 == 0 ? 1 : 2;
      for (std::uint64_t id = 0; id < 6; ++id) {
        if (id == small)
          ASSERT_EQ(h.post(id, {{h.far().address(id * slot), 300, h.far().region->lkey}}), 0);
        else
          ASSERT_EQ(h.post(id), 0);
        posted.insert(id);
      }
      for (unsigned i = 0; i < 5; ++i) h.send(l, 0, round % 3 == 0 ? 40u + 300 * (i == small) : 2000);
      bool too_long = false, last = false;
      unsigned succeeded = 0;
      while (!last) {
        const ibv_async_event e = h.event();
        ASSERT_NE(e.event_type, IBV_EVENT_DEVICE_FATAL) << "no word of the last entry";
        last = e.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
        if (last) {
          EXPECT_EQ(e.element.qp, l.b.qp);
        }
      }
      ibv_wc wc{};
      while (h.first().b.dev().poll_cq(l.b.receive_cq, 1, &wc) == 1) {
        ASSERT_EQ(posted.erase(wc.wr_id), 1U) << "an entry came back twice";
        too_long = too_long || (wc.status == IBV_WC_LOC_LEN_ERR && wc.wr_id == small);
        succeeded += wc.status == IBV_WC_SUCCESS ? 1 : 0;
      }
      EXPECT_TRUE(too_long);
      EXPECT_EQ(succeeded, small);
      for (unsigned i = 0; i < 5; ++i) {
        const ibv_wc sent = h.first().a.wait_send();
        EXPECT_EQ(sent.status, i < small ? IBV_WC_SUCCESS : i == small ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_WR_FLUSH_ERR);
      }
      // What is left is served to the other queue pair, in order.
      for (const std::uint64_t id : posted) {
        fill_random(h.near().at(), slot, random);
        h.send(alive, 0, 2500);
        const ibv_wc got = h.first().b.wait_receive();
        ASSERT_EQ(got.status, IBV_WC_SUCCESS);
        ASSERT_EQ(got.wr_id, id);
        ASSERT_EQ(std::memcmp(h.far().at(id * slot), h.near().at(), 2500), 0);
        ASSERT_EQ(h.first().a.wait_send().status, IBV_WC_SUCCESS);
      }
      ASSERT_EQ(l.b.dev().destroy_qp(l.b.qp), 0);
    }
  });
}

/// Keys of entries belong to the queue's protection domain.
TEST(SharedReceiveSecurity, KeysAreOfTheQueuesDomain) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    shared_hosts h(system, {}, 8);
    hosts::endpoint other = h.first().b.at;
    other.pd = other.device->alloc_pd();
    hosts::buffer theirs = hosts::make_buffer(other, slot);
    std::memset(theirs.at(), 0x77, slot);
    std::memset(h.near().at(), 0x11, slot);
    // An entry with a key of another domain than the queue's, although it might be that of the queue pair.
    shared_receive_queue* foreign = h.make_queue(other.pd, 8);
    const link crossed = h.connect(foreign), plain = h.connect();
    ASSERT_EQ(h.post(0, {{theirs.address(), slot, theirs.region->lkey}}, foreign), 0);
    h.send(crossed, 0, 100);
    EXPECT_EQ(h.first().b.wait_receive().status, IBV_WC_SUCCESS);
    EXPECT_EQ(h.first().a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(theirs.at(), h.near().at(), 100), 0);
    std::memset(theirs.at(), 0x77, slot);
    const std::vector<ibv_sge> wrong[] = {
        {{theirs.address(), slot, theirs.region->lkey}},
        {{h.far().address(), slot, h.far().region->lkey ^ 1}},
        {{h.far().address(std::uint64_t{slot} * 256 - 50), slot, h.far().region->lkey}}};
    std::vector<std::uint8_t> image(h.far().at(), h.far().at() + std::uint64_t{slot} * 256);
    for (const std::vector<ibv_sge>& sges : wrong) {
      const link l = h.connect();
      ASSERT_EQ(h.post(5, sges), 0);
      h.send(l, 0, 100);
      EXPECT_EQ(h.first().b.wait_receive().status, IBV_WC_LOC_PROT_ERR);
      EXPECT_EQ(h.first().a.wait_send().status, IBV_WC_REM_OP_ERR);
      EXPECT_EQ(l.b.state(), IBV_QPS_ERR);
      EXPECT_EQ(h.event().event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
    }
    for (unsigned i = 0; i < slot; ++i) ASSERT_EQ(*theirs.at(i), 0x77);
    EXPECT_EQ(std::memcmp(image.data(), h.far().at(), image.size()), 0);
    // The queue still serves.
    ASSERT_EQ(h.post(6), 0);
    h.send(plain, 0, 100);
    EXPECT_EQ(h.first().b.wait_receive().wr_id, 6U);
  });
}

/// Software that breaks its own list is told, and harms nobody else.
TEST(SharedReceiveSecurity, BrokenListEndsTheQueue) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    shared_hosts h(system, {}, 8);
    const link l = h.connect();
    for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(h.post(id), 0);
    h.queue().entry(0)[2] = 0xff;  // the successor of the first entry
    h.send(l, 0, 100);
    h.send(l, 0, 100);
    EXPECT_EQ(h.first().b.wait_receive().status, IBV_WC_SUCCESS);
    EXPECT_EQ(h.first().a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(h.first().a.wait_send().status, IBV_WC_REM_OP_ERR);
    EXPECT_EQ(l.b.state(), IBV_QPS_ERR);
    std::set<ibv_event_type> events;
    for (unsigned i = 0; i < 3; ++i) events.insert(h.event().event_type);
    EXPECT_EQ(events.count(IBV_EVENT_SRQ_ERR), 1U);
    EXPECT_EQ(events.count(IBV_EVENT_QP_FATAL), 1U);
    EXPECT_EQ(events.count(IBV_EVENT_QP_LAST_WQE_REACHED), 1U);
    shared_receive_queue* fresh = h.make_queue(h.first().b.at.pd, 8);
    const link again = h.connect(fresh);
    ASSERT_EQ(h.post(0, {{h.far().address(), slot, h.far().region->lkey}}, fresh), 0);
    h.send(again, 0, 100);
    EXPECT_EQ(h.first().b.wait_receive().status, IBV_WC_SUCCESS);
  });
}

/// Links of entries lie in memory that a program, or a peer with a key, can write.
TEST(SharedReceive, LinksInMemoryAreNotBelieved) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    shared_hosts h(system, {}, 15);
    shared_receive_queue& q = h.queue();
    for (std::uint32_t i = 0; i < q.count; ++i) q.entry(i)[2] = q.entry(i)[3] = 0xff;
    for (std::uint64_t id = 0; id < 15; ++id) ASSERT_EQ(h.post(id), 0);
    EXPECT_EQ(h.post(15), -ENOMEM);
    // The device follows them to nowhere: the queue fails, and nothing else.
    const link l = h.connect();
    h.send(l, 0, 64);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(h.first().b.wait_receive().status, IBV_WC_SUCCESS);
    h.send(l, 0, 64);
    EXPECT_NE(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(h.event().event_type, IBV_EVENT_SRQ_ERR);
  });
}

/// Completions that the memory of their queue makes up are an error of the poll, not of the program.
TEST(SharedReceive, CompletionsInMemoryAreNotBelieved) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    shared_hosts h(system, {}, 15);
    const link one = h.connect(), own = h.first();
    host_driver::completion_queue& cq = *one.b.receive_cq;
    host_driver::completion_queue* const elsewhere = one.b.dev().create_cq(16);
    ASSERT_NE(elsewhere, nullptr);
    // As many entries as there are, in the hands of software: of a queue pair of another completion queue, of one
    // without requests, of an entry that nobody posted.
    const auto forge = [&](host_driver::completion_queue& at, std::uint32_t qpn, bool send, std::uint16_t index) {
      std::uint8_t* const e = at.entry(at.consumer);
      std::memset(e, 0, 31);
      for (unsigned i = 0; i < 3; ++i) e[1 + i] = static_cast<std::uint8_t>(qpn >> (16 - 8 * i));
      e[24] = static_cast<std::uint8_t>(index >> 8);
      e[25] = static_cast<std::uint8_t>(index);
      e[31] = static_cast<std::uint8_t>(((at.consumer & at.entries) != 0 ? 0x80 : 0) | (send ? 0x40 : 0) | 0x0a);
      ibv_wc wc{};
      return one.b.dev().poll_cq(&at, 1, &wc);
    };
    EXPECT_EQ(forge(*elsewhere, own.b.qp->qp_num, true, 0), -EINVAL);
    EXPECT_EQ(forge(*elsewhere, own.b.qp->qp_num, false, 0), -EINVAL);
    EXPECT_EQ(forge(cq, 0xabcdef, false, 0), -EINVAL);
    EXPECT_EQ(forge(*one.b.send_cq, own.b.qp->qp_num, true, 5), -EINVAL) << "nothing was sent";
    EXPECT_EQ(forge(cq, own.b.qp->qp_num, false, 0), -EINVAL) << "nothing was posted";
  });
}

/// An event about a queue that is gone is told to nobody.
TEST(SharedReceive, EventsEndWithTheirQueue) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    shared_hosts h(system, {}, 15);
    shared_receive_queue* const q = h.make_queue(h.first().b.at.pd, 15);
    ibv_srq_attr limit{};
    limit.srq_limit = 2;
    ASSERT_EQ(h.first().b.dev().modify_srq(q, &limit, IBV_SRQ_LIMIT), 0);
    const link l = h.connect(q);
    ASSERT_EQ(h.post(0, {{h.far().address(), slot, h.far().region->lkey}}, q), 0);
    ASSERT_EQ(h.post(1, {{h.far().address(), slot, h.far().region->lkey}}, q), 0);
    h.send(l, 0, 64);
    EXPECT_EQ(h.first().b.wait_receive().status, IBV_WC_SUCCESS);
    l.b.at.bus->spend_ps(100 * us);
    ASSERT_EQ(l.b.dev().destroy_qp(l.b.qp), 0);  // its commands fetch the event
    ASSERT_EQ(l.b.dev().destroy_srq(q), 0);
    EXPECT_EQ(h.event().event_type, IBV_EVENT_DEVICE_FATAL) << "none";
  });
}

}  // namespace
}  // namespace rnic::system_test
