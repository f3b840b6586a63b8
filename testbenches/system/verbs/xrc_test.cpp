// SPDX-License-Identifier: Apache-2.0
// XRC: one pair of queue pairs, many receive queues behind it, and no way into those of another domain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "testbenches/system/verbs/keys.h"

namespace rnic::system_test {
namespace {

using bench::connection_options;
using fate = fabric::cable_fault_if::fate;
using host_driver::completion_queue;
using host_driver::queue_pair;
using host_driver::shared_receive_queue;
using host_driver::xrc_domain;

constexpr std::uint32_t place = 16384;
constexpr unsigned places = 16;

/// A process at host b: a receive queue, where its completions go, and memory under its own protection domain.
struct process {
  bench::endpoint at;
  completion_queue* cq = nullptr;
  shared_receive_queue* srq = nullptr;
  bench::buffer memory;

  int post(std::uint64_t id) const {
    ibv_sge sges[2] = {{memory.address(id * place), 100, memory.region->lkey},
                       {memory.address(id * place + 100), place - 100, memory.region->lkey}};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.sg_list = sges;
    wr.num_sge = 2;
    return at.device->post_srq_recv(srq, &wr, &bad);
  }
  ibv_wc wait(std::uint64_t timeout_ps = 100 * ms) const {
    ibv_wc wc{};
    EXPECT_EQ(at.device->wait_cq(cq, 1, &wc, timeout_ps), 1) << "no completion";
    return wc;
  }
  bool silent() const {
    ibv_wc wc{};
    return at.device->poll_cq(cq, 1, &wc) == 0;
  }
};

connection_options quick() {
  connection_options o;
  o.mtu = 1024;
  o.ack_timeout = 6;
  o.retries = 3;
  return o;
}

/// Host a sends, host b receives.
class town {
 public:
  explicit town(bench::two_nodes& system) : options_(quick()), first_(make_link(system, options_)) {
    domain = first_.b.dev().open_xrcd();
    EXPECT_NE(domain, nullptr);
    near = bench::make_buffer(first_.a.at, place * places);
    fill_random(near.at(), place * places, random);
  }
  process new_process(xrc_domain* in) {
    process p;
    p.at = first_.b.at;
    p.at.pd = p.at.device->alloc_pd();
    p.cq = p.at.device->create_cq(256);
    ibv_srq_init_attr_ex attr{};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = in != nullptr ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
    attr.pd = p.at.pd;
    attr.xrcd = in;
    attr.cq = p.cq;
    attr.attr.max_wr = 64;
    attr.attr.max_sge = 2;
    p.srq = p.at.device->create_srq_ex(&attr);
    EXPECT_NE(p.srq, nullptr);
    p.memory = bench::make_buffer(p.at, place * places);
    std::memset(p.memory.at(), 0, place * places);
    return p;
  }
  queue_pair* make(bench::endpoint& e, ibv_qp_type type, completion_queue* cq, xrc_domain* in,
                   const std::uint32_t* wanted = nullptr) {
    ibv_qp_init_attr_ex attr{};
    attr.comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
    attr.qp_type = type;
    attr.pd = e.pd;
    attr.xrcd = in;
    attr.send_cq = cq;
    attr.cap = {64, 0, 2, 0, 64};
    queue_pair* const qp = e.device->create_qp_ex(&attr, nullptr, wanted);
    EXPECT_NE(qp, nullptr);
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = 1;
    init.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    bench::require(e.device->modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
                   "modify_qp to INIT");
    return qp;
  }
  void join(const link& l) {
    psn_ += 1000;
    bench::connect(const_cast<bench::endpoint&>(l.a.at), options_, *l.a.qp, l.b.at, l.b.qp->qp_num, psn_, psn_ + 7);
    bench::connect(const_cast<bench::endpoint&>(l.b.at), options_, *l.b.qp, l.a.at, l.a.qp->qp_num, psn_ + 7, psn_);
  }
  /// A queue pair that sends and one that receives into `in` (nullptr: one that sends as well).
  link lane(xrc_domain* in, const std::uint32_t* wanted = nullptr) {
    link l = first_;
    l.a.qp = make(l.a.at, IBV_QPT_XRC_SEND, l.a.send_cq, nullptr);
    l.b.qp = in != nullptr ? make(l.b.at, IBV_QPT_XRC_RECV, nullptr, in, wanted)
                           : make(l.b.at, IBV_QPT_XRC_SEND, l.b.send_cq, nullptr);
    join(l);
    return l;
  }
  void post(const link& l, ibv_wr_opcode opcode, std::uint32_t srqn, std::uint64_t from, std::uint32_t bytes,
            std::uint64_t remote = 0, std::uint32_t rkey = 0) const {
    ibv_sge sge{near.address(from), bytes, near.region->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = opcode;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.imm_data = __builtin_bswap32(0xabcd0000 | bytes);
    wr.wr.rdma = {remote, rkey};
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) bench::make_atomic(wr, false, remote, rkey, 0);
    wr.qp_type.xrc.remote_srqn = srqn;
    bench::require(l.a.dev().post_send(l.a.qp, &wr, &bad), "post_send");
  }
  void settle() const { first_.b.at.bus->spend_ps(20 * us); }
  link& first() { return first_; }

