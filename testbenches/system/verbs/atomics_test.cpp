// SPDX-License-Identifier: Apache-2.0
// Atomics: what they do to memory, exactly once whatever is lost, one after the other, and only where they may.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using hosts::connection_options;
using fate = fabric::cable_fault_if::fate;
using wire::operation;

constexpr std::uint64_t counter_bytes = 4096;

/// Memory of the host: little-endian.
std::uint64_t load(const std::uint8_t* p) {
  std::uint64_t v = 0;
  for (unsigned i = 8; i-- != 0;) v = v << 8 | p[i];
  return v;
}
void store(std::uint8_t* p, std::uint64_t v) {
  for (unsigned i = 0; i < 8; ++i) p[i] = static_cast<std::uint8_t>(v >> (8 * i));
}

enum class verb : std::uint8_t { fetch_add, compare_swap, masked_compare_swap, masked_fetch_add };
constexpr verb all_verbs[] = {verb::fetch_add, verb::compare_swap, verb::masked_compare_swap, verb::masked_fetch_add};
bool adds(verb v) { return v == verb::fetch_add || v == verb::masked_fetch_add; }

struct atomic_request {
  verb opcode = verb::fetch_add;
  std::uint64_t remote = 0, compare_add = 1, swap = 0, swap_mask = 0, compare_add_mask = 0;
  std::uint32_t rkey = 0;
  std::uint64_t id = 0;
};

void post_atomic(const side& s, const atomic_request& r, std::vector<ibv_sge> sges) {
  host_driver::masked_atomic_wr wr(r.opcode == verb::masked_fetch_add
                                       ? host_driver::driver_opcode::masked_fetch_add
                                       : host_driver::driver_opcode::masked_compare_swap);
  if (r.opcode == verb::fetch_add) wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  if (r.opcode == verb::compare_swap) wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr_id = r.id;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.atomic = {r.remote, r.compare_add, r.swap, r.rkey};
  wr.swap_mask = r.swap_mask;
  wr.compare_add_mask = r.compare_add_mask;
  ibv_send_wr* bad = nullptr;
  hosts::require(s.dev().post_send(s.qp, &wr, &bad), "post_send");
}

/// The definition of each operation, bit by bit.
std::uint64_t result_of(const atomic_request& r, std::uint64_t memory) {
  const auto bit = [](std::uint64_t v, unsigned i) { return v >> i & 1; };
  std::uint64_t after = 0;
  if (adds(r.opcode)) {
    const std::uint64_t ends = r.opcode == verb::masked_fetch_add ? r.compare_add_mask : 0;
    std::uint64_t carry = 0;
    for (unsigned i = 0; i < 64; ++i) {
      const std::uint64_t sum = bit(memory, i) + bit(r.compare_add, i) + carry;
      after |= (sum & 1) << i;
      carry = bit(ends, i) != 0 ? 0 : sum >> 1;
    }
    return after;
  }
  const bool masked = r.opcode == verb::masked_compare_swap;
  bool equal = true;
  for (unsigned i = 0; i < 64; ++i)
    equal = equal && (bit(memory, i) == bit(r.compare_add, i) || (masked && bit(r.compare_add_mask, i) == 0));
  for (unsigned i = 0; i < 64; ++i)
    after |= (equal && (!masked || bit(r.swap_mask, i) != 0) ? bit(r.swap, i) : bit(memory, i)) << i;
  return after;
}

