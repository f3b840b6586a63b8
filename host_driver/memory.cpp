// SPDX-License-Identifier: Apache-2.0
// Protection domains, translation entries, memory regions, doorbell records (net/mr.c, net/pd.c).
#include <algorithm>
#include <cerrno>
#include <limits>

#include "host_driver/device.h"
#include "model/abi/contexts.h"

namespace rnic::host_driver {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::size_t record_bytes = 8;

/// Finds and removes an object that its owner handed back; nullptr when it is not one of ours.
template <class Vector, class Pointer>
bool erase_object(Vector& objects, Pointer object) {
  const auto at = std::find_if(objects.begin(), objects.end(), [&](const auto& o) { return o.get() == object; });
  if (at == objects.end()) return false;
  std::swap(*at, objects.back());
  objects.pop_back();
  return true;
}

std::uint32_t mpt_flags(int access) {
  return abi::mpt::flag_mio | abi::mpt::flag_region | abi::mpt::flag_local_read |
         ((access & IBV_ACCESS_LOCAL_WRITE) != 0 ? abi::mpt::flag_local_write : 0) |
         ((access & IBV_ACCESS_REMOTE_WRITE) != 0 ? abi::mpt::flag_remote_write : 0) |
         ((access & IBV_ACCESS_REMOTE_READ) != 0 ? abi::mpt::flag_remote_read : 0) |
         ((access & IBV_ACCESS_REMOTE_ATOMIC) != 0 ? abi::mpt::flag_remote_atomic : 0) |
         ((access & IBV_ACCESS_MW_BIND) != 0 ? abi::mpt::flag_bind : 0);
}

}  // namespace

bus_if::dma_memory device::allocate_buffer(std::size_t bytes, std::size_t alignment) {
  const auto memory = bus_.allocate(bytes, alignment);
  if (memory.pointer == nullptr) return memory;
  buffers_[memory.pointer] = memory;
  buffers_by_address_[memory.bus_address] = memory;
  return memory;
}

void device::free_buffer(const bus_if::dma_memory& memory) {
  if (buffers_.erase(memory.pointer) == 0) return;
  buffers_by_address_.erase(memory.bus_address);
  last_buffer_ = {};
  bus_.release(memory);
}

bool device::bus_address_of(const void* pointer, std::size_t bytes, std::uint64_t* address) const {
  const auto* at = static_cast<const std::uint8_t*>(pointer);
  auto entry = buffers_.upper_bound(at);
  if (entry == buffers_.begin()) return false;
  --entry;
  const auto& m = entry->second;
  const auto offset = static_cast<std::size_t>(at - m.pointer);
  if (offset > m.bytes || bytes > m.bytes - offset) return false;
  *address = m.bus_address + offset;
  return true;
}

/// Inline data is read by the processor, so any address of the program will do; addresses inside our buffers may also
/// be given as work requests name them to the device.
const void* device::inline_source(std::uint64_t address, std::size_t bytes) const {
  const void* const ours = buffer_at(address, bytes);
  return ours != nullptr ? ours : reinterpret_cast<const void*>(address);
}

/// nullptr: the bytes do not lie in one of our buffers.
const void* device::buffer_at(std::uint64_t address, std::size_t bytes) const {
  const auto inside = [&](const bus_if::dma_memory& m) {
    return address >= m.bus_address && address - m.bus_address <= m.bytes &&
           bytes <= m.bytes - (address - m.bus_address);
  };
  if (last_buffer_.pointer == nullptr || !inside(last_buffer_)) {
    auto entry = buffers_by_address_.upper_bound(address);
    if (entry == buffers_by_address_.begin() || !inside((--entry)->second)) return nullptr;
    last_buffer_ = entry->second;
  }
  return last_buffer_.pointer + (address - last_buffer_.bus_address);
}

protection_domain* device::alloc_pd() {
  const std::uint32_t number = open_ ? pdns_.allocate() : bitmap::none;
  if (number == bitmap::none) {
    errno = open_ ? ENOMEM : ENODEV;
    return nullptr;
  }
  auto pd = std::make_unique<protection_domain>();
  pd->pdn = number;
  pd->handle = number;
  pds_.push_back(std::move(pd));
  return pds_.back().get();
}

int device::dealloc_pd(ibv_pd* pd) {
  auto* domain = static_cast<protection_domain*>(pd);
  if (domain->users != 0) return -EBUSY;
  const std::uint32_t number = domain->pdn;
  if (!erase_object(pds_, domain)) return -EINVAL;
  pdns_.release(number, true);
  return 0;
}

