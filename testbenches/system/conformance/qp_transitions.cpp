// SPDX-License-Identifier: Apache-2.0
// What is under way when a queue pair changes its state (IBA volume 1, 10.3.1; adapter data plane A.7.1, A.7.2).
#include <vector>

#include "testbenches/system/conformance/requester_rows.h"

namespace rnic::conformance {
namespace {

using op = operation;
using requester_rows::write, requester_rows::written;

work send() { return work(IBV_WR_SEND, 100); }
completion sent() { return good(IBV_WC_SEND); }

// ---------------------------------------------------------------- what is under way when the state changes

constexpr std::uint32_t n = 100;
packet heard(int psn) { return packet(op::send_only, psn).bytes(n); }

const std::vector<row> under_way = {
    {"error_flushes_both_queues_in_order",
     service::rc,
     {},
     {post(write()), post(write()), post(write()), hear(written(0)), hear(written(1)), hear(written(2)),
      modify(IBV_QPS_ERR)},
     outcome().error()},
    {"error_leaves_what_is_complete",
     service::rc,
     {},
     {post(write()), post(write()), hear(written(0)), hear(written(1)), inject(ack(0, 1)), rest(5),
      modify(IBV_QPS_ERR)},
     outcome().error().sends(good(IBV_WC_RDMA_WRITE))},
    {"answers_come_too_late_for_the_error_state",
     service::rc,
     {},
     {post(send()), hear(heard(0)), modify(IBV_QPS_ERR), inject(ack(0, 1)), silence(10)},
     outcome().error().counts("requester.stray_responses")},
    {"error_stops_the_timer",
     service::rc,
     setup().timer(4, 7),
     {post(send()), hear(heard(0)), modify(IBV_QPS_ERR), silence(200)},
     outcome().error()},
    {"reset_flushes_nothing",
     service::rc,
     setup().timer(4, 7),
     {post(send()), hear(heard(0)), modify(IBV_QPS_RESET), silence(200), inject(ack(0, 1))},
     outcome().in(IBV_QPS_RESET).counts("requester.stray_responses")},
    {"drain_waits_for_answers",
     service::rc,
     {},
     {post(send()), hear(heard(0)), drain(), silence(50), inject(ack(0, 1))},
     outcome().in(IBV_QPS_SQD).sends(sent()).event(IBV_EVENT_SQ_DRAINED)},
    {"drain_of_nothing", service::rc, {}, {drain(), rest(5)}, outcome().in(IBV_QPS_SQD).event(IBV_EVENT_SQ_DRAINED)},
    {"drain_that_nobody_waits_for",
     service::rc,
     {},
     {post(send()), hear(heard(0)), modify(IBV_QPS_SQD), inject(ack(0, 1))},
     outcome().in(IBV_QPS_SQD).sends(sent())},
    {"drain_repeats_what_is_lost",
     service::rc,
     setup().timer(4, 7),
     {post(send()), hear(heard(0)), drain(), hear(heard(0)), inject(ack(0, 1))},
     outcome()
         .in(IBV_QPS_SQD)
         .sends(sent())
         .event(IBV_EVENT_SQ_DRAINED)
         .counts("diag.sq_num_to")
         .counts("requester.retransmissions")},
    {"drain_ends_in_an_error",
     service::rc,
     {},
     {post(write()), post(write()), hear(written(0)), hear(written(1)), drain(), inject(ack(0, 0, 0x62))},
     outcome().error().sends(bad(IBV_WC_REM_ACCESS_ERR, 0x88)).counts("requester.naks").counts("diag.sq_num_rae")},
    {"drained_queue_goes_on_with_what_was_posted",
     service::rc,
     {},
     {modify(IBV_QPS_SQD), post(write()), post(write()), silence(20), modify(IBV_QPS_RTS), hear(written(0)),
      hear(written(1)), inject(ack(1, 2))},
     outcome().sends(good(IBV_WC_RDMA_WRITE)).sends(good(IBV_WC_RDMA_WRITE))},
    {"drained_queue_that_goes_into_error",
     service::rc,
     {},
     {modify(IBV_QPS_SQD), post(send()), silence(20), modify(IBV_QPS_ERR)},
     outcome().error()},
    {"responder_error_flushes_requests",
     service::rc,
     {},
     {post(send()), hear(heard(0)), inject(packet(op::send_middle).bytes(256)), hear(ack(0, 0, 0x61))},
     outcome().error().event(IBV_EVENT_QP_REQ_ERR).counts("responder.naks").counts("diag.rq_num_rire")},
    {"requester_error_flushes_receives",
     service::rc,
     {},
     {post(send()), hear(heard(0)), inject(ack(0, 0, 0x61)), rest(10), inject(heard(0)), silence(10)},
     outcome()
         .error()
         .sends(bad(IBV_WC_REM_INV_REQ_ERR))
         .counts("requester.naks")
         .counts("diag.sq_num_rire")
         .counts("responder.drop.error")},
    {"error_in_a_message_flushes_its_receive",
     service::rc,
     {},
     {inject(packet(op::send_first).bytes(256).lands_at(0)), hear(ack(0, 0)), modify(IBV_QPS_ERR)},
     outcome().error()},
};
const std::vector<row> shared_under_way = {
    {"error_on_a_shared_queue_says_that_no_receive_will_come",
     service::rc,
     setup().on_srq(),
     {modify(IBV_QPS_ERR)},
     outcome().error().event(IBV_EVENT_QP_LAST_WQE_REACHED)},
    {"error_in_a_message_flushes_its_shared_receive",
     service::rc,
     setup().on_srq(),
     {inject(packet(op::send_first).bytes(256).lands_at(0)), hear(ack(0, 0)), modify(IBV_QPS_ERR)},
     outcome()
         .error()
         .receives(bad(IBV_WC_WR_FLUSH_ERR))
         .event(IBV_EVENT_QP_LAST_WQE_REACHED)
         .counts("diag.rq_num_wrfe")},
};
row send_queue_recovers() {
  row r{"send_queue_recovers", service::uc, {}, {}, {}};
  r.steps = {post(send().with(key::unknown)), post(send()), silence(20), look(), modify(IBV_QPS_RTS), post(send()),
             hear(heard(0).silent())};
  r.after.sends(bad(IBV_WC_LOC_PROT_ERR)).sends(bad(IBV_WC_WR_FLUSH_ERR)).sends(sent());
  r.after.counts("diag.sq_num_lpe").counts("diag.sq_num_wrfe");
  return r;
}

class transitions_under_way : public testing::TestWithParam<row> {};
TEST_P(transitions_under_way, row) { play("qp_states", GetParam()); }
#define ROWS(name, rows) INSTANTIATE_TEST_SUITE_P(name, transitions_under_way, testing::ValuesIn(rows), row_name())
ROWS(state, on({service::rc}, under_way));
ROWS(shared, on({service::rc}, shared_under_way));
ROWS(unreliable, on({service::uc, service::ud}, {send_queue_recovers()}));

}  // namespace
}  // namespace rnic::conformance
