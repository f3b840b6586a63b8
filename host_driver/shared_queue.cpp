// SPDX-License-Identifier: Apache-2.0
// Shared receive queues: a linked list of entries in a ring's clothing (adapter data plane A.3.4; libmlx4 srq.c).
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "model/abi/contexts.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {

shared_receive_queue* device::create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  return make_srq(pd, attr, nullptr, nullptr);
}

shared_receive_queue* device::make_srq(ibv_pd* pd, ibv_srq_init_attr* attr, xrc_domain* domain, completion_queue* cq,
                                       const std::uint32_t* wanted) {
  const auto fail = [](int error) -> shared_receive_queue* {
    errno = error;
    return nullptr;
  };
  if (!open_) return fail(ENODEV);
  if (pd == nullptr || attr->attr.max_wr == 0 || attr->attr.max_wr >= caps_.max_srq_wqes ||
      attr->attr.max_sge > caps_.max_rq_sge - 1) {
    return fail(EINVAL);
  }
  if (wanted != nullptr && *wanted >= srqs_.size()) return fail(EINVAL);
  auto srq = std::make_unique<shared_receive_queue>();
  srq->pd = pd;
  srq->srq_context = attr->srq_context;
  srq->count = 1u << log2_up(attr->attr.max_wr + 1);
  const std::size_t entry_bytes = abi::wqe::srq_next::bytes + std::max(1u, attr->attr.max_sge) * abi::wqe::data::bytes;
  srq->log_stride = std::max(5u, log2_up(entry_bytes));
  srq->max_sge = ((1u << srq->log_stride) - static_cast<std::uint32_t>(abi::wqe::srq_next::bytes)) /
                 static_cast<std::uint32_t>(abi::wqe::data::bytes);
  srq->wr_ids.assign(srq->count, 0);
  srq->next.resize(srq->count);
  srq->posted_entries.assign(srq->count, false);
  const std::size_t bytes = ((std::size_t{srq->count} << srq->log_stride) + 4095) / 4096 * 4096;
  srq->buffer = bus_.allocate(bytes);
  srq->record = allocate_record();
  if (srq->buffer.pointer == nullptr || srq->record.pointer == nullptr) {
    give_back_queue(srq->buffer, srq->record);
    return fail(ENOMEM);
  }
  for (std::uint32_t i = 0; i < srq->count; ++i) {
    std::uint8_t* entry = srq->entry(i);
    srq->next[i] = static_cast<std::uint16_t>((i + 1) & (srq->count - 1));
    abi::set(entry, abi::wqe::srq_next::index, srq->next[i]);
    for (std::uint32_t s = 0; s < srq->max_sge; ++s) {
      abi::set(entry + abi::wqe::srq_next::bytes + s * abi::wqe::data::bytes, abi::wqe::data::lkey,
               abi::wqe::data::invalid_lkey);
    }
  }
  srq->head = 0;
  srq->tail = srq->count - 1;
  int error = map_user_buffer(srq->buffer.bus_address, bytes, 12, srq->mtt);
  if (error == 0) error = resources_->take(resource::srq, &srq->srqn, wanted);
  const bool taken = error == 0;
  if (error == 0) {
    command_channel::mailbox box(channel_);
    std::uint8_t* c = box.data();
    abi::set(c, abi::srqc::log_size, log2_up(srq->count));
    abi::set(c, abi::srqc::srqn, srq->srqn);
    abi::set(c, abi::srqc::log_stride, static_cast<std::uint8_t>(srq->log_stride - 4));
    abi::store_mtt(c, abi::srqc::mtt_high, abi::srqc::mtt_low, std::uint64_t{srq->mtt.first} * caps_.mtt_bytes);
    abi::set(c, abi::srqc::pd, static_cast<protection_domain*>(pd)->pdn);
    abi::set(c, abi::srqc::db_record, srq->record.bus_address);
    if (domain != nullptr) {
      abi::set(c, abi::srqc::xrcd, static_cast<std::uint16_t>(domain->xrcdn));
      abi::set(c, abi::srqc::cqn, cq->cqn);
    }
    error = channel_.write(box, abi::opcode::sw2hw_srq, srq->srqn);
  }
  if (error != 0) {
    if (taken) resources_->give_back(resource::srq, srq->srqn);
    free_mtt(srq->mtt);
    free_record(srq->record);
    bus_.release(srq->buffer);
    return fail(-error);
  }
  attr->attr.max_wr = srq->count - 1;
  attr->attr.max_sge = srq->max_sge;
  ++static_cast<protection_domain*>(pd)->users;
  srq->domain = domain;
  srq->receive_queue = cq;
  if (domain != nullptr) ++domain->users;
  if (cq != nullptr) ++cq->users;
  auto& place = srqs_[srq->srqn];
  place = std::move(srq);
  return place.get();
}

