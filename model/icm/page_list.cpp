// SPDX-License-Identifier: Apache-2.0
#include "model/icm/page_list.h"

#include <algorithm>
#include <utility>

namespace rnic::icm {

namespace {
constexpr std::uint64_t page_entry_bytes = 8;
constexpr std::uint64_t table_page = 4096;
}  // namespace

page_list::page_list(key_memory& memory, const key_tables_if& tables, unsigned entries)
    : memory_(memory), tables_(tables), entries_(entries), bytes_(entries * page_entry_bytes) {}

void page_list::begin(const key_operation& operation, std::uint64_t mtt_address) {
  from_ = operation.page_list;
  function_ = operation.function;
  to_ = mtt_address;
  total_ = pages_of(operation);
  done_ = 0;
}

key_memory::result page_list::read_piece() {
  if (!memory_.has_room()) return key_memory::result::waits;
  const std::uint64_t into = to_ + done_ * page_entry_bytes;
  const std::uint64_t to_boundary = (table_page - into % table_page) / page_entry_bytes;
  piece_ = std::min({total_ - done_, std::uint64_t{entries_}, to_boundary});
  pcie::dma_request r;
  r.function = function_;
  r.address = from_ + done_ * page_entry_bytes;
  r.length = static_cast<std::uint32_t>(piece_ * page_entry_bytes);
  r.destination = bytes_.data();
  memory_.start(std::move(r));
  return key_memory::result::done;
}

key_memory::result page_list::write_piece() {
  std::uint64_t bus = 0;
  if (!tables_.mtt_address(to_ + done_ * page_entry_bytes, bus)) return key_memory::result::failed;
  if (!memory_.has_room()) return key_memory::result::waits;
  pcie::dma_request r;
  r.op = pcie::dma_request::kind::write;
  r.notify = true;
  r.address = bus;
  r.length = static_cast<std::uint32_t>(piece_ * page_entry_bytes);
  r.source = bytes_.data();
  memory_.start(std::move(r));
  return key_memory::result::done;
}

}  // namespace rnic::icm
