// SPDX-License-Identifier: Apache-2.0
// Queue pairs: commands and states (adapter control plane 4.16, 4.17).
#include <algorithm>

#include "firmware/context_access.h"
#include "firmware/firmware.h"
#include "firmware/limits.h"
#include "model/scheduler/scheduler_cr.h"
#include "model/transport/transport_cr.h"

namespace rnic::firmware {

using icm::qp_state;
using icm::table;
using register_bus::cr_base;
namespace q = abi::qpc;
namespace mailbox = abi::qp_mailbox;

namespace {

constexpr std::uint16_t in_state(qp_state s) { return static_cast<std::uint16_t>(1u << static_cast<unsigned>(s)); }
constexpr std::uint32_t qpn_mask = 0xffffff;

/// Two transitions say everything by their opcode. A driver may name a mailbox all the same, and that of a function
/// is then in the function's own memory (net/cmd.c: cmd_info of 2ERR_QP and RTS2SQD_QP has no inbox).
constexpr bool reads_mailbox(abi::opcode op) { return op != abi::opcode::to_err_qp && op != abi::opcode::rts2sqd_qp; }

}  // namespace

const firmware::transition firmware::transitions[] = {
    {abi::opcode::rst2init_qp, in_state(qp_state::reset), qp_state::init},
    {abi::opcode::init2init_qp, in_state(qp_state::init), qp_state::init},
    {abi::opcode::init2rtr_qp, in_state(qp_state::init), qp_state::rtr},
    {abi::opcode::rtr2rts_qp, in_state(qp_state::rtr), qp_state::rts},
    {abi::opcode::rts2rts_qp, in_state(qp_state::rts), qp_state::rts},
    {abi::opcode::sqerr2rts_qp, in_state(qp_state::sq_error), qp_state::rts},
    {abi::opcode::rts2sqd_qp, in_state(qp_state::rts), qp_state::sqd},
    {abi::opcode::sqd2sqd_qp, in_state(qp_state::sqd) | in_state(qp_state::sq_draining), qp_state::sqd},
    {abi::opcode::sqd2rts_qp, in_state(qp_state::sqd) | in_state(qp_state::sq_draining), qp_state::rts},
    {abi::opcode::to_err_qp, static_cast<std::uint16_t>(0xff & ~in_state(qp_state::reset)), qp_state::error},
};

/// Either half moves to the error state by itself.
icm::qp_state firmware::state_of(const qp_pair& qp) {
  if (qp.requester.state == qp_state::error || qp.responder.state == qp_state::error) return qp_state::error;
  return qp.requester.state;
}

firmware::qp_record* firmware::find_qp(std::uint32_t qpn) {
  const auto found = qps_.find(qp_index(qpn));
  return found != qps_.end() && found->second.qpn == qpn ? &found->second : nullptr;
}

abi::status firmware::change_qp(command_request& r) {
  const std::uint32_t qpn = r.modifier & qpn_mask;
  const auto t = std::find_if(std::begin(transitions), std::end(transitions),
                              [&r](const transition& x) { return static_cast<std::uint16_t>(x.opcode) == r.opcode; });
  if (reads_mailbox(t->opcode)) {
    if (const status s = read_mailbox(r, 0x100); s != status::ok) return s;
  } else {
    in_.fill(0);
  }
  if (asks_for_migration()) return status::bad_param;

  if (t->opcode == abi::opcode::rst2init_qp) {
    if (qps_.count(qp_index(qpn)) != 0) return status::bad_qp_state;
    if (const status s = check_qp_context(function_of(r)); s != status::ok) return s;
    // What was on chip of an earlier owner of the entry is forgotten.
    if (!chip_.discard_qp(qpn)) return status::internal_error;
    chip_.set_doorbell_owner(qpn, scheduler::uar_of(function_of(r), in(q::uar, mailbox::context)));
    const status s = change_stopped_qp(*t, r);
    if (s != status::ok) chip_.set_doorbell_owner(qpn, scheduler::no_owner);
    chip_.release_qp(qpn);
    if (s == status::ok) qps_[qp_index(qpn)] = {qpn, function_of(r), false};
    return s;
  }
  qp_record* record = find_qp(qpn);
  if (record == nullptr) return qps_.count(qp_index(qpn)) != 0 ? status::bad_index : status::bad_qp_state;
  status s = status::internal_error;
  if (goes_on(t->opcode)) {
    s = change_live_qp(*t, qpn);
  } else if (chip_.halt_qp(qpn)) {
    s = change_stopped_qp(*t, r);
    chip_.release_qp(qpn);
  }
  if (s == status::ok)
    record->draining = t->opcode == abi::opcode::rts2sqd_qp && (r.modifier & mailbox::sqd_event) != 0;
  return s;
}

/// Receives before and after, or sends: hardware works on while these change the QP.
bool firmware::goes_on(abi::opcode op) {
  return op == abi::opcode::rtr2rts_qp || op == abi::opcode::rts2rts_qp || op == abi::opcode::sqerr2rts_qp ||
         op == abi::opcode::rts2sqd_qp || op == abi::opcode::sqd2sqd_qp || op == abi::opcode::sqd2rts_qp;
}

abi::status firmware::change_live_qp(const transition& t, std::uint32_t qpn) {
  const std::uint32_t index = qp_index(qpn);
  std::array<std::uint8_t, q::bytes> stored{};
  qp_pair qp{};
  if (!chip_.publish_qp(qpn)) return status::internal_error;
  if (!load_context(table::qpc, index, qp) || !load_context(table::altc, index, stored)) return status::icm_error;
  if ((t.from >> static_cast<unsigned>(state_of(qp)) & 1) == 0) return status::bad_qp_state;
  merge_qp_context(stored.data(), t.opcode);
  if ((in(mailbox::optional) & (mailbox::opt_primary_path | mailbox::opt_sched_queue)) != 0)
    if (const status s = check_path(stored.data()); s != status::ok) return s;
  if (const status s = check_rdma(stored.data()); s != status::ok) return s;
  return hand_over(t, index, stored.data(), qp);
}

/// Hardware may have moved on since `qp` was read: it decides whether the change is legal.
abi::status firmware::hand_over(const transition& t, std::uint32_t index, const std::uint8_t* stored, qp_pair& qp) {
  const std::uint32_t qpn = qp.requester.qpn;
  fill_static(stored, qp);
  fill_live(stored, t.opcode, t.to, qp);
  const icm::qp_change how{
      t.from, t.opcode == abi::opcode::update_qp ? icm::qp_change::same_state : static_cast<std::uint8_t>(t.to)};
  switch (chip_.change_qp(qpn, qp.requester, qp.responder, how)) {
    case chip::change_result::refused:
      return status::bad_qp_state;
    case chip::change_result::failed:
      return status::internal_error;
    default:
      break;
  }
  std::array<std::uint8_t, q::bytes> keep;
  std::copy_n(stored, keep.size(), keep.begin());
  return store_context(table::altc, index, keep) ? status::ok : status::icm_error;
}

/// The change itself, while the hardware does not work on the QP.
abi::status firmware::change_stopped_qp(const transition& t, const command_request& r) {
  const std::uint32_t qpn = r.modifier & qpn_mask;
  const std::uint32_t index = qp_index(qpn);
  std::array<std::uint8_t, q::bytes> stored{};
  qp_pair qp{};
  if (t.opcode != abi::opcode::rst2init_qp) {
    if (!load_context(table::qpc, index, qp) || !load_context(table::altc, index, stored)) return status::icm_error;
    if ((t.from >> static_cast<unsigned>(state_of(qp)) & 1) == 0) return status::bad_qp_state;
  }
  if (abi::get(stored.data(), q::service) != static_cast<unsigned>(icm::service::mlx))
    abi::set(stored.data(), q::rss, 0);
  merge_qp_context(stored.data(), t.opcode);
  if (t.opcode == abi::opcode::init2rtr_qp ||
      (in(mailbox::optional) & (mailbox::opt_primary_path | mailbox::opt_sched_queue)) != 0)
    if (const status s = check_path(stored.data()); s != status::ok) return s;
  if (const status s = check_rdma(stored.data()); s != status::ok) return s;
  abi::set(stored.data(), q::local_qpn, qpn);
  if (t.opcode == abi::opcode::rst2init_qp) qp.requester.function = qp.responder.function = function_of(r);
  fill_static(stored.data(), qp);
  if (t.opcode == abi::opcode::rst2init_qp) {
    drop_qp_buffer(qp);
    // Answers to an earlier owner's atomics are not repeated. A QP without memory for them is refused atomics.
    if (layout(table::rdmarc).entry_bytes >= sizeof(icm::rdma_resources))
      static_cast<void>(store_context(table::rdmarc, index, icm::rdma_resources{}));
  }
  fill_live(stored.data(), t.opcode, t.to, qp);
  if (!store_context(table::altc, index, stored) || !store_context(table::qpc, index, qp)) return status::icm_error;
  return status::ok;
}

/// A line of cached translations may have been read for a neighbour before software wrote those of this buffer.
void firmware::drop_qp_buffer(const qp_pair& qp) {
  const icm::requester_context& rq = qp.requester;
  const icm::responder_context& rs = qp.responder;
  const std::uint64_t send_end = rq.sq_offset + (std::uint64_t{1} << (rq.log_sq_size + rq.log_sq_stride));
  const std::uint64_t receive_end = rs.rq_offset + (std::uint64_t{1} << (rs.log_rq_size + rs.log_rq_stride));
  buffer b;
  b.mtt = rq.sq_address;
  b.log_page = rq.log_page;
  b.bytes = std::max(send_end, receive_end);
  drop_buffer(b);
}

/// The part of a context that RST2INIT brings and nothing changes later.
abi::status firmware::check_qp_context(std::uint16_t function) const {
  const std::size_t c = mailbox::context;
  const auto service = static_cast<icm::service>(in(q::service, c));
  const bool known = service == icm::service::rc || service == icm::service::uc || service == icm::service::ud ||
                     service == icm::service::xrc || service == icm::service::mlx;
  if (!known) return status::bad_param;
  const bool spreads = service == icm::service::mlx && in(q::rss, c) != 0;
  if (!functions::domain_of(in(q::pd, c), function)) return status::bad_param;
  if (spreads) return status::ok;  // it has no queues (mlx4_ib: no completion queues either)
  if (!in_table(table::cqc, in(q::send_cqn, c)) || !in_table(table::cqc, in(q::receive_cqn, c)))
    return status::bad_index;
  if (in(q::srq_valid, c) != 0 && !srqs_.has(in(q::srqn, c), function)) return status::bad_resource;
  if (service != icm::service::xrc &&
      (!cqs_.has(in(q::send_cqn, c), function) || !cqs_.has(in(q::receive_cqn, c), function)))
    return status::bad_resource;
  if (!queue_sizes_ok(service)) return status::bad_param;
  if (in(q::log_page, c) > 19 || !rate_limit_ok(in(q::rate_limit, c))) return status::bad_param;
  const std::uint64_t mtt = abi::load_mtt(in_.data() + c, q::mtt_high, q::mtt_low);
  return mtt_range_ok(mtt, 1) ? status::ok : status::bad_param;
}

/// Fields of a receive queue that the queue pair does not have may hold anything.
bool firmware::queue_sizes_ok(icm::service service) const {
  const std::size_t c = mailbox::context;
  constexpr unsigned smallest_stride = 4;  // log2
  const bool sends =
      in(q::log_sq_size, c) <= log_max_qp_wqes && in(q::log_sq_stride, c) + smallest_stride <= log_max_sq_stride;
  const bool has_rq = in(q::srq_valid, c) == 0 && service != icm::service::xrc;
  return sends && (!has_rq || (in(q::log_rq_size, c) <= log_max_qp_wqes &&
                               in(q::log_rq_stride, c) + smallest_stride <= log_max_rq_stride));
}

/// What the context would have of a connection's MTU, and of READs and atomics that it answers.
abi::status firmware::check_rdma(const std::uint8_t* stored) const {
  const icm::service service = service_of(stored);
  const bool reliable = service == icm::service::rc || service == icm::service::xrc;
  if (!reliable && service != icm::service::uc) return status::ok;
  const bool fits = abi::get(stored, q::mtu) <= largest_mtu_code &&
                    (!reliable || abi::get(stored, q::responder_rdma) <= log_max_responder_rdma);
  return fits ? status::ok : status::bad_param;
}

/// RoCE has no automatic path migration (IBA annex A16, management): there is no second path, and a queue pair's state
/// of migration stays "migrated". QUERY_DEV_CAP does not offer it.
bool firmware::asks_for_migration() const {
  constexpr std::uint32_t migrated = 3;
  const std::uint32_t optional = in(mailbox::optional);
  return (optional & mailbox::opt_alt_path) != 0 ||
         ((optional & mailbox::opt_migration) != 0 && in(q::path_migration, mailbox::context) != migrated);
}

/// The path that the context would have. A datagram queue pair has no address of its own: its context may have that of
/// a window (icm::path_gid_is_base). What the command says of service and version counts where it is taken over.
abi::status firmware::check_path(const std::uint8_t* stored) const {
  namespace p = abi::path;
  constexpr unsigned table_size = 128;
  const std::uint8_t* const path = stored + q::primary_path;
  const bool fits = (abi::get(path, p::gid_index) < table_size || service_of(stored) == icm::service::ud) &&
                    abi::get(path, p::vlan_index) < table_size && abi::get(path, p::port) < config_.num_ports;
  const bool v2 = abi::get(stored, q::roce_mode) == q::roce_mode_v2;
  return fits && (!v2 || roce_v2_ports_[abi::get(path, p::port)]) ? status::ok : status::bad_param;
}

/// To RESET from anywhere, also from RESET: work is forgotten without completions. Must not fail (2.6).
abi::status firmware::reset_qp(command_request& r) {
  const std::uint32_t qpn = r.modifier & qpn_mask;
  if (find_qp(qpn) == nullptr) return status::ok;
  const bool stopped = chip_.discard_qp(qpn);
  const bool stored = store_context(table::qpc, qp_index(qpn), qp_pair{});
  chip_.set_doorbell_owner(qpn, scheduler::no_owner);
  chip_.release_qp(qpn);
  qps_.erase(qp_index(qpn));
  if (!stopped) return status::internal_error;
  return stored ? status::ok : status::icm_error;
}

abi::status firmware::query_qp(command_request& r) {
  const std::uint32_t qpn = r.modifier & qpn_mask;
  out_.fill(0);
  if (find_qp(qpn) == nullptr) {
    if (qps_.count(qp_index(qpn)) != 0) return status::bad_index;
    put(abi::at(mailbox::context, q::local_qpn), qpn);  // in RESET a QP has no more than its number
    return write_mailbox(r, 0x100);
  }
  std::array<std::uint8_t, q::bytes> stored{};
  qp_pair qp{};
  if (!chip_.publish_qp(qpn)) return status::internal_error;
  const bool loaded = load_context(table::qpc, qp_index(qpn), qp) && load_context(table::altc, qp_index(qpn), stored);
  if (!loaded) return status::icm_error;
  publish_qp(qp, stored.data());
  std::copy(stored.begin(), stored.end(), out_.begin() + mailbox::context);
  return write_mailbox(r, 0x100);
}

abi::status firmware::conf_special_qp(command_request& r) {
  const std::uint32_t base = r.modifier & qpn_mask;
  if (base % 8 != 0 || !in_table(table::qpc, base)) return status::bad_param;
  special_qp_base_ = base;
  for (const std::uint32_t half : {0u, transport::cr::responder_offset})
    chip_.write(cr_base::transport, half + transport::cr::special_qp_base, base);
  return status::ok;
}

/// SQ_DRAINED for a QP whose owner asked for it and whose send queue has come to rest.
bool firmware::report_drained() {
  namespace cr = transport::cr;
  const std::uint32_t word = chip_.read(cr_base::transport, cr::drained);
  if ((word & cr::drained_valid) == 0) return false;
  chip_.write(cr_base::transport, cr::drained, 1);
  const std::uint32_t qpn = word & qpn_mask;
  qp_record* record = find_qp(qpn);
  if (record == nullptr || !record->draining) return true;
  record->draining = false;
  chip::event_data data{};
  data[0] = qpn;
  chip_.raise(abi::eqe::event::sq_drained, 0, data, chip::mapped_eq, record->function);
  return true;
}

}  // namespace rnic::firmware
