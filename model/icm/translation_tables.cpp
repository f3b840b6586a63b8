// SPDX-License-Identifier: Apache-2.0
#include "model/icm/translation_tables.h"

#include "model/abi/endian.h"

namespace rnic::icm {

translation_tables::translation_tables(sim::clocked_block& owner, const translation_config& config, const icm_map& map)
    : map_(map),
      mpts_(owner.name() + ".mpt_entries, .mpt_ways", config.mpt_entries, config.mpt_ways, config.policy),
      mtts_(owner.name() + ".mtt_entries, .mtt_ways", config.mtt_entries / config.mtt_line_entries, config.mtt_ways,
            config.policy),
      mpt_reads_(owner, "mpt_reads", config.mpt_read_ports,
                 {{"look_up", sim::access_kind::read}, {"keys", sim::access_kind::read}}),
      mpt_writes_(owner, "mpt_memory", config.mpt_write_ports,
                  {{"fills", sim::access_kind::write}, {"keys", sim::access_kind::write}}),
      mtt_reads_(owner, "mtt_reads", config.mtt_read_ports, {{"look_up", sim::access_kind::read}}) {
  while ((1u << log_line_) < config.mtt_line_entries) ++log_line_;
}

void translation_tables::insert(const translation_fetch& f) {
  if (f.mpt) {
    mpts_.insert(f.line) = decode_mpt(f.data.data());
    return;
  }
  mtt_line& line = mtts_.insert(f.line);
  for (unsigned i = 0; i < 1u << log_line_; ++i) line.entry[i] = abi::load64(f.data.data(), 8 * i);
}

void translation_tables::replace(std::uint32_t slot, const mpt_entry& entry) {
  mpt_writes_.access(by_keys);
  mpt_entry* const e = mpts_.find(slot);
  (e != nullptr ? *e : mpts_.insert(slot)) = entry;
}

bool translation_tables::fetch_address(bool mpt, std::uint64_t line, std::uint64_t& bus) const {
  const std::uint32_t bytes = fetch_bytes(mpt);
  const std::uint64_t icm = mpt ? map_.entry(table::dmpt, static_cast<std::uint32_t>(line))
                                : map_.layout(table::mtt).base + (line << log_line_) * 8;
  if ((icm & 0xfff) + bytes > 0x1000 || (mpt && map_.layout(table::dmpt).entry_bytes < mpt_bytes)) return false;
  const auto address = map_.translate(icm);
  if (address) bus = *address;
  return address.has_value();
}

bool translation_tables::mtt_address(std::uint64_t mtt_address, std::uint64_t& bus) const {
  const auto address = map_.translate(map_.layout(table::mtt).base + mtt_address);
  if (address) bus = *address;
  return address.has_value();
}

void translation_tables::announce(sim::statistics& to) const {
  mpt_reads_.announce(to);
  mpt_writes_.announce(to);
  mtt_reads_.announce(to);
}

}  // namespace rnic::icm
