// SPDX-License-Identifier: Apache-2.0
#include "model/gid/gid_source.h"

#include "model/sim/check.h"

namespace rnic::gid {

gid_source::gid_source(const source_config& cfg, const gid_table& entries)
    : config_(cfg), entries_(entries), under_way_(std::size_t{cfg.source_cycles} + 2) {
  if (cfg.source_cycles == 0) throw sim::config_error("adapter.gid.source_cycles: must be at least 1");
}

refusal gid_source::check(const source_request& request) const {
  if (!request.checked) return refusal::none;
  const entry& e = entries_[request.index];
  if (!e.valid) return refusal::invalid;
  if (!request.any_version && e.type != request.type) return refusal::version;
  if (entries_.num_vfs() != 0 && e.function != request.function) return refusal::function;
  const bool mixed = e.type == roce_type::v2 && is_mapped_ipv4(e.id.data()) != request.ipv4;
  return mixed ? refusal::family : refusal::none;
}

source gid_source::look_up(const source_request& request) {
  source found;
  found.why = check(request);
  if (found.why != refusal::none) return found;
  if (request.checked) {
    const entry& e = entries_[request.index];
    found.id = e.id;
    found.type = e.type;
  }
  found.mac = entries_.mac(request.mac_index);
  found.own_destination = entries_.owns(request.dmac);
  if (!request.tagged) return found;
  const auto vid = entries_.vlan(request.vlan_index);
  found.vlan_valid = vid.has_value();
  found.vlan = vid.value_or(0);
  return found;
}

source_outputs gid_source::step(const source_inputs& in) {
  source_outputs out;
  out.ready = true;
  if (!under_way_.empty() && under_way_.front().left == 0) {
    out.result_valid = true;
    out.found = under_way_.pop().found;
  }
  for (std::size_t i = 0; i < under_way_.size(); ++i) --under_way_[i].left;
  if (in.valid) under_way_.push({config_.source_cycles - 1u, look_up(in.request)});
  return out;
}

}  // namespace rnic::gid