  xrc_domain* domain = nullptr;
  bench::buffer near;
  std::mt19937_64 random{5};

 private:
  connection_options options_;
  link first_;
  std::uint32_t psn_ = 0;
};

template <class Body>
void in_town(Body body, fabric::cable_fault_if* fault = nullptr) {
  bench::two_nodes system(default_system());
  if (fault != nullptr) system.cable().set_fault(fault);
  run(system, [&] {
    town t(system);
    body(t);
  });
}

/// Looks at the bytes of requests on the cable: behind the base transport header is the queue's number.
class watcher : public fabric::cable_fault_if {
 public:
  fate on_frame(unsigned, tlm::frame& f) override {
    wire::packet p;
    if (wire::decode(f.data(), f.length, p) != wire::decode_error::none || (p.bth.opcode >> 5) != 5) return fate::pass;
    const std::uint8_t* const h = f.data() + p.bth_offset + 12;
    const unsigned code = p.bth.opcode & 0x1f;
    if (code >= 0x0d && code <= 0x12) {
      ++answers;
      return fate::pass;
    }
    ++requests;
    seen.push_back(std::uint32_t{h[0]} << 24 | std::uint32_t{h[1]} << 16 | std::uint32_t{h[2]} << 8 | h[3]);
    if (lose != 0 && --lose == 0) return fate::lose;
    return fate::pass;
  }
  unsigned requests = 0, answers = 0, lose = 0;
  std::vector<std::uint32_t> seen;
};

TEST(Xrc, OneConnectionReachesAllQueuesOfItsDomain) {
  watcher w;
  in_town(
      [&](town& t) {
        process people[] = {t.new_process(t.domain), t.new_process(t.domain), t.new_process(t.domain)};
        const link l = t.lane(t.domain);
        EXPECT_NE(l.b.qp->qp_num & 1u << 23, 0U);
        std::uint64_t id = 0;
        for (const std::uint32_t bytes : {0u, 1u, 100u, 1024u, 1025u, 9000u})
          for (const process& p : people) {
            SCOPED_TRACE(bytes);
            const ibv_wr_opcode opcode = id % 2 == 0 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
            ASSERT_EQ(p.post(id % places), 0);
            t.post(l, opcode, p.srq->srqn, 77 * id, bytes);
            const ibv_wc wc = p.wait();
            EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
            EXPECT_EQ(wc.opcode, IBV_WC_RECV);
            EXPECT_EQ(wc.wr_id, id % places);
            EXPECT_EQ(wc.byte_len, bytes);
            EXPECT_EQ(wc.qp_num, l.b.qp->qp_num);
            if (opcode == IBV_WR_SEND_WITH_IMM) {
              EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
              EXPECT_EQ(__builtin_bswap32(wc.imm_data), 0xabcd0000 | bytes);
            }
            EXPECT_EQ(std::memcmp(p.memory.at((id % places) * place), t.near.at(77 * id), bytes), 0);
            EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
            ++id;
          }
        for (const process& p : people) {
          EXPECT_TRUE(p.silent());
          EXPECT_NE(std::find(w.seen.begin(), w.seen.end(), p.srq->srqn), w.seen.end());
        }
        EXPECT_EQ(w.requests, 3U * (1 + 1 + 1 + 1 + 2 + 9));  // each packet of a message names the queue
        EXPECT_GE(w.answers, 18U);                            // some packets ask in the middle of a message
      },
      &w);
}

/// Numbers that the caller chooses: of a queue pair also without the bit that others of its kind have.
TEST(Xrc, NumbersMayBeChosen) {
  in_town([](town& t) {
    process p = t.new_process(t.domain);
    host_driver::device& device = *p.at.device;
    ibv_srq_init_attr_ex attr{};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.pd = p.at.pd;
    attr.xrcd = t.domain;
    attr.cq = p.cq;
    attr.attr = {16, 2, 0};
    const std::uint32_t chosen = p.srq->srqn + 77, beyond = 1u << 20;
    p.srq = device.create_srq_ex(&attr, &chosen);
    ASSERT_NE(p.srq, nullptr);
    EXPECT_EQ(p.srq->srqn, chosen);
    EXPECT_EQ(device.create_srq_ex(&attr, &chosen), nullptr);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_EQ(device.create_srq_ex(&attr, &beyond), nullptr);
    EXPECT_EQ(errno, EINVAL);
    std::uint64_t id = 0;
    for (const std::uint32_t qpn : {0x345u, 0x800347u}) {
      const link l = t.lane(t.domain, &qpn);
      EXPECT_EQ(l.b.qp->qp_num, qpn);
      ASSERT_EQ(p.post(id), 0);
      t.post(l, IBV_WR_SEND, chosen, 100, 1500);
      const ibv_wc wc = p.wait();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, id);
      EXPECT_EQ(wc.qp_num, qpn);
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      EXPECT_EQ(std::memcmp(p.memory.at(id * place), t.near.at(100), 1500), 0);
      EXPECT_EQ(device.destroy_qp(l.b.qp), 0);
      ++id;
    }
    ASSERT_EQ(device.destroy_srq(p.srq), 0);
    p.srq = device.create_srq_ex(&attr, &chosen);  // the number is free again
    EXPECT_NE(p.srq, nullptr);
  });
}

/// What a queue pair has received belongs to the processes whose queues were named, not to who made the queue pair.
TEST(Xrc, CompletionsOutliveTheQueuePair) {
  in_town([](town& t) {
    const process p = t.new_process(t.domain), other = t.new_process(t.domain);
    for (unsigned round = 0; round < 3; ++round) {
      SCOPED_TRACE(round);
      const link l = t.lane(t.domain);
      const std::uint32_t qpn = l.b.qp->qp_num;
      for (std::uint64_t id = 0; id < 4; ++id) {
        ASSERT_EQ(p.post(id), 0);
        ASSERT_EQ(other.post(id), 0);
      }
      for (std::uint64_t id = 0; id < 4; ++id) {
        t.post(l, IBV_WR_SEND, p.srq->srqn, 100 * id, 2000);
        t.post(l, IBV_WR_SEND_WITH_IMM, other.srq->srqn, 100 * id, 500);
        EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
        EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      }
      t.settle();
      if (round != 0) {
        EXPECT_EQ(p.wait().wr_id, 0U);  // one of them while the queue pair is there
      }
      ASSERT_EQ(l.b.dev().destroy_qp(l.b.qp), 0);
      for (std::uint64_t id = round != 0 ? 1 : 0; id < 4; ++id) {
        const ibv_wc wc = p.wait();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RECV);
        EXPECT_EQ(wc.wr_id, id);
        EXPECT_EQ(wc.byte_len, 2000U);
        EXPECT_EQ(wc.qp_num, qpn);
        EXPECT_EQ(std::memcmp(p.memory.at(id * place), t.near.at(100 * id), 2000), 0);
      }
      for (std::uint64_t id = 0; id < 4; ++id) EXPECT_EQ(other.wait().wr_id, id);
      EXPECT_TRUE(p.silent());
    }
  });
}

