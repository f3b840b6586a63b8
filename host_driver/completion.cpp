// SPDX-License-Identifier: Apache-2.0
// Completion queues, completion events, asynchronous events (libmlx4 cq.c; net/cq.c, net/eq.c).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {

namespace {

constexpr std::size_t set_ci = 0, arm_word = 4;  // doorbell record
constexpr std::uint64_t forever = ~std::uint64_t{0};
constexpr unsigned events_per_index_update = 128;  // net/eq.c: well before the queue can overrun
/// An event that another process took out of the queue together with its own: look again at times.
constexpr std::uint64_t wait_slice_ps = 1'000'000'000;

ibv_wc_status status_of(std::uint8_t syndrome) {
  switch (static_cast<abi::cqe::error>(syndrome)) {
    case abi::cqe::error::local_length:
      return IBV_WC_LOC_LEN_ERR;
    case abi::cqe::error::local_qp_operation:
      return IBV_WC_LOC_QP_OP_ERR;
    case abi::cqe::error::local_protection:
      return IBV_WC_LOC_PROT_ERR;
    case abi::cqe::error::flushed:
      return IBV_WC_WR_FLUSH_ERR;
    case abi::cqe::error::window_bind:
      return IBV_WC_MW_BIND_ERR;
    case abi::cqe::error::bad_response:
      return IBV_WC_BAD_RESP_ERR;
    case abi::cqe::error::local_access:
      return IBV_WC_LOC_ACCESS_ERR;
    case abi::cqe::error::remote_invalid_request:
      return IBV_WC_REM_INV_REQ_ERR;
    case abi::cqe::error::remote_access:
      return IBV_WC_REM_ACCESS_ERR;
    case abi::cqe::error::remote_operation:
      return IBV_WC_REM_OP_ERR;
    case abi::cqe::error::retry_exceeded:
      return IBV_WC_RETRY_EXC_ERR;
    case abi::cqe::error::rnr_retry_exceeded:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case abi::cqe::error::remote_aborted:
      return IBV_WC_REM_ABORT_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

void parse_send(const std::uint8_t* entry, std::uint8_t opcode, ibv_wc& wc) {
  wc.wc_flags = 0;
  switch (static_cast<abi::wqe::opcode>(opcode)) {
    case abi::wqe::opcode::rdma_write_imm:
      wc.wc_flags |= IBV_WC_WITH_IMM;
      [[fallthrough]];
    case abi::wqe::opcode::rdma_write:
      wc.opcode = IBV_WC_RDMA_WRITE;
      break;
    case abi::wqe::opcode::send_imm:
      wc.wc_flags |= IBV_WC_WITH_IMM;
      [[fallthrough]];
    case abi::wqe::opcode::send_inval:
    case abi::wqe::opcode::send:
      wc.opcode = IBV_WC_SEND;
      break;
    case abi::wqe::opcode::rdma_read:
      wc.opcode = IBV_WC_RDMA_READ;
      wc.byte_len = abi::get(entry, abi::cqe::byte_count);
      break;
    case abi::wqe::opcode::atomic_cs:
    case abi::wqe::opcode::masked_atomic_cs:
      wc.opcode = IBV_WC_COMP_SWAP;
      wc.byte_len = 8;
      break;
    case abi::wqe::opcode::atomic_fa:
    case abi::wqe::opcode::masked_atomic_fa:
      wc.opcode = IBV_WC_FETCH_ADD;
      wc.byte_len = 8;
      break;
    case abi::wqe::opcode::local_inval:
      wc.opcode = IBV_WC_LOCAL_INV;
      break;
    case abi::wqe::opcode::lso:
      wc.opcode = IBV_WC_TSO;
      break;
    case abi::wqe::opcode::bind_mw:
      wc.opcode = IBV_WC_BIND_MW;
      break;
    case abi::wqe::opcode::fast_reg:
      wc.opcode = IBV_WC_DRIVER1;  // a kernel verb (IB_WC_REG_MR)
      break;
    default:
      wc.opcode = IBV_WC_SEND;
      break;  // the device made it up; nothing better to say
  }
}

void parse_receive(const std::uint8_t* entry, std::uint8_t opcode, ibv_wc& wc) {
  wc.byte_len = abi::get(entry, abi::cqe::byte_count);
  wc.wc_flags = 0;
  wc.opcode = IBV_WC_RECV;
  std::uint32_t raw = 0;
  std::memcpy(&raw, entry + abi::cqe::immediate.offset, sizeof raw);
  if (opcode == abi::cqe::receive_write_imm || opcode == abi::cqe::receive_send_imm) {
    if (opcode == abi::cqe::receive_write_imm) wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = raw;
  } else if (opcode == abi::cqe::receive_send_inval) {
    wc.wc_flags = IBV_WC_WITH_INV;
    wc.invalidated_rkey = abi::get(entry, abi::cqe::immediate);
  }
  const std::uint32_t source = abi::get(entry, abi::cqe::source);
  wc.src_qp = source & 0xffffff;
  wc.dlid_path_bits = static_cast<std::uint8_t>(source >> 24 & 0x7f);
  if ((source >> 31) != 0) wc.wc_flags |= IBV_WC_GRH;
  wc.pkey_index = static_cast<std::uint16_t>(abi::get(entry, abi::cqe::immediate) & 0x7f);
  wc.slid = 0;
  wc.sl = static_cast<std::uint8_t>(abi::get(entry, abi::cqe::sl_vid) >> 13);
}

/// What the completion of a plain frame has in the places of a packet's source (data plane A.5.2).
void parse_plain(const std::uint8_t* entry, ibv_wc& wc, ethernet_receive* plain) {
  namespace f = abi::cqe;
  const std::uint16_t status = abi::get(entry, f::ethernet_status);
  const std::uint8_t encoding = abi::get(entry, f::ethernet_encoding);
  constexpr std::uint16_t header_right = f::status_ipv4 | f::status_ip_ok;
  const bool right = (status & header_right) == header_right && (encoding & f::encoding_l4_ok) != 0;
  wc.wc_flags = right ? unsigned{IBV_WC_IP_CSUM_OK} : 0u;
  wc.src_qp = 0;
  wc.pkey_index = 0;
  if (plain == nullptr) return;
  const std::uint32_t word = abi::get(entry, f::qpn_word);
  plain->ctag = (word & f::ctag) != 0;
  plain->stag = (word & f::stag) != 0;
  plain->tci = abi::get(entry, f::sl_vid);
  plain->hash = abi::get(entry, f::immediate);
  plain->status = status;
  plain->checksum = abi::get(entry, f::checksum);
  plain->encoding = encoding;
}

}  // namespace

completion_queue* device::create_cq(int cqe, unsigned vector) {
  const auto fail = [](int error) -> completion_queue* {
    errno = error;
    return nullptr;
  };
  if (!open_) return fail(ENODEV);
  if (cqe < 1 || static_cast<std::uint32_t>(cqe) > caps_.max_cqes - 1 || vector >= completion_eqs_.size())
    return fail(EINVAL);
  auto cq = std::make_unique<completion_queue>();
  cq->entries = 1u << log2_up(static_cast<std::uint32_t>(cqe) + 1);
  cq->entry_bytes = cqe_bytes_;
  cq->vector = vector;
  cq->cqe = static_cast<int>(cq->entries - 1);
  const std::size_t bytes = (std::size_t{cq->entries} * cq->entry_bytes + 4095) / 4096 * 4096;
  cq->buffer = bus_.allocate(bytes);
  cq->record = allocate_record();
  if (cq->buffer.pointer == nullptr || cq->record.pointer == nullptr) {
    give_back_queue(cq->buffer, cq->record);
    return fail(ENOMEM);
  }
  const bool software_init = (caps_.ext_flags & abi::dev_cap::ext_sw_cq_init) != 0;
  std::memset(cq->buffer.pointer, software_init ? 0xcc : 0, bytes);

  int error = map_user_buffer(cq->buffer.bus_address, bytes, 12, cq->mtt);
  if (error == 0) error = resources_->take(resource::cq, &cq->cqn);
  const bool taken = error == 0;
  if (error == 0) {
    command_channel::mailbox box(channel_);
    std::uint8_t* c = box.data();
    abi::set(c, abi::cqc::log_size, log2_up(cq->entries));
    abi::set(c, abi::cqc::uar, uar_);
    abi::set(c, abi::cqc::eqn, static_cast<std::uint8_t>(completion_eqs_[vector].eqn));
    abi::store_mtt(c, abi::cqc::mtt_high, abi::cqc::mtt_low, std::uint64_t{cq->mtt.first} * caps_.mtt_bytes);
    abi::set(c, abi::cqc::db_record, cq->record.bus_address);
    error = channel_.write(box, abi::opcode::sw2hw_cq, cq->cqn, software_init ? 1 : 0);
  }
  if (error != 0) {
    if (taken) resources_->give_back(resource::cq, cq->cqn);
    free_mtt(cq->mtt);
    free_record(cq->record);
    bus_.release(cq->buffer);
    return fail(-error);
  }
  cq->handle = cq->cqn;
  auto& place = cqs_[cq->cqn];
  place = std::move(cq);
  return place.get();
}

int device::destroy_cq(ibv_cq* queue) {
  auto* cq = static_cast<completion_queue*>(queue);
  if (cq->users != 0) return -EBUSY;
  if (const int error = channel_.command(abi::opcode::hw2sw_cq, cq->cqn, 1)) return error;
  free_mtt(cq->mtt);
  free_record(cq->record);
  bus_.release(cq->buffer);
  // Its events that nobody has read out of the queue yet are not to be those of the next CQ of its number: the kernel
  // waits for the interrupt's handler (net/cq.c:mlx4_cq_free).
  drain_completions(cq->vector);
  auto& events = cq_events_[cq->vector];
  events.erase(std::remove(events.begin(), events.end(), cq), events.end());
  forget_events([queue](const ibv_async_event& e) { return of_cq(e.event_type) && e.element.cq == queue; });
  const std::uint32_t number = cq->cqn;
  resources_->give_back(resource::cq, number);
  cqs_[number].reset();
  return 0;
}

bool device::ready(const completion_queue& cq) const {
  const bool parity = (cq.consumer & cq.entries) != 0;
  return ((cq.entry(cq.consumer)[abi::cqe::owner_opcode.offset] & abi::cqe::owner_bit) != 0) == parity;
}

/// One completion that is known to be there. -EINVAL when it names a queue pair that does not exist.
int device::parse_cqe(completion_queue& cq, ibv_wc& wc, ethernet_receive* plain) {
  const std::uint8_t* entry = cq.entry(cq.consumer);
  ++cq.consumer;
  const std::uint32_t qpn = abi::load32(entry, abi::cqe::qpn_word.offset) & 0xffffff;
  wc.qp_num = qpn;
  const std::uint8_t owner = entry[abi::cqe::owner_opcode.offset];
  const std::uint8_t opcode = owner & abi::cqe::opcode_mask;
  const bool is_error = opcode == abi::cqe::opcode_error;
  const bool is_send = (owner & abi::cqe::send_bit) != 0;
  // The queue pair of an XRC message may be somebody else's and may be gone: its receive queue is what counts.
  queue_pair* const qp = completed_qp(cq, qpn, is_send);
  const bool xrc = qp == nullptr && !is_send && receives_xrc(qpn);
  if (qp == nullptr && !xrc) return -EINVAL;
  shared_receive_queue* shared = qp != nullptr ? qp->shared : nullptr;
  if (xrc) {
    const std::uint32_t srqn = abi::get(entry, abi::cqe::source) & 0xffffff;
    shared = srqn < srqs_.size() ? srqs_[srqn].get() : nullptr;
    if (shared == nullptr || shared->receive_queue != &cq) return -EINVAL;
  }
  const std::uint16_t index = abi::get(entry, abi::cqe::wqe_index);
  const std::uint32_t first = is_send ? qp->sq.tail : 0;
  if (is_send) {
    work_queue& wq = qp->sq;  // unsignalled requests before this one are done with it
    if (static_cast<std::uint16_t>(index - static_cast<std::uint16_t>(wq.tail)) >= wq.head - wq.tail) return -EINVAL;
    wq.tail += static_cast<std::uint16_t>(index - static_cast<std::uint16_t>(wq.tail));
    wc.wr_id = wq.wr_ids[wq.tail & (wq.count - 1)];
    ++wq.tail;
  } else if (shared != nullptr) {
    wc.wr_id = shared->wr_ids[index & (shared->count - 1)];
    release_srq_entry(*shared, index & (shared->count - 1));
  } else {
    work_queue& wq = qp->rq;
    if (wq.head == wq.tail) return -EINVAL;  // nothing posted, or no such queue
    wc.wr_id = wq.wr_ids[wq.tail & (wq.count - 1)];
    ++wq.tail;
  }
  const auto tell = [&] {
    if (is_send && spans_ != nullptr) spans_->polled(*qp, first, qp->sq.tail - 1, wc);
    return 0;
  };
  if (is_error) {
    wc.status = status_of(abi::get(entry, abi::cqe::syndrome));
    wc.vendor_err = abi::get(entry, abi::cqe::vendor_error);
    wc.wc_flags = 0;
    return tell();
  }
  wc.status = IBV_WC_SUCCESS;
  wc.vendor_err = 0;
  if (is_send) {
    parse_send(entry, opcode, wc);
  } else {
    parse_receive(entry, opcode, wc);
    if ((owner & abi::cqe::inline_bit) != 0) wc.wc_flags |= wc_inline_receive;
    if (xrc)
      wc.src_qp = 0;  // the word has the queue's number
    else if (qp->qp_type == IBV_QPT_RAW_PACKET)
      parse_plain(entry, wc, plain);
    else if (qp->role == paravirtual_role::proxy)
      take_tunnel_header(*qp, wc);
  }
  return tell();
}

int device::poll_cq(ibv_cq* queue, int num_entries, ibv_wc* wc, ethernet_receive* plain) {
  auto& cq = *static_cast<completion_queue*>(queue);
  if (!ready(cq)) {
    bus_.spend_ps(cfg_.poll_empty_ns * 1000);
    return 0;
  }
  bus_.spend_ps(cfg_.poll_ns * 1000);
  int found = 0;
  int error = 0;
  while (found < num_entries && ready(cq)) {
    error = parse_cqe(cq, wc[found], plain != nullptr ? plain + found : nullptr);
    if (error != 0) break;
    ++found;
  }
  abi::store32(cq.record.pointer, set_ci, cq.consumer & abi::uar::cq_index_mask);
  return found == 0 && error != 0 ? error : found;
}

/// Bus address of the entry that the next completion goes to.
static std::uint64_t next_entry(const completion_queue& cq) {
  return cq.buffer.bus_address + static_cast<std::uint64_t>(cq.entry(cq.consumer) - cq.buffer.pointer);
}

int device::wait_cq(ibv_cq* queue, int num_entries, ibv_wc* wc, std::uint64_t timeout_ps, ethernet_receive* plain) {
  auto& cq = *static_cast<completion_queue*>(queue);
  const std::uint64_t deadline = timeout_ps == 0 ? forever : bus_.now_ps() + timeout_ps;
  while (!ready(cq)) {
    const std::uint64_t now = bus_.now_ps();
    if (now >= deadline) return 0;
    if (!bus_.wait_for_write(next_entry(cq), abi::cqe::bytes, timeout_ps == 0 ? 0 : deadline - now)) break;
  }
  return ready(cq) ? poll_cq(queue, num_entries, wc, plain) : 0;
}

void device::end_wait(ibv_cq* queue) { bus_.end_wait(next_entry(*static_cast<completion_queue*>(queue))); }

int device::req_notify_cq(ibv_cq* queue, int solicited_only) {
  auto& cq = *static_cast<completion_queue*>(queue);
  const unsigned vector = cq.vector;
  if (!vector_armed_[vector]) {  // as the kernel: an EQ's interrupt is requested when its first consumer comes
    if (cfg_.use_msix && !bus_.enable_interrupt(completion_eqs_[vector].vector)) return -ENOTSUP;
    vector_armed_[vector] = true;
    completion_eqs_[vector].ring(bus_, true);
  }
  const std::uint32_t command = solicited_only != 0 ? abi::uar::cq_arm_solicited : abi::uar::cq_arm_next;
  abi::store32(cq.record.pointer, arm_word, abi::uar::cq_arm_word(cq.arm_sn, command, cq.consumer));
  const std::uint64_t high = abi::uar::cq_arm_word(cq.arm_sn, command, cq.cqn);
  bus_.mmio_write64(2, uar_offset_ + abi::uar::cq_doorbell, high << 32 | (cq.consumer & abi::uar::cq_index_mask));
  return 0;
}

int device::modify_cq(ibv_cq* queue, std::uint16_t count, std::uint16_t period_us) {
  auto& cq = *static_cast<completion_queue*>(queue);
  command_channel::mailbox box(channel_);
  abi::set(box.data(), abi::cqc::max_count, count);
  abi::set(box.data(), abi::cqc::period, period_us);
  return channel_.write(box, abi::opcode::modify_cq, cq.cqn, 1);
}

/// The interrupt handler of a completion EQ. True when it found events.
bool device::drain_completions(unsigned vector) {
  event_queue& eq = completion_eqs_[vector];
  bool found = false;
  unsigned since_update = 0;
  while (const std::uint8_t* event = eq.next()) {
    found = true;
    if (abi::get(event, abi::eqe::type) == static_cast<std::uint8_t>(abi::eqe::event::completion)) {
      const std::uint32_t cqn = abi::get(event, abi::eqe::number) & 0xffffff;
      completion_queue* cq = cqn < cqs_.size() ? cqs_[cqn].get() : nullptr;
      if (cq != nullptr) {
        ++cq->arm_sn;
        cq_events_[vector].push_back(cq);
      }
    }
    ++eq.consumer;
    if (++since_update == events_per_index_update) {
      eq.ring(bus_, false);
      since_update = 0;
    }
  }
  if (found) eq.ring(bus_, true);
  return found;
}

completion_queue* device::get_cq_event(unsigned vector, std::uint64_t timeout_ps) {
  if (vector >= completion_eqs_.size()) {
    errno = EINVAL;
    return nullptr;
  }
  const std::uint64_t deadline = timeout_ps == 0 ? forever : bus_.now_ps() + timeout_ps;
  while (cq_events_[vector].empty()) {
    const std::uint64_t now = bus_.now_ps();
    if (now >= deadline) {
      errno = EAGAIN;
      return nullptr;
    }
    if (wait_interrupt(completion_eqs_[vector].vector, std::min(deadline - now, wait_slice_ps)) && cfg_.use_msix &&
        !drain_completions(vector))
      completion_eqs_[vector].ring(bus_, true);
    if (vector >= completion_eqs_.size()) {  // the device was closed meanwhile
      errno = ENODEV;
      return nullptr;
    }
  }
  auto& events = cq_events_[vector];
  completion_queue* cq = events.front();
  events.pop_front();
  return cq;
}

/// Nobody is told of an object that is gone.
void device::forget_events(const std::function<bool(const ibv_async_event&)>& gone) {
  async_events_.erase(std::remove_if(async_events_.begin(), async_events_.end(), gone), async_events_.end());
}

void device::push_event(ibv_event_type type, std::uint32_t number) {
  ibv_async_event event{};
  event.event_type = type;
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      event.element.cq = number < cqs_.size() ? cqs_[number].get() : nullptr;
      if (event.element.cq == nullptr) return;
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      event.element.srq = number < srqs_.size() ? srqs_[number].get() : nullptr;
      if (event.element.srq == nullptr) return;
      break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
      event.element.port_num = static_cast<int>(number);
      break;
    default:
      event.element.qp = find_qp(number);
      if (event.element.qp == nullptr) return;
      break;
  }
  async_events_.push_back(event);
}

void device::handle_async(const std::uint8_t* event) {
  using kind = abi::eqe::event;
  const std::uint32_t number = abi::get(event, abi::eqe::number) & 0xffffff;
  const auto what = static_cast<kind>(abi::get(event, abi::eqe::type));
  const std::uint16_t function = abi::get(event, abi::eqe::function);
  if (!virtual_ && function != 0 && what != kind::command) {
    function_event e{function_event::kind::of_object, function, {}, {}};
    std::copy_n(event, e.entry.size(), e.entry.begin());
    function_events_.push_back(e);
    return;
  }
  switch (what) {
    case kind::command:
      channel_.complete(abi::get(event, abi::eqe::command_token), abi::get(event, abi::eqe::command_status),
                        abi::get(event, abi::eqe::command_out));
      break;
    case kind::comm_channel: {
      function_event e;
      for (std::size_t i = 0; i < e.functions.size(); ++i) e.functions[i] = abi::load32(event, 4 + 4 * i);
      function_events_.push_back(e);
      break;
    }
    case kind::flr:
      function_events_.push_back({function_event::kind::reset, static_cast<std::uint16_t>(number), {}, {}});
      break;
    case kind::path_migrated:
      push_event(IBV_EVENT_PATH_MIG, number);
      break;
    case kind::comm_established:
      push_event(IBV_EVENT_COMM_EST, number);
      break;
    case kind::sq_drained:
      push_event(IBV_EVENT_SQ_DRAINED, number);
      break;
    case kind::wq_catastrophic:
      push_event(IBV_EVENT_QP_FATAL, number);
      break;
    case kind::path_migration_failed:
      push_event(IBV_EVENT_PATH_MIG_ERR, number);
      break;
    case kind::wq_invalid_request:
      push_event(IBV_EVENT_QP_REQ_ERR, number);
      break;
    case kind::wq_access:
      push_event(IBV_EVENT_QP_ACCESS_ERR, number);
      break;
    case kind::srq_last_wqe:
      push_event(IBV_EVENT_QP_LAST_WQE_REACHED, number);
      break;
    case kind::cq_error:
      push_event(IBV_EVENT_CQ_ERR, number);
      break;
    case kind::srq_catastrophic:
      push_event(IBV_EVENT_SRQ_ERR, number);
      break;
    case kind::srq_limit:
      push_event(IBV_EVENT_SRQ_LIMIT_REACHED, number);
      break;
    case kind::port_change: {
      const unsigned port = abi::get(event, abi::eqe::port_word) >> 28;
      if (port == 0 || port > ports_.size()) break;
      const bool up = abi::get(event, abi::eqe::subtype) == abi::eqe::port_active;
      if (enabled_functions_ != 0) {
        function_event e{function_event::kind::port, 0, {}, {}};
        std::copy_n(event, e.entry.size(), e.entry.begin());
        function_events_.push_back(e);
      }
      const unsigned before = links();
      ports_[port - 1].link_up = up;
      if (bonded_) {  // the device's port is up while one of them is
        if ((before == 0) != (links() == 0)) push_event(up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, 1);
        break;
      }
      push_event(up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, port);
      break;
    }
    default:
      break;  // the kernel warns and goes on
  }
}

bool device::drain_async() {
  bool found = false;
  while (const std::uint8_t* event = async_eq_.next()) {
    found = true;
    handle_async(event);
    ++async_eq_.consumer;
  }
  if (found) async_eq_.ring(bus_, true);
  return found;
}

/// The handler has begun; that of the wire has also done everything.
bool device::wait_interrupt(unsigned vector, std::uint64_t timeout_ps) {
  if (!bus_.wait_interrupt(vector, timeout_ps)) return false;
  bus_.spend_ps(cfg_.interrupt_ns * 1000);
  if (!cfg_.use_msix) serve_line();
  return true;
}

/// All event queues have the wire together (net/eq.c: mlx4_interrupt): it is taken back first, so that what comes from
/// now on asserts it again. Each queue is armed, also one without an event: one that is on its way interrupts then.
void device::serve_line() {
  const std::uint64_t word = inta_pin_ < 32 ? 4 : 0;
  bus_.mmio_write32(firmware_.clr_int_bar, firmware_.clr_int_offset + word, 1u << inta_pin_ % 32);
  if (!drain_async()) async_eq_.ring(bus_, true);
  for (unsigned v = 0; v < completion_eqs_.size(); ++v)
    if (!drain_completions(v)) completion_eqs_[v].ring(bus_, true);
  bus_.interrupt_served(async_eq_.vector);
}

void device::pump(std::uint64_t timeout_ps) {
  if (!wait_interrupt(async_eq_.vector, timeout_ps) || !cfg_.use_msix) return;
  if (!drain_async()) async_eq_.ring(bus_, true);
  bus_.interrupt_served(async_eq_.vector);
}

bool device::wait_function_event(function_event* event) {
  while (function_events_.empty()) {
    if (!channel_.event_mode()) return false;
    pump(0);
  }
  *event = function_events_.front();
  function_events_.pop_front();
  return true;
}

bool device::get_async_event(ibv_async_event* event, std::uint64_t timeout_ps) {
  const std::uint64_t deadline = timeout_ps == 0 ? forever : bus_.now_ps() + timeout_ps;
  while (async_events_.empty()) {
    const std::uint64_t now = bus_.now_ps();
    if (!channel_.event_mode() || now >= deadline) return false;
    pump(std::min(deadline - now, wait_slice_ps));
  }
  *event = async_events_.front();
  async_events_.pop_front();
  return true;
}

}  // namespace rnic::host_driver