int device::allocate_mtt(const std::uint64_t* pages, std::uint32_t count, mtt_range& range) {
  range.count = count;
  range.order = log2_up(count);
  if (const int error = resources_->take_mtts(range.order, &range.first)) {
    range = mtt_range{};
    return error;
  }
  std::vector<std::uint64_t> entries(pages, pages + count);
  for (std::uint64_t& e : entries) e |= abi::mtt::present;
  const int error = resources_->write_mtts(range.first, entries.data(), count);
  if (error != 0) free_mtt(range);
  return error;
}

int device::map_buffer(std::uint64_t first, std::size_t bytes, unsigned log_page, mtt_range& range) {
  const std::uint64_t page_bytes = std::uint64_t{1} << log_page;
  const std::uint64_t begin = first & ~(page_bytes - 1);
  const std::uint64_t count = (first + bytes - begin + page_bytes - 1) >> log_page;
  if (count > std::numeric_limits<std::uint32_t>::max() / 2) return -ENOMEM;
  std::vector<std::uint64_t> pages(count);
  for (std::uint64_t i = 0; i < count; ++i) pages[i] = begin + (i << log_page);
  return allocate_mtt(pages.data(), static_cast<std::uint32_t>(count), range);
}

/// A buffer of the program's: its pages are pinned first (core/umem.c:ib_umem_get).
int device::map_user_buffer(std::uint64_t first, std::size_t bytes, unsigned log_page, mtt_range& range) {
  const std::uint64_t pages = for_kernel_ ? 0 : pinned_memory::pages_of(first, bytes);
  if (const int error = pinned_.pin(pages)) return error;
  if (const int error = map_buffer(first, bytes, log_page, range)) {
    pinned_.unpin(pages);
    return error;
  }
  range.pinned = pages;
  return 0;
}

void device::free_mtt(mtt_range& range) {
  if (range.count == 0) return;
  pinned_.unpin(range.pinned);
  resources_->give_back_mtts(range.first, range.order);
  range = mtt_range{};
}

doorbell_record device::allocate_record() {
  if (free_records_.empty()) {
    const auto memory = bus_.allocate(page);
    if (memory.pointer == nullptr) return {};
    record_pages_.push_back(memory);
    for (std::size_t at = page; at != 0; at -= record_bytes) {
      free_records_.push_back({memory.pointer + at - record_bytes, memory.bus_address + at - record_bytes, false});
    }
  }
  doorbell_record record = free_records_.back();
  record.pinned = !for_kernel_;
  if (record.pinned && pinned_.pin_record(record.bus_address) != 0) return {};
  free_records_.pop_back();
  abi::store64(record.pointer, 0, 0);
  return record;
}

void device::free_record(const doorbell_record& record) {
  if (record.pinned) pinned_.unpin_record(record.bus_address);
  free_records_.push_back(record);
}

/// What there is of a queue that could not be made.
void device::give_back_queue(const bus_if::dma_memory& buffer, const doorbell_record& record) {
  if (record.pointer != nullptr) free_record(record);
  if (buffer.pointer != nullptr) bus_.release(buffer);
}

memory_region* device::reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access, const std::uint64_t* iova,
                              const std::uint32_t* key) {
  const auto fail = [](int error) -> memory_region* {
    errno = error;
    return nullptr;
  };
  std::uint64_t bus_address = 0;
  if (pd == nullptr || length == 0 || !bus_address_of(addr, length, &bus_address)) return fail(EFAULT);
  if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return fail(EINVAL);  // IBA volume 1, 11.2.8.2
  }
  auto* domain = static_cast<protection_domain*>(pd);
  auto mr = std::make_unique<memory_region>();
  mr->pd = pd;
  mr->addr = addr;
  mr->length = length;
  mr->iova = iova != nullptr ? *iova : bus_address;
  const unsigned shift = std::min(std::max(cfg_.mr_page_shift, 12u), 30u);
  if (((mr->iova ^ bus_address) & ((std::uint64_t{1} << shift) - 1)) != 0 || length - 1 > ~mr->iova)
    return fail(EINVAL);

  const std::uint32_t wanted = key != nullptr ? abi::key_to_index(*key) : 0;
  if (const int error = resources_->take(resource::mpt, &mr->index, key != nullptr ? &wanted : nullptr))
    return fail(-error);
  int error = map_user_buffer(bus_address, length, shift, mr->mtt);
  if (error == 0) {
    command_channel::mailbox box(channel_);
    std::uint8_t* m = box.data();
    abi::set(m, abi::mpt::flags, mpt_flags(access));
    abi::set(m, abi::mpt::owner, abi::mpt::owner_software);
    abi::set(m, abi::mpt::key, mr->index);
    abi::set(m, abi::mpt::pd_flags, domain->pdn | abi::mpt::pd_en_inv);
    abi::set(m, abi::mpt::start, mr->iova);
    abi::set(m, abi::mpt::length, std::uint64_t{length});
    abi::set(m, abi::mpt::mtt_address, std::uint64_t{mr->mtt.first} * caps_.mtt_bytes);
    abi::set(m, abi::mpt::entity_size, shift);
    error = channel_.write(box, abi::opcode::sw2hw_mpt, mr->index & (num_mpts_ - 1));
    if (error != 0) free_mtt(mr->mtt);
  }
  if (error != 0) {
    put_mpt(mr->index);
    return fail(-error);
  }
  mr->lkey = mr->rkey = abi::index_to_key(mr->index);
  ++domain->users;
  mrs_.push_back(std::move(mr));
  return mrs_.back().get();
}