/// Several receive queues on one completion queue: one goes with messages that nobody fetched, another comes.
TEST(Xrc, CompletionsEndWithTheirReceiveQueue) {
  in_town([](town& t) {
    process gone = t.new_process(t.domain), stays = t.new_process(t.domain);
    ibv_srq_init_attr_ex attr{};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.pd = stays.at.pd;
    attr.xrcd = t.domain;
    attr.cq = gone.cq;
    attr.attr.max_wr = 64;
    attr.attr.max_sge = 2;
    stays.srq = stays.at.device->create_srq_ex(&attr);
    ASSERT_NE(stays.srq, nullptr);
    stays.cq = gone.cq;
    const link l = t.lane(t.domain);
    for (std::uint64_t id = 0; id < 3; ++id) {
      ASSERT_EQ(gone.post(id), 0);
      ASSERT_EQ(stays.post(10 + id), 0);
    }
    for (std::uint64_t id = 0; id < 3; ++id)
      for (const process* p : {&gone, &stays}) {
        t.post(l, IBV_WR_SEND, p->srq->srqn, 0, 64);
        EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      }
    t.settle();
    ASSERT_EQ(gone.at.device->destroy_srq(gone.srq), 0);
    gone.srq = gone.at.device->create_srq_ex(&attr);  // perhaps with the same number
    ASSERT_NE(gone.srq, nullptr);
    for (std::uint64_t id = 0; id < 3; ++id) {
      const ibv_wc wc = stays.wait();
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, 10 + id);
    }
    ibv_wc wc{};
    EXPECT_EQ(stays.at.device->poll_cq(stays.cq, 1, &wc), 0);
    ASSERT_EQ(stays.post(1), 0);
    t.post(l, IBV_WR_SEND, stays.srq->srqn, 0, 64);
    EXPECT_EQ(stays.wait().wr_id, 1U);
    // In any order: the completion queue is in use as long as one of them is.
    EXPECT_EQ(stays.at.device->destroy_cq(stays.cq), -EBUSY);
    EXPECT_EQ(stays.at.device->destroy_srq(stays.srq), 0);
    EXPECT_EQ(stays.at.device->destroy_cq(stays.cq), -EBUSY);
    EXPECT_EQ(gone.at.device->destroy_srq(gone.srq), 0);
    EXPECT_EQ(stays.at.device->destroy_cq(stays.cq), 0);
  });
}

