// SPDX-License-Identifier: Apache-2.0
#include "model/icm/key_memory.h"

#include <utility>

namespace rnic::icm {

key_memory::result key_memory::load(std::uint32_t slot, mpt_entry& out) {
  const bool here = loaded_here_ && slot_ == slot;
  loaded_here_ = false;
  if (here) {
    out = loaded_;
    return result::done;
  }
  if (const mpt_entry* e = tables_.cached(slot); e != nullptr) {
    if (!may_read(slot)) return result::waits;
    out = *e;
    return result::done;
  }
  std::uint64_t bus = 0;
  if (!tables_.mpt_address(slot, bus)) return result::failed;
  if (!dma_.request.claim()) return result::waits;
  pcie::dma_request r;
  r.address = bus;
  r.length = mpt_bytes;
  r.destination = bytes_.data();
  dma_.request.push(std::move(r));
  slot_ = slot;
  under_way_ = access::read_entry;
  return result::waits;
}

bool key_memory::may_read(std::uint32_t slot) {
  if (read_at_ == owner_.now()) {
    if (read_slot_ != slot) owner_.wake_next();
    return read_slot_ == slot;
  }
  if (!tables_.may_read()) return false;
  read_at_ = owner_.now();
  read_slot_ = slot;
  return true;
}

key_memory::result key_memory::load_to_change(std::uint32_t slot, mpt_entry& out) {
  const bool may_change = dma_.request.claim() && (tables_.cached(slot) == nullptr || tables_.may_replace());
  return may_change ? load(slot, out) : result::waits;
}

key_memory::result key_memory::store(std::uint32_t slot, const mpt_entry& entry) {
  std::uint64_t bus = 0;
  if (!tables_.mpt_address(slot, bus)) return result::failed;
  if (!dma_.request.claim() || !tables_.may_replace()) return result::waits;
  tables_.replace(slot, entry, true);
  pcie::dma_request r;
  r.op = pcie::dma_request::kind::write;
  r.notify = true;
  r.address = bus;
  r.length = mpt_bytes;
  encode_mpt(entry, r.bytes.data());
  dma_.request.push(std::move(r));
  slot_ = slot;
  under_way_ = access::write_entry;
  return result::done;
}

bool key_memory::stored() { return std::exchange(stored_, false); }

void key_memory::start(pcie::dma_request r) {
  dma_.request.push(std::move(r));
  under_way_ = access::pages;
}

key_memory::result key_memory::answer() { return std::exchange(pages_, result::waits); }

void key_memory::take() {
  const bool ok = dma_.response.front().status == pcie::dma_status::ok;
  const bool keeps = under_way_ == access::read_entry && !stale_ && ok;
  if (keeps && !tables_.may_replace()) return;
  dma_.response.drop();
  switch (std::exchange(under_way_, access::none)) {
    case access::write_entry:  // failed, the port is off: a reset takes everything back
      stored_ = true;
      owner_.wake_next();
      break;
    case access::read_entry:
      loaded_here_ = !stale_;
      loaded_ = mpt_entry{};
      loaded_.flags = mpt_entry::status_software << 28;
      if (ok) loaded_ = decode_mpt(bytes_.data());
      if (keeps) tables_.replace(slot_, loaded_, false);
      break;
    default:
      pages_ = ok ? result::done : result::failed;
      break;
  }
  stale_ = false;
}

void key_memory::dropped(std::uint64_t first, std::uint64_t last) {
  if (under_way_ == access::read_entry && slot_ >= first && slot_ <= last) stale_ = true;
}

}  // namespace rnic::icm