int device::dereg_mr(ibv_mr* mr) {
  auto* region = static_cast<memory_region*>(mr);
  if (const int error = channel_.command(abi::opcode::hw2sw_mpt, region->index & (num_mpts_ - 1), 1)) return error;
  free_mtt(region->mtt);
  if (region->page_list.pointer != nullptr) bus_.release(region->page_list);
  put_mpt(region->index);
  --static_cast<protection_domain*>(region->pd)->users;
  return erase_object(mrs_, region) ? 0 : -EINVAL;
}

/// The region that a network device uses for everything: all of memory by bus address (mlx4_en_add).
int device::create_dma_mr() {
  dma_pdn_ = pdns_.allocate();
  auto mr = std::make_unique<memory_region>();
  if (const int error = take_mpt(&mr->index)) return error;
  command_channel::mailbox box(channel_);
  std::uint8_t* m = box.data();
  abi::set(m, abi::mpt::flags, mpt_flags(IBV_ACCESS_LOCAL_WRITE) | abi::mpt::flag_physical);
  abi::set(m, abi::mpt::owner, abi::mpt::owner_software);
  abi::set(m, abi::mpt::key, mr->index);
  abi::set(m, abi::mpt::pd_flags, dma_pdn_ | abi::mpt::pd_en_inv);
  abi::set(m, abi::mpt::length, ~std::uint64_t{0});
  abi::set(m, abi::mpt::entity_size, 12);
  if (const int error = channel_.write(box, abi::opcode::sw2hw_mpt, mr->index & (num_mpts_ - 1))) return error;
  mr->lkey = mr->rkey = abi::index_to_key(mr->index);
  dma_mr_ = std::move(mr);
  return 0;
}

void device::take_down_objects() {
  while (!qps_.empty()) destroy_qp(qps_.begin()->second.get());
  for (auto& srq : srqs_) {
    if (srq) destroy_srq(srq.get());
  }
  for (auto& x : xrcds_) {
    destroy_cq(x->cq);
    dealloc_pd(x->pd);
  }
  xrcds_.clear();
  for (auto& cq : cqs_) {
    if (cq) destroy_cq(cq.get());
  }
  while (!mws_.empty()) {
    if (dealloc_mw(mws_.back().get()) != 0) mws_.pop_back();
  }
  while (!mrs_.empty()) {
    if (dereg_mr(mrs_.back().get()) != 0) mrs_.pop_back();
  }
  ahs_.clear();
  pds_.clear();
  pinned_ = pinned_memory(cfg_.memlock_bytes);  // nothing is left, even of what a lost device did not give back
  flows_.clear();
  ethernet_tables_ = {};
  if (!hca_) return;
  for (unsigned p = 1; p <= ports_.size(); ++p) {
    port_state& s = ports_[p - 1];
    const bool had_gids = std::any_of(s.gids.begin(), s.gids.end(), [](const gid_row& r) { return r.valid; });
    s.gids = {};
    if (had_gids) write_gid_table(p);
    if (s.macs[0] == 0) continue;
    channel_.command(abi::opcode::close_port, p);
    s.macs = {};
    s.mac_users = {};
    write_mac_table(p);
  }
  if (dma_mr_) {
    channel_.command(abi::opcode::hw2sw_mpt, dma_mr_->index & (num_mpts_ - 1), 1);
    put_mpt(dma_mr_->index);
    dma_mr_.reset();
  }
}

}  // namespace rnic::host_driver