TEST(Xrc, MemoryIsThatOfTheQueueNamed) {
  in_town([](town& t) {
    const process one = t.new_process(t.domain), other = t.new_process(t.domain);
    const link l = t.lane(t.domain);
    const auto at = one.memory.address(300);
    const auto key = one.memory.region->rkey;
    t.post(l, IBV_WR_RDMA_WRITE, one.srq->srqn, 0, 5000, at, key);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    t.settle();
    EXPECT_EQ(std::memcmp(one.memory.at(300), t.near.at(), 5000), 0);
    t.post(l, IBV_WR_RDMA_READ, one.srq->srqn, place, 5000, at, key);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(t.near.at(place), t.near.at(), 5000), 0);
    std::uint64_t before = 0, after = 0;
    std::memcpy(&before, one.memory.at(304), 8);
    t.post(l, IBV_WR_ATOMIC_FETCH_AND_ADD, one.srq->srqn, place, 8, at + 4, key);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    t.settle();
    std::memcpy(&after, one.memory.at(304), 8);
    EXPECT_EQ(after, before + 1);
    EXPECT_EQ(one.post(2), 0);
    t.post(l, IBV_WR_RDMA_WRITE_WITH_IMM, one.srq->srqn, 9, 3000, at, key);
    const ibv_wc wc = one.wait();
    EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(wc.wr_id, 2U);
    EXPECT_EQ(std::memcmp(one.memory.at(300), t.near.at(9), 3000), 0);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    // The same key by way of another process's queue.
    const std::vector<std::uint8_t> image(one.memory.at(), one.memory.at() + place);
    for (const ibv_wr_opcode verb : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
      const link intruder = t.lane(t.domain);
      t.post(intruder, verb, other.srq->srqn, 4 * place, 8, at + 4, key);
      EXPECT_EQ(intruder.a.wait_send().status, IBV_WC_REM_ACCESS_ERR);
      t.settle();
      EXPECT_EQ(intruder.b.state(), IBV_QPS_ERR);
    }
    EXPECT_EQ(std::memcmp(one.memory.at(), image.data(), place), 0);
  });
}

