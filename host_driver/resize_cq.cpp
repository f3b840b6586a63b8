// SPDX-License-Identifier: Apache-2.0
// A completion queue that gets another size in the middle of its life (ib/cq.c:mlx4_ib_resize_cq; adapter data plane
// A.5.6).
#include <cerrno>
#include <cstring>

#include "host_driver/device.h"
#include "model/abi/bar_layout.h"
#include "model/abi/contexts.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {

/// What is unread goes to the new buffer one index further, because the marker at the end of it has taken an index of
/// its own (mlx4_ib_cq_resize_copy_cqes). No more than the old buffer holds, whatever is written in it.
static void copy_unread(completion_queue& cq, const completion_queue& old) {
  std::uint32_t from = old.consumer;
  for (std::uint32_t n = 0; n < old.entries; ++n, ++from) {
    const std::uint8_t* entry = old.entry(from);
    const std::uint8_t owner = entry[abi::cqe::owner_opcode.offset];
    if ((owner & abi::cqe::opcode_mask) == abi::cqe::opcode_resize) break;
    std::uint8_t* to = cq.entry(from + 1);
    std::memcpy(to, entry, abi::cqe::bytes);
    const bool parity = ((from + 1) & cq.entries) != 0;
    to[abi::cqe::owner_opcode.offset] =
        static_cast<std::uint8_t>((owner & ~abi::cqe::owner_bit) | (parity ? abi::cqe::owner_bit : 0));
  }
}

int device::resize_cq(ibv_cq* queue, int cqe) {
  auto& cq = *static_cast<completion_queue*>(queue);
  if (cqe < 1 || static_cast<std::uint32_t>(cqe) > caps_.max_cqes - 1) return -EINVAL;
  completion_queue fresh;
  fresh.entries = 1u << log2_up(static_cast<std::uint32_t>(cqe) + 1);
  fresh.entry_bytes = cq.entry_bytes;
  if (fresh.entries == cq.entries) return 0;
  std::uint32_t unread = 0;
  for (completion_queue at = cq; unread != cq.entries && ready(at); ++at.consumer) ++unread;
  if (fresh.entries < unread + 1) return -EINVAL;

  const std::size_t bytes = (std::size_t{fresh.entries} * fresh.entry_bytes + 4095) / 4096 * 4096;
  fresh.buffer = bus_.allocate(bytes);
  if (fresh.buffer.pointer == nullptr) return -ENOMEM;
  int error = map_user_buffer(fresh.buffer.bus_address, bytes, 12, fresh.mtt);
  if (error == 0) {
    command_channel::mailbox box(channel_);
    abi::set(box.data(), abi::cqc::log_size, log2_up(fresh.entries));
    abi::store_mtt(box.data(), abi::cqc::mtt_high, abi::cqc::mtt_low, std::uint64_t{fresh.mtt.first} * caps_.mtt_bytes);
    error = channel_.write(box, abi::opcode::modify_cq, cq.cqn, 0);
  }
  if (error != 0) {
    free_mtt(fresh.mtt);
    bus_.release(fresh.buffer);
    return error;
  }
  completion_queue old = cq;
  cq.buffer = fresh.buffer;
  cq.mtt = fresh.mtt;
  cq.entries = fresh.entries;
  cq.cqe = static_cast<int>(fresh.entries - 1);
  copy_unread(cq, old);
  ++cq.consumer;  // past the marker
  abi::store32(cq.record.pointer, 0, cq.consumer & abi::uar::cq_index_mask);
  free_mtt(old.mtt);
  bus_.release(old.buffer);
  return 0;
}

}  // namespace rnic::host_driver
