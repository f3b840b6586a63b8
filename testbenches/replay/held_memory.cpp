// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/held_memory.h"

#include <algorithm>

#include "model/abi/contexts.h"

namespace rnic::replay {

namespace {
constexpr std::uint64_t largest_region = 1u << 30;  // of memory that is rebuilt
constexpr unsigned page = 4096;
}  // namespace

/// Regions of one place share a buffer, but for those whose bytes must outlast another's time.
void held_memory::allocate() {
  std::unordered_map<std::uint32_t, std::uint64_t> shared;
  for (std::size_t i = 0; i < plan_.regions.size(); ++i) {
    const held_region& r = plan_.regions[i];
    if (r.last - r.begin >= largest_region) continue;
    const std::uint64_t bytes = r.last - r.begin + 1 + r.begin % page;
    if (r.returns) {
      own_[i] = device_.allocate_buffer(bytes);
      continue;
    }
    std::uint64_t& most = shared[place_of_key(r.rkey)];
    most = std::max(most, bytes);
  }
  for (const auto& [place, bytes] : shared) places_[place].shared = device_.allocate_buffer(bytes);
}

/// A region that cannot be had is left out: the peer's requests are then answered with an access error, which shows.
void held_memory::set_up(host_driver::protection_domain* pd, std::map<std::string, std::uint64_t>& remarks) {
  pd_ = pd;
  allocate();
  for (std::size_t i = 0; i < plan_.regions.size(); ++i) {
    const held_region& r = plan_.regions[i];
    const bool had = r.last - r.begin < largest_region && (r.late || add(places_[place_of_key(r.rkey)], i));
    if (!had) ++remarks["memory regions that could not be had (1 GiB at most each): requests for them are refused"];
  }
}

bool held_memory::add(key_place& place, std::size_t region) {
  const held_region& r = plan_.regions[region];
  if (place.registered != nullptr || r.last - r.begin >= largest_region) return false;
  const host_driver::bus_if::dma_memory& buffer = r.returns ? own_[region] : place.shared;
  if (buffer.pointer == nullptr) return false;
  const int access = IBV_ACCESS_LOCAL_WRITE | (r.read ? IBV_ACCESS_REMOTE_READ : 0) |
                     (r.write ? IBV_ACCESS_REMOTE_WRITE : 0) | (r.atomic ? IBV_ACCESS_REMOTE_ATOMIC : 0);
  place.region = region;
  place.first = buffer.pointer + r.begin % page;
  place.registered = device_.reg_mr(pd_, place.first, r.last - r.begin + 1, access, &r.begin, &r.rkey);
  return place.registered != nullptr && (!r.invalidated || let_invalidate(*place.registered));
}

/// What a peer may invalidate is a region of fast registration, or a window (IBA volume 1, 10.6.7.2.6): the entry of
/// the table is changed as a driver does that registers again (mlx4_mr_hw_get_mpt, mlx4_mr_hw_write_mpt).
bool held_memory::let_invalidate(const host_driver::memory_region& r) {
  host_driver::command_channel& commands = device_.commands();
  host_driver::command_channel::mailbox box(commands);
  const std::uint32_t slot = place_of_key(r.rkey);
  if (commands.read(box, abi::opcode::hw2sw_mpt, slot) != 0) return false;
  std::uint8_t* m = box.data();
  abi::set(m, abi::mpt::owner, abi::mpt::owner_software);
  abi::set(m, abi::mpt::pd_flags,
           abi::get(m, abi::mpt::pd_flags) | abi::mpt::pd_en_inv | abi::mpt::pd_fast_reg | abi::mpt::pd_remote_access);
  abi::set(m, abi::mpt::mtt_count, r.mtt.count);
  return commands.write(box, abi::opcode::sw2hw_mpt, slot) == 0;
}

void held_memory::revoke(std::uint32_t rkey) {
  const auto at = places_.find(place_of_key(rkey));
  if (at == places_.end() || at->second.registered == nullptr || at->second.registered->rkey != rkey) return;
  device_.dereg_mr(at->second.registered);
  at->second.registered = nullptr;
}

void held_memory::install(std::size_t index) {
  key_place& place = places_[place_of_key(plan_.regions[index].rkey)];
  if (place.registered != nullptr) device_.dereg_mr(place.registered);
  place.registered = nullptr;
  add(place, index);
}

void held_memory::fill(std::size_t frame) {
  const auto contents = plan_.contents.find(frame);
  if (contents == plan_.contents.end()) return;
  for (const memory_content& c : contents->second) {
    const auto at = places_.find(place_of_key(c.rkey));
    if (at == places_.end() || at->second.registered == nullptr || at->second.registered->rkey != c.rkey) continue;
    std::uint8_t counter[8];  // memory as the host sees it: little-endian
    for (unsigned i = 0; i < 8; ++i) counter[i] = static_cast<std::uint8_t>(c.counter >> 8 * i);
    const captured_frame* f = c.is_counter ? nullptr : &plan_.frames[c.answer];
    const std::size_t bytes = f == nullptr ? sizeof counter : f->known_payload();
    const held_region& r = plan_.regions[at->second.region];
    if (bytes == 0 || c.address < r.begin || c.address > r.last || bytes - 1 > r.last - c.address) continue;
    std::copy_n(f == nullptr ? counter : f->bytes.data() + f->packet.payload_offset, bytes,
                at->second.first + (c.address - r.begin));
  }
}

}  // namespace rnic::replay