/// A SEND ends a key of the protection domain that the queue it names belongs to.
TEST(Xrc, SendWithInvalidateEndsAKeyOfTheQueuesOwner) {
  in_town([](town& t) {
    const process p = t.new_process(t.domain), other = t.new_process(t.domain);
    link own = t.first();
    own.b.at.pd = p.at.pd;
    connection_options by_kernel = quick();
    by_kernel.kernel = true;  // on its own queue pair the process may register memory
    own = make_sibling(own, by_kernel);
    patchwork pages(p.at);
    auto registration = pages.registration({3, 1, 2}, 0, 3 * 4096, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
    ASSERT_EQ(pages.register_on(own.b, registration).status, IBV_WC_SUCCESS);
    const std::uint32_t key = pages.region->rkey;
    const auto write = [&](const link& via) {
      t.post(via, IBV_WR_RDMA_WRITE, p.srq->srqn, 500, 100, patchwork::iova + 4000, key);
      return via.a.wait_send().status;
    };
    const auto send = [&](const link& via, const process& to) {
      EXPECT_EQ(to.post(1), 0);
      ibv_sge sge{t.near.address(64), 1500, t.near.region->lkey};
      ibv_send_wr wr{}, *bad = nullptr;
      wr.opcode = IBV_WR_SEND_WITH_INV;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.invalidate_rkey = key;
      wr.qp_type.xrc.remote_srqn = to.srq->srqn;
      bench::require(via.a.dev().post_send(via.a.qp, &wr, &bad), "post_send");
      return to.wait();
    };
    const link l = t.lane(t.domain);
    EXPECT_EQ(write(l), IBV_WC_SUCCESS);
    t.settle();
    for (unsigned i = 0; i < 100; ++i) ASSERT_EQ(*pages.byte(4000 + i), t.near.at(500)[i]);
    EXPECT_EQ(send(t.lane(t.domain), other).status, IBV_WC_REM_INV_REQ_ERR);  // the key of somebody else
    EXPECT_EQ(write(l), IBV_WC_SUCCESS);
    const ibv_wc wc = send(l, p);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wc_flags & IBV_WC_WITH_INV, static_cast<unsigned>(IBV_WC_WITH_INV));
    EXPECT_EQ(wc.invalidated_rkey, key);
    EXPECT_EQ(wc.byte_len, 1500U);
    EXPECT_EQ(std::memcmp(p.memory.at(place), t.near.at(64), 1500), 0);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
    EXPECT_EQ(write(l), IBV_WC_REM_ACCESS_ERR);
  });
}

TEST(Xrc, NoWayIntoOtherQueues) {
  in_town([](town& t) {
    xrc_domain* const foreign = t.first().b.dev().open_xrcd();
    const process mine = t.new_process(t.domain), theirs = t.new_process(foreign), basic = t.new_process(nullptr);
    for (const process& p : {mine, theirs, basic})
      for (unsigned i = 0; i < 4; ++i) ASSERT_EQ(p.post(i), 0);
    const link good = t.lane(t.domain);
    const auto refused = [&](const link& l, std::uint32_t srqn, ibv_wr_opcode verb, const process& owner) {
      SCOPED_TRACE(srqn);
      t.post(l, verb, srqn, 0, verb == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 64, owner.memory.address(),
             owner.memory.region->rkey);
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_REM_INV_REQ_ERR);
      t.settle();
      EXPECT_EQ(l.b.state(), IBV_QPS_ERR);
      ibv_async_event e{};
      do ASSERT_TRUE(l.b.dev().get_async_event(&e, ms));
      while (e.event_type != IBV_EVENT_QP_REQ_ERR);
      EXPECT_EQ(e.element.qp, l.b.qp);
    };
    for (const ibv_wr_opcode verb :
         {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
      refused(t.lane(t.domain), theirs.srq->srqn, verb, theirs);
      refused(t.lane(t.domain), basic.srq->srqn, verb, basic);
      refused(t.lane(foreign), mine.srq->srqn, verb, mine);
      // A queue pair that only sends has no domain, and a basic queue is in none.
      refused(t.lane(nullptr), basic.srq->srqn, verb, basic);
    }
    for (const std::uint32_t srqn : {0u, mine.srq->srqn + 100, 0xffffffu})
      refused(t.lane(t.domain), srqn, IBV_WR_SEND, mine);
    for (const process& p : {mine, theirs, basic}) {
      EXPECT_TRUE(p.silent());
      for (unsigned i = 0; i < place; ++i) ASSERT_EQ(*p.memory.at(i), 0);
    }
    t.post(good, IBV_WR_SEND, mine.srq->srqn, 0, 64);
    EXPECT_EQ(mine.wait().status, IBV_WC_SUCCESS);
    EXPECT_EQ(good.a.wait_send().status, IBV_WC_SUCCESS);
  });
}

