// SPDX-License-Identifier: Apache-2.0
#include "model/icm/group_walk.h"

#include <algorithm>
#include <utility>

#include "model/icm/mgid_hash.h"
#include "model/sim/check.h"
#include "model/wire/bytes.h"

namespace rnic::icm {
namespace {

// Layout of an entry (adapter control plane 4.18).
constexpr std::size_t next_at = 0x00, count_at = 0x04, id_at = 0x10, members_at = 0x20;
constexpr unsigned next_shift = 6, protocol_shift = 30;
constexpr std::uint32_t count_mask = 0xffffff;
constexpr unsigned largest_log_table = 24;

}  // namespace

group_walk::group_walk(const std::string& name, sim::clocked_block& owner, const context_cache_config& cache,
                       const icm_map& map, sim::statistics& stats)
    : owner_(owner),
      name_(name),
      map_(map),
      groups_(name, owner, cache, map, table::mcg, 0, multicast_group::shortest_bytes) {
  members_.reserve(multicast_group::max_members);
  const std::pair<const char*, const std::uint64_t*> named[] = {
      {"searches", &searches_}, {"entries", &entries_}, {"found", &found_}, {"endless", &endless_}};
  for (const auto& [n, c] : named) stats.add(name_ + "." + n, *c);
  groups_.announce(stats);
}

void group_walk::begin(const std::uint8_t* id, protocol p) {
  std::copy_n(id, id_.size(), id_.begin());
  protocol_ = p;
  index_ = mgid_hash(id, std::clamp(hash_bits_, 1u, 16u));
  steps_ = 0;
  members_.clear();
  walking_ = true;
  ++searches_;
}

group_walk::result group_walk::step() {
  RNIC_ASSERT(walking_, name_ + ": no search is under way");
  RNIC_ASSERT(read_at_ != owner_.now(), name_ + ": a second entry read in one cycle");
  read_at_ = owner_.now();
  if (index_ >= written_.size() || !written_[index_]) return end(result::absent);
  using access = context_cache<multicast_group>::result;
  multicast_group* g = nullptr;
  const access a = groups_.lookup(index_, g);
  if (a == access::pending) return result::waiting;
  if (a == access::refused) return end(result::absent);
  ++entries_;
  if (is_match(*g)) {
    take_members(*g);
    ++found_;
    return end(result::found);
  }
  index_ = wire::load_be32(g->bytes + next_at) >> next_shift;
  if (index_ == 0) return end(result::absent);
  if (++steps_ == longest_chain) {
    ++endless_;
    return end(result::endless);
  }
  owner_.wake_next();
  return result::next;
}

group_walk::result group_walk::end(result r) {
  walking_ = false;
  return r;
}

bool group_walk::is_match(const multicast_group& g) const {
  const std::uint32_t word = wire::load_be32(g.bytes + count_at);
  return (word & count_mask) != 0 && word >> protocol_shift == static_cast<std::uint32_t>(protocol_) &&
         std::equal(id_.begin(), id_.end(), g.bytes + id_at);
}

void group_walk::take_members(const multicast_group& g) {
  const std::size_t room = (map_.layout(table::mcg).entry_bytes - members_at) / 4;
  const std::size_t listed = wire::load_be32(g.bytes + count_at) & count_mask;
  const std::size_t count = std::min<std::size_t>({listed, room, multicast_group::max_members});
  for (std::size_t i = 0; i < count; ++i) members_.push_back(wire::load_be32(g.bytes + members_at + 4 * i));
}

void group_walk::written(std::uint32_t index) {
  const std::size_t entries = std::size_t{1} << std::min(largest_log_table, map_.layout(table::mcg).log_entries);
  if (index >= entries) return;
  if (written_.size() < entries) written_.resize(entries);
  written_[index] = true;
  groups_.drop(index);
}

void group_walk::reset() {
  walking_ = false;
  members_.clear();
  written_.clear();
  hash_bits_ = 0;
  groups_.drop_all();
}

}  // namespace rnic::icm