TEST(Atomics, DoWhatTheyAreDefinedToDo) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    unsigned hosts = 1;
    for (const encapsulation_case& e : encapsulations) {
      connection_options options;
      options.roce = e.roce;
      options.ip = e.ip;
      const link l = make_link(system, options, std::exchange(hosts, hosts + 10));
      hosts::buffer near = hosts::make_buffer(l.a.at, counter_bytes), far = hosts::make_buffer(l.b.at, counter_bytes);
      std::mt19937_64 random(hosts);
      fill_random(near.at(), counter_bytes, random);
      fill_random(far.at(), counter_bytes, random);
      std::vector<std::uint8_t> near_image(near.at(), near.at() + counter_bytes);
      std::vector<std::uint8_t> far_image(far.at(), far.at() + counter_bytes);
      for (unsigned n = 0; n < 64; ++n) {
        const std::uint64_t to = random() % (counter_bytes / 8) * 8, at = random() % (counter_bytes - 8);
        const std::uint64_t before = load(far.at(to));
        atomic_request r;
        r.opcode = all_verbs[n % 4];
        r.id = n;
        r.remote = far.address(to);
        r.rkey = far.region->rkey;
        r.swap_mask = random();
        r.compare_add_mask = random();
        r.swap = random();
        r.compare_add = n % 8 < 4 || r.opcode == verb::fetch_add ? random() : before;
        if (r.opcode == verb::masked_compare_swap && n % 16 < 8)  // equal where it is compared
          r.compare_add = (before & r.compare_add_mask) | (random() & ~r.compare_add_mask);
        // The result may be spread over the scatter list.
        const auto split = static_cast<std::uint32_t>(n % 3 == 0 ? 8 : 1 + n % 7);
        std::vector<ibv_sge> sges{{near.address(at), split, near.region->lkey}};
        if (split != 8) sges.push_back({near.address(at + split), 8 - split, near.region->lkey});
        post_atomic(l.a, r, sges);
        const ibv_wc wc = l.a.wait_send();
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.wr_id, n);
        EXPECT_EQ(wc.byte_len, 8U);
        EXPECT_EQ(wc.opcode, adds(r.opcode) ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
        store(far_image.data() + to, result_of(r, before));
        store(near_image.data() + at, before);
        ASSERT_EQ(std::memcmp(far.at(), far_image.data(), counter_bytes), 0) << "operation " << n;
        ASSERT_EQ(std::memcmp(near.at(), near_image.data(), counter_bytes), 0) << "operation " << n;
      }
    }
  });
}

/// Loses frames: the nth with an operation, or any at random.
class losses : public fabric::cable_fault_if {
 public:
  void arm(operation which, unsigned nth) { which_ = which, left_ = nth, hits = 0; }
  void rate(unsigned percent) { percent_ = percent; }
  fate on_frame(unsigned, payload::frame& f) override {
    if (percent_ != 0 && random_() % 100 < percent_) return ++hits, fate::lose;
    wire::packet p;
    if (left_ == 0 || wire::decode(f.data(), f.length, p) != wire::decode_error::none) return fate::pass;
    if (wire::operation_of(p.bth.opcode) != which_ || --left_ != 0) return fate::pass;
    ++hits;
    return fate::lose;
  }
  unsigned hits = 0;

 private:
  operation which_ = operation::acknowledge;
  unsigned left_ = 0, percent_ = 0;
  std::mt19937 random_{11};
};

connection_options short_timeout() {
  connection_options o;
  o.ack_timeout = 6;
  return o;
}

/// Adds 1 many times through each of some connections; every value between is found by exactly one of the operations.
class counting {
 public:
  explicit counting(link& l)
      : near_(hosts::make_buffer(l.a.at, std::uint64_t{8} * most)), far_(hosts::make_buffer(l.b.at, counter_bytes)) {}

  void run(const std::vector<const side*>& lanes, unsigned each, verb opcode = verb::fetch_add) {
    const std::uint64_t first = 0xffff'ffff'ffff'fff0 + base_++;  // runs over the end
    store(far_.at(8), first);
    unsigned posted = 0;
    for (unsigned n = 0; n < each; ++n) {
      for (const side* s : lanes) {
        atomic_request r;
        r.opcode = opcode;
        r.remote = far_.address(8);
        r.rkey = far_.region->rkey;
        r.id = posted;
        if (opcode == verb::compare_swap) {
          r.compare_add = first + n;
          r.swap = first + n + 1;
        }
        post_atomic(*s, r, {{near_.address(8 * posted++), 8, near_.region->lkey}});
      }
      if (n % 64 == 63 || n + 1 == each) take(lanes, n % 64 + 1);
    }
    std::vector<std::uint64_t> found;
    for (unsigned i = 0; i < posted; ++i) found.push_back(load(near_.at(8 * i)) - first);
    std::sort(found.begin(), found.end());
    for (unsigned i = 0; i < posted; ++i) ASSERT_EQ(found[i], i) << "an operation was executed twice or not at all";
    ASSERT_EQ(load(far_.at(8)) - first, posted);
    ASSERT_EQ(load(far_.at(0)) | load(far_.at(16)), 0U);
  }