TEST(Xrc, OtherTransportsAreNotMixedUp) {
  in_town([](town& t) {
    const process p = t.new_process(t.domain);
    ASSERT_EQ(p.post(0), 0);
    // An RC queue pair and an XRC one on either side: neither takes the other's packets.
    link l = t.first();
    l.a.qp = bench::make_qp(l.a.at, quick(), *l.a.send_cq, *l.a.receive_cq);
    l.b.qp = t.make(l.b.at, IBV_QPT_XRC_RECV, nullptr, t.domain);
    t.join(l);
    request r;
    r.opcode = IBV_WR_SEND;
    r.sges = {{t.near.address(), 64, t.near.region->lkey}};
    post(l.a, r);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_RETRY_EXC_ERR);
    link m = t.first();
    m.a.qp = t.make(m.a.at, IBV_QPT_XRC_SEND, m.a.send_cq, nullptr);
    m.b.qp = bench::make_qp(m.b.at, quick(), *m.b.send_cq, *m.b.receive_cq);
    t.join(m);
    post_receive(m.b, {{p.memory.address(), 64, p.memory.region->lkey}});
    t.post(m, IBV_WR_SEND, p.srq->srqn, 0, 64);
    EXPECT_EQ(m.a.wait_send().status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_TRUE(p.silent());
    EXPECT_EQ(*p.memory.at(), 0);
    // What receives does not send, and has no queue of its own.
    ibv_send_wr wr{}, *bad = nullptr;
    EXPECT_EQ(l.b.dev().post_send(l.b.qp, &wr, &bad), -EINVAL);
    ibv_recv_wr rwr{}, *rbad = nullptr;
    EXPECT_EQ(l.b.dev().post_recv(l.b.qp, &rwr, &rbad), -EINVAL);
  });
}

TEST(Xrc, WaitsForAnEmptyQueue) {
  in_town([](town& t) {
    const process empty = t.new_process(t.domain), full = t.new_process(t.domain);
    for (unsigned i = 0; i < 4; ++i) ASSERT_EQ(full.post(i), 0);
    const link l = t.lane(t.domain);
    t.post(l, IBV_WR_SEND, full.srq->srqn, 0, 2000);
    t.post(l, IBV_WR_SEND, empty.srq->srqn, 100, 3000);
    t.post(l, IBV_WR_SEND, full.srq->srqn, 200, 10);
    EXPECT_EQ(full.wait().byte_len, 2000U);
    t.first().b.at.bus->spend_ps(300 * us);
    EXPECT_TRUE(full.silent());  // in order
    ASSERT_EQ(empty.post(5), 0);
    EXPECT_EQ(empty.wait().wr_id, 5U);
    EXPECT_EQ(full.wait().byte_len, 10U);
    EXPECT_EQ(std::memcmp(empty.memory.at(5 * place), t.near.at(100), 3000), 0);
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
  });
}

TEST(Xrc, EveryPacketLostOnce) {
  watcher w;
  in_town(
      [&](town& t) {
        const process one = t.new_process(t.domain), two = t.new_process(t.domain);
        const link l = t.lane(t.domain);
        for (unsigned lost = 1; lost <= 7; ++lost) {
          SCOPED_TRACE(lost);
          ASSERT_EQ(one.post(0), 0);
          ASSERT_EQ(two.post(1), 0);
          fill_random(t.near.at(), 8192, t.random);
          w.lose = lost;
          t.post(l, IBV_WR_SEND, one.srq->srqn, 0, 3000);
          t.post(l, IBV_WR_RDMA_READ, two.srq->srqn, place, 2000, two.memory.address(8 * place),
                 two.memory.region->rkey);
          t.post(l, IBV_WR_SEND, two.srq->srqn, 4000, 2500);
          for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
          EXPECT_EQ(w.lose, 0U);
          EXPECT_EQ(one.wait().byte_len, 3000U);
          EXPECT_EQ(two.wait().byte_len, 2500U);
          EXPECT_EQ(std::memcmp(one.memory.at(), t.near.at(), 3000), 0);
          EXPECT_EQ(std::memcmp(two.memory.at(place), t.near.at(4000), 2500), 0);
          EXPECT_TRUE(one.silent() && two.silent());
        }
      },
      &w);
}