int device::modify_srq(ibv_srq* queue, const ibv_srq_attr* attr, int mask) {
  auto& srq = *static_cast<shared_receive_queue*>(queue);
  if ((mask & IBV_SRQ_MAX_WR) != 0) return -EINVAL;  // the device cannot resize
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  if (attr->srq_limit >= srq.count) return -EINVAL;
  return channel_.command(abi::opcode::arm_srq, srq.srqn, 0, attr->srq_limit);
}

int device::query_srq(ibv_srq* queue, ibv_srq_attr* attr) {
  auto& srq = *static_cast<shared_receive_queue*>(queue);
  command_channel::mailbox box(channel_);
  if (const int error = channel_.read(box, abi::opcode::query_srq, srq.srqn)) return error;
  attr->max_wr = srq.count - 1;
  attr->max_sge = srq.max_sge;
  attr->srq_limit = abi::get(box.data(), abi::srqc::limit);
  return 0;
}

int device::destroy_srq(ibv_srq* queue) {
  auto* srq = static_cast<shared_receive_queue*>(queue);
  if (srq->users != 0) return -EBUSY;
  if (const int error = channel_.command(abi::opcode::hw2sw_srq, srq->srqn, 1)) return error;
  if (srq->receive_queue != nullptr) {  // XRC: nobody will ask for its messages any more (libmlx4 mlx4_destroy_xrc_srq)
    const auto mine = [this, srq](const std::uint8_t* entry) {
      const bool receive = (entry[abi::cqe::owner_opcode.offset] & abi::cqe::send_bit) == 0;
      return receive && receives_xrc(abi::get(entry, abi::cqe::qpn)) &&
             (abi::get(entry, abi::cqe::source) & 0xffffff) == srq->srqn;
    };
    purge_cq(*srq->receive_queue, mine, nullptr);
  }
  free_mtt(srq->mtt);
  free_record(srq->record);
  bus_.release(srq->buffer);
  --static_cast<protection_domain*>(srq->pd)->users;
  if (srq->domain != nullptr) --srq->domain->users;
  if (srq->receive_queue != nullptr) --srq->receive_queue->users;
  const std::uint32_t number = srq->srqn;
  forget_events([queue](const ibv_async_event& e) { return of_srq(e.event_type) && e.element.srq == queue; });
  resources_->give_back(resource::srq, number);
  srqs_[number].reset();
  return 0;
}

int device::post_srq_recv(ibv_srq* queue, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  auto& srq = *static_cast<shared_receive_queue*>(queue);
  bus_.spend_ps(cfg_.post_recv_ns * 1000);
  int error = 0;
  std::uint16_t posted = 0;
  for (; wr != nullptr; wr = wr->next, ++posted) {
    if (static_cast<std::uint32_t>(wr->num_sge) > srq.max_sge ||
        std::any_of(wr->sg_list, wr->sg_list + std::max(wr->num_sge, 0),
                    [](const ibv_sge& s) { return s.length >> 31 != 0; }))
      error = -EINVAL;  // the top bit of a segment's length means something else, as in post_recv
    if (error == 0 && srq.head == srq.tail) error = -ENOMEM;
    if (error != 0) {
      *bad_wr = wr;
      break;
    }
    std::uint8_t* entry = srq.entry(srq.head);
    srq.wr_ids[srq.head] = wr->wr_id;
    srq.posted_entries[srq.head] = true;
    srq.head = srq.next[srq.head];
    std::uint8_t* segment = entry + abi::wqe::srq_next::bytes;
    for (int i = 0; i < wr->num_sge; ++i, segment += abi::wqe::data::bytes) {
      abi::store32(segment, 0, wr->sg_list[i].length);
      abi::store32(segment, 4, wr->sg_list[i].lkey);
      abi::store64(segment, 8, wr->sg_list[i].addr);
    }
    if (static_cast<std::uint32_t>(wr->num_sge) < srq.max_sge) {
      abi::store32(segment, 0, 0);
      abi::store32(segment, 4, abi::wqe::data::invalid_lkey);
      abi::store64(segment, 8, 0);
    }
  }
  if (posted != 0) {
    srq.posted = static_cast<std::uint16_t>(srq.posted + posted);
    abi::store32(srq.record.pointer, 0, srq.posted);
  }
  return error;
}

void device::release_srq_entry(shared_receive_queue& srq, std::uint32_t index) {
  if (!srq.posted_entries[index]) return;  // completions lie in memory that others can write, too
  srq.posted_entries[index] = false;
  abi::set(srq.entry(srq.tail), abi::wqe::srq_next::index, static_cast<std::uint16_t>(index));
  srq.next[srq.tail] = static_cast<std::uint16_t>(index);
  srq.tail = index;
}

}  // namespace rnic::host_driver