 private:
  static void take(const std::vector<const side*>& lanes, unsigned each) {
    for (unsigned n = 0; n < each * lanes.size(); ++n) ASSERT_EQ(lanes[0]->wait_send().status, IBV_WC_SUCCESS);
  }
  static constexpr unsigned most = 4096;
  hosts::buffer near_, far_;
  std::uint64_t base_ = 0;
};

TEST(Atomics, QueuePairsTakeTurnsAtOneCounter) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    link l = make_link(system, {});
    counting c(l);
    std::vector<link> links{l};
    for (unsigned i = 0; i < 7; ++i) links.push_back(make_sibling(l, {}, 1000 * i));
    std::vector<const side*> lanes;
    for (const link& x : links) lanes.push_back(&x.a);
    c.run(lanes, 100);
  });
}

TEST(Atomics, ExactlyOnceWhateverIsLost) {
  hosts::two_nodes system(default_system());
  losses fault;
  system.cable().set_fault(&fault);
  run(system, [&] {
    link l = make_link(system, short_timeout());
    counting c(l);
    for (const verb opcode : {verb::fetch_add, verb::compare_swap}) {
      const operation request = opcode == verb::fetch_add ? operation::fetch_add : operation::compare_swap;
      for (const operation lost : {request, operation::atomic_acknowledge}) {
        for (unsigned nth : {1u, 2u, 16u, 17u, 40u}) {
          SCOPED_TRACE(nth);
          fault.arm(lost, nth);
          c.run({&l.a}, 40, opcode);
          ASSERT_EQ(fault.hits, 1U);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
    fault.rate(5);
    const link second = make_sibling(l, short_timeout());
    c.run({&l.a, &second.a}, 300);
    EXPECT_GT(fault.hits, 20U);
  });
  EXPECT_GT(counted(system, "retransmissions"), 10U);
  EXPECT_GT(counted(system, "responder.duplicates"), 10U);
}

/// WRITE, atomic, READ of the same word, all under way at once.
TEST(Atomics, StayInOrderWithTheirNeighbours) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    hosts::buffer near = hosts::make_buffer(l.a.at, counter_bytes), far = hosts::make_buffer(l.b.at, counter_bytes);
    for (std::uint64_t n = 0; n < 20; ++n) {
      store(near.at(0), n * 1000);
      request w;
      w.sges = {{near.address(0), 8, near.region->lkey}};
      w.remote = far.address(64);
      w.rkey = far.region->rkey;
      post(l.a, w);
      atomic_request add;
      add.remote = far.address(64);
      add.rkey = far.region->rkey;
      add.compare_add = 7;
      post_atomic(l.a, add, {{near.address(8), 8, near.region->lkey}});
      request read = w;
      read.opcode = IBV_WR_RDMA_READ;
      read.sges[0].addr = near.address(16);
      post(l.a, read);
      for (unsigned i = 0; i < 3; ++i) ASSERT_EQ(l.a.wait_send().status, IBV_WC_SUCCESS);
      ASSERT_EQ(load(near.at(8)), n * 1000);
      ASSERT_EQ(load(near.at(16)), n * 1000 + 7);
    }
  });
}