/// A message that its queue pair cannot finish gives its receive back.
TEST(Xrc, HalfAMessageIsFlushed) {
  in_town([](town& t) {
    const process p = t.new_process(t.domain);
    ASSERT_EQ(p.post(3), 0);
    ASSERT_EQ(p.post(4), 0);
    const link l = t.lane(t.domain);
    ibv_sge sges[2] = {{t.near.address(), 4096, t.near.region->lkey}, {t.near.address(), 64, t.near.region->lkey ^ 1}};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = sges;
    wr.num_sge = 2;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.qp_type.xrc.remote_srqn = p.srq->srqn;
    ASSERT_EQ(l.a.dev().post_send(l.a.qp, &wr, &bad), 0);
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_LOC_PROT_ERR);  // its end never comes
    t.settle();
    EXPECT_TRUE(p.silent());
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(l.b.dev().modify_qp(l.b.qp, &attr, IBV_QP_STATE), 0);
    const ibv_wc wc = p.wait();
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(wc.wr_id, 3U);
    // The queue itself goes on.
    const link next = t.lane(t.domain);
    t.post(next, IBV_WR_SEND, p.srq->srqn, 0, 2000);
    EXPECT_EQ(p.wait().wr_id, 4U);
    EXPECT_EQ(next.a.wait_send().status, IBV_WC_SUCCESS);
  });
}

/// The times at which a fixed piece of work completes.
std::string history(const sim::timebase::options& timing) {
  bench::two_nodes_config config = default_system();
  config.timing = timing;
  bench::two_nodes system(config);
  std::string text;
  run(system, [&] {
    town t(system);
    const process one = t.new_process(t.domain), two = t.new_process(t.domain);
    const link l = t.lane(t.domain);
    for (unsigned i = 0; i < 12; ++i) {
      const process& p = i % 3 == 0 ? one : two;
      t.post(l, IBV_WR_SEND, p.srq->srqn, i, 1000 * i);
      if (i % 4 == 2) l.b.at.bus->spend_ps(30 * us);  // nothing posted yet
      EXPECT_EQ(p.post(i), 0);
      text += std::to_string(p.wait().byte_len) + "@" + std::to_string(system.now_ps()) + " ";
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      text += std::to_string(system.now_ps()) + " ";
    }
  });
  return text;
}

TEST(Xrc, SleepOrderAndRunningAheadChangeNothing) {
  sim::timebase::options always, shuffled, stepping;
  always.always_tick = true;
  shuffled.shuffle_seed = 7;
  stepping.run_ahead = false;
  std::vector<std::string> texts;
  for (const auto& timing : {sim::timebase::options{}, always, shuffled, stepping})
    texts.push_back(in_child([&] { return history(timing); }));
  EXPECT_GT(texts[0].size(), 100U);
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
}

TEST(Xrc, ObjectsHoldEachOther) {
  in_town([](town& t) {
    host_driver::device& dev = t.first().b.dev();
    xrc_domain* const x = dev.open_xrcd();
    const process p = t.new_process(x);
    const std::uint32_t srqn = p.srq->srqn;
    EXPECT_EQ(dev.close_xrcd(x), -EBUSY);
    const link l = t.lane(x);
    EXPECT_EQ(dev.destroy_cq(p.cq), -EBUSY);
    EXPECT_EQ(dev.destroy_srq(p.srq), 0);
    EXPECT_EQ(dev.destroy_cq(p.cq), 0);
    EXPECT_EQ(dev.close_xrcd(x), -EBUSY);
    t.post(l, IBV_WR_SEND, srqn, 0, 64);  // no such queue any more
    EXPECT_EQ(l.a.wait_send().status, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(dev.destroy_qp(l.b.qp), 0);
    EXPECT_EQ(dev.close_xrcd(x), 0);
  });
}

}  // namespace
}  // namespace rnic::system_test
