// SPDX-License-Identifier: Apache-2.0
// The requester's error classes that come from the host (IBA volume 1, 9.9.2 and table 57; adapter data plane C.8.2),
// and those of unreliable services, one row each.
#include <cerrno>
#include <vector>

#include "testbenches/system/conformance/requester_rows.h"
#include "testbenches/system/conformance/subject.h"

namespace rnic::conformance {
namespace {

using namespace requester_rows;

// ---------------------------------------------------------------- local errors

constexpr std::uint32_t signalled = 0x0c;
/// WQE: opcode, size in units of 16 bytes, then segments.
work raw(std::uint32_t opcode, std::uint32_t units, const std::vector<std::uint32_t>& segments = {}) {
  std::vector<std::uint32_t> words{opcode, units, signalled, 0};
  words.insert(words.end(), segments.begin(), segments.end());
  words.resize(16);
  return work(words);
}
const std::uint32_t half_of_all = 0x7fffffff;
/// Ends without a packet, and takes what follows with it.
row stops(const char* name, const work& w, ibv_wc_status status, const std::string& counter) {
  return {name, service::rc, {}, {post(w), post(write()), silence(20)}, fails(status, counter)};
}

const std::vector<row> local_rows = {
    stops("key_unknown", write().with(key::unknown), IBV_WC_LOC_PROT_ERR, lpe),
    stops("key_of_another_domain", write().with(key::other_domain), IBV_WC_LOC_PROT_ERR, lpe),
    stops("key_freed", write().with(key::freed), IBV_WC_LOC_PROT_ERR, lpe),
    stops("key_of_another_time", write().with(key::stale), IBV_WC_LOC_PROT_ERR, lpe),
    stops("beyond_the_end", write().at(8192 - 99), IBV_WC_LOC_PROT_ERR, lpe),
    {"good_ones_before_end_well",
     service::rc,
     {},
     {post(write()), post(write().with(key::unknown)), post(write()), hear(written(0)), silence(20), inject(ack(0, 1))},
     outcome().error().sends(done).sends(bad(IBV_WC_LOC_PROT_ERR)).counts(lpe)},
    {"in_the_second_packet",
     service::rc,
     {},
     {post(write(600).at(8192 - 300)),
      hear(packet(op::write_first).bytes(256).of(600).silent().from_memory(8192 - 300)), silence(20)},
     fails(IBV_WC_LOC_PROT_ERR, lpe)},
    {"read_into_what_may_not_be_written",
     service::rc,
     {},
     {post(read(100).with(key::not_writable)), hear(asked(0, 100)), refused(op::read_response_only, 0, 100)},
     fails(IBV_WC_LOC_PROT_ERR, lpe)},
    {"read_into_a_key_unknown",
     service::rc,
     {},
     {post(read(100).with(key::unknown)), hear(asked(0, 100)), refused(op::read_response_only, 0, 100)},
     fails(IBV_WC_LOC_PROT_ERR, lpe)},
    {"atomic_into_a_key_of_another_domain",
     service::rc,
     {},
     {post(atomic().with(key::other_domain)), hear(added(0)), inject(value(0))},
     fails(IBV_WC_LOC_PROT_ERR, lpe)},
    stops("request_of_no_size", raw(0x08, 0), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("request_of_no_known_kind", raw(0x1e, 2), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("write_without_an_address", raw(0x08, 1), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("atomic_without_operands", raw(0x12, 2), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("inline_data_across_a_line", raw(0x0a, 3, {0x80000000 | 60, 0, 0, 0}), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("inline_data_beyond_the_request", raw(0x0a, 2, {0x80000000 | 20, 0, 0, 0}), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("longer_than_any_message", raw(0x0a, 4, {half_of_all, 0, 0, 0, half_of_all, 0, 0, 0, half_of_all, 0, 0, 0}),
          IBV_WC_LOC_LEN_ERR, lle),
    stops("invalidation_of_a_bad_key", work(IBV_WR_LOCAL_INV, 0), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    stops("binding_of_a_bad_key", raw(0x18, 4, {0xe0000000, 0, 0x0fffff00, 0x0fffff00, 0, 0, 0, 0}), IBV_WC_MW_BIND_ERR,
          mwbe),
    stops("registration_of_a_bad_key", raw(0x19, 4, {0, 0x0fffff00}), IBV_WC_LOC_QP_OP_ERR, lqpoe),
};
const std::vector<row> atomic_length_rows = {
    stops("atomic_of_four_bytes", work(IBV_WR_ATOMIC_FETCH_AND_ADD, 4), IBV_WC_LOC_QP_OP_ERR, lqpoe),
};

// ---------------------------------------------------------------- unreliable services

/// The send queue alone is in error (IBA 10.3.1.6), everything behind is flushed.
row breaks(const char* name, const work& w, ibv_wc_status status, const std::string& counter) {
  outcome o = fails(status, counter).in(IBV_QPS_SQE);
  o.receives_live = true;
  return {name, service::uc, {}, {post(w), post(work(IBV_WR_SEND, 100)), silence(20)}, o};
}
work send(std::uint32_t bytes = 100) { return work(IBV_WR_SEND, bytes); }

const std::vector<row> unreliable_rows = {
    {"sent",
     service::uc,
     {},
     {post(send()), hear(packet(op::send_only).bytes(100).silent())},
     outcome().sends(good(IBV_WC_SEND))},
    breaks("key_unknown", send().with(key::unknown), IBV_WC_LOC_PROT_ERR, lpe),
    breaks("key_of_another_domain", send().with(key::other_domain), IBV_WC_LOC_PROT_ERR, lpe),
    breaks("beyond_the_end", send().at(8192 - 99), IBV_WC_LOC_PROT_ERR, lpe),
    breaks("request_of_no_size", raw(0x0a, 0), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("read", raw(0x10, 3), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("fetch_add", raw(0x12, 4), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("compare_swap", raw(0x11, 4), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("send_with_invalidate", raw(0x01, 1), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    {"good_ones_before_end_well",
     service::uc,
     {},
     {post(send()), post(send().with(key::unknown)), post(send()), hear(packet(op::send_only).bytes(100).silent()),
      silence(20)},
     [] {
       outcome o = outcome().error().sends(good(IBV_WC_SEND)).sends(bad(IBV_WC_LOC_PROT_ERR)).counts(lpe);
       o.receives_live = true;
       return o.in(IBV_QPS_SQE);
     }()},
};
const std::vector<row> datagram_rows = {
    breaks("longer_than_a_packet", send(4097), IBV_WC_LOC_LEN_ERR, lle),
    breaks("write", raw(0x08, 8), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("write_with_immediate", raw(0x09, 8), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("address_without_a_source", send().without_vector(), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    breaks("without_an_address", raw(0x0a, 2), IBV_WC_LOC_QP_OP_ERR, lqpoe),
    {"longest",
     service::ud,
     {},
     {post(send(4096)), hear(packet(op::send_only).bytes(4096).silent())},
     outcome().sends(good(IBV_WC_SEND))},
};
const std::vector<row> uc_only_rows = {
    {"answers_are_nothing_to_it",
     service::uc,
     {},
     {post(send()), hear(packet(op::send_only).bytes(100).silent()), rest(5), inject(ack(0, 1).raw(0x11))},
     outcome().sends(good(IBV_WC_SEND)).counts(stray)},
};

// ----------------------------------------------------------------

class local_requester_errors : public testing::TestWithParam<row> {};
TEST_P(local_requester_errors, row) { play("requester_errors", GetParam()); }

#define ROWS(name, rows) INSTANTIATE_TEST_SUITE_P(name, local_requester_errors, testing::ValuesIn(rows), row_name())
constexpr std::initializer_list<service> reliable = {service::rc, service::xrc};
ROWS(local, on(reliable, local_rows));
ROWS(atomic, on(reliable, atomic_length_rows));
ROWS(unreliable, on({service::uc, service::ud}, unreliable_rows));
ROWS(datagram, on({service::ud}, datagram_rows));
ROWS(uc, on({service::uc}, uc_only_rows));

/// Software is told at once: nothing of it comes to the adapter.
TEST(local_requester_errors_of_software, too_many_segments) {
  rig& r = rig::instance();
  r.run([&] {
    subject on(r, service::rc, setup());
    const fault_counts before = r.faults();
    const estate& e = estate::instance();
    std::vector<ibv_sge> sges(on.qp()->caps.max_send_sge + 1, {e.origin.address(), 8, e.lkey(key::good)});
    ibv_send_wr wr{}, *failed = nullptr;
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = sges.data();
    wr.num_sge = static_cast<int>(sges.size());
    EXPECT_EQ(r.dev().post_send(on.qp(), &wr, &failed), -ENOMEM);
    EXPECT_EQ(failed, &wr);
    heard_frame heard;
    EXPECT_FALSE(r.hear(heard, 20 * us));
    EXPECT_TRUE(on.completions(true).empty());
    EXPECT_EQ(on.state(), IBV_QPS_RTS);
    EXPECT_EQ(r.faults(), before);
  });
}

}  // namespace
}  // namespace rnic::conformance