/// A request that fails with `status`; memory at both ends stays, the responder's queue pair says `event`.
class offence {
 public:
  explicit offence(hosts::two_nodes& system) : first_(make_link(system, {})) {
    near_ = hosts::make_buffer(first_.a.at, counter_bytes);
    far_ = hosts::make_buffer(first_.b.at, counter_bytes);
    std::mt19937_64 random(3);
    fill_random(far_.at(), counter_bytes, random);
    image_.assign(far_.at(), far_.at() + counter_bytes);
  }
  atomic_request legal() {
    atomic_request r;
    r.remote = far_.address(16);
    r.rkey = far_.region->rkey;
    return r;
  }
  void commit(const atomic_request& r, ibv_wc_status status, ibv_event_type event, connection_options options = {}) {
    for (const verb opcode : all_verbs) {
      SCOPED_TRACE(static_cast<int>(opcode));
      const link l = make_sibling(first_, options, psn_ += 1000);
      atomic_request bad = r;
      bad.opcode = opcode;
      bad.swap_mask = ~std::uint64_t{0};
      post_atomic(l.a, bad, {{near_.address(), 8, near_.region->lkey}});
      post_atomic(l.a, legal(), {{near_.address(), 8, near_.region->lkey}});
      EXPECT_EQ(l.a.wait_send().status, status);
      EXPECT_EQ(l.a.wait_send().status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(l.a.state(), IBV_QPS_ERR);
      EXPECT_EQ(l.b.state(), IBV_QPS_ERR);
      ibv_async_event e{};
      do ASSERT_TRUE(l.b.dev().get_async_event(&e, ms));
      while (e.event_type == IBV_EVENT_COMM_EST || e.event_type == IBV_EVENT_PORT_ACTIVE);
      EXPECT_EQ(e.event_type, event);
      EXPECT_EQ(e.element.qp, l.b.qp);
      EXPECT_EQ(std::memcmp(far_.at(), image_.data(), counter_bytes), 0);
      EXPECT_EQ(load(near_.at()), 0U);
    }
  }
  link& first() { return first_; }
  hosts::buffer& far() { return far_; }
  hosts::buffer& near() { return near_; }

 private:
  link first_;
  hosts::buffer near_, far_;
  std::vector<std::uint8_t> image_;
  std::uint32_t psn_ = 0;
};

TEST(AtomicsSecurity, KeysRightsBoundsAlignment) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    offence o(system);
    atomic_request r = o.legal();
    for (const std::uint32_t wrong : {1u, 0x100u, 0x8000'0000u}) {
      r.rkey = o.legal().rkey ^ wrong;
      o.commit(r, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    r = o.legal();
    for (const std::uint64_t outside :
         {o.far().address() - 8, o.far().address(counter_bytes), std::uint64_t{0}, ~std::uint64_t{7}}) {
      r.remote = outside;
      o.commit(r, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    for (unsigned odd = 1; odd < 8; ++odd) {
      r.remote = o.far().address(16 + odd);
      o.commit(r, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    connection_options forbids;
    forbids.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    o.commit(o.legal(), IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR, forbids);

    host_driver::device& dev = o.first().b.dev();
    host_driver::memory_region* no_atomics =
        dev.reg_mr(o.first().b.at.pd, o.far().at(), counter_bytes,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    ASSERT_NE(no_atomics, nullptr);
    r = o.legal();
    r.rkey = no_atomics->rkey;
    o.commit(r, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    hosts::endpoint other = o.first().b.at;
    other.pd = dev.alloc_pd();
    hosts::buffer theirs = hosts::make_buffer(other, counter_bytes);
    std::memset(theirs.at(), 0x77, counter_bytes);
    r.remote = theirs.address();
    r.rkey = theirs.region->rkey;
    o.commit(r, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    for (unsigned i = 0; i < counter_bytes; ++i) ASSERT_EQ(*theirs.at(i), 0x77);
  });
}

/// The requester's own list of buffers: eight bytes, writable.
TEST(AtomicsSecurity, LocalBuffer) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    offence o(system);
    host_driver::memory_region* read_only =
        o.first().a.dev().reg_mr(o.first().a.at.pd, o.near().at(), counter_bytes, IBV_ACCESS_REMOTE_READ);
    ASSERT_NE(read_only, nullptr);
    const std::uint64_t at = o.near().address();
    const std::uint32_t key = o.near().region->lkey;
    const std::pair<std::vector<ibv_sge>, ibv_wc_status> cases[] = {
        {{{read_only->iova, 8, read_only->lkey}}, IBV_WC_LOC_PROT_ERR},
        {{{at, 8, key ^ 1}}, IBV_WC_LOC_PROT_ERR},
        {{{at + counter_bytes - 4, 8, key}}, IBV_WC_LOC_PROT_ERR},
        {{{at, 4, key}}, IBV_WC_LOC_QP_OP_ERR},
        {{{at, 16, key}}, IBV_WC_LOC_QP_OP_ERR},
        {{}, IBV_WC_LOC_QP_OP_ERR}};
    std::uint32_t psn = 5000;
    for (const auto& [sges, status] : cases) {
      const link l = make_sibling(o.first(), {}, psn += 100);
      post_atomic(l.a, o.legal(), sges);
      EXPECT_EQ(l.a.wait_send().status, status);
      EXPECT_EQ(l.a.state(), IBV_QPS_ERR);
      for (unsigned i = 0; i < counter_bytes; ++i) ASSERT_EQ(*o.near().at(i), 0);
    }
  });
}

}  // namespace
}  // namespace rnic::system_test
