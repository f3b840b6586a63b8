// SPDX-License-Identifier: Apache-2.0
#include "host_driver/dcb/dcbx.h"

#include <algorithm>

#include "model/wire/packet.h"

namespace rnic::host_driver::dcb {

wire::dcbx_values local_values(const settings& s, std::uint8_t pfc_mask) {
  wire::dcbx_values v;
  wire::ets_configuration ets;
  ets.willing = s.ets_willing;
  for (unsigned i = 0; i < 8; ++i) {
    const bool shares = s.classes[i].select == settings::algorithm::ets;
    ets.table.class_of[i] = s.class_of[i];
    ets.table.algorithm[i] = shares ? wire::selection::ets : wire::selection::strict;
    ets.table.percent[i] = shares ? s.classes[i].percent : 0;
  }
  if (s.recommend) v.recommendation = ets.table;
  v.ets = ets;
  v.pfc = wire::pfc_configuration{s.pfc_willing, false, 8, pfc_mask};
  using entry = wire::application_priority;
  std::vector<entry> applications;
  if (s.roce_v1_priority < settings::no_entry)
    applications.push_back(
        {entry::kind::ethertype, static_cast<std::uint16_t>(wire::ether_type::roce_v1), s.roce_v1_priority});
  if (s.roce_v2_priority < settings::no_entry)
    applications.push_back({entry::kind::udp_port, wire::roce_v2_udp_port, s.roce_v2_priority});
  if (!applications.empty()) v.applications = std::move(applications);
  return v;
}

const lldp_neighbour* peer_of(const std::vector<lldp_neighbour>& heard, bool* several) {
  const lldp_neighbour* found = nullptr;
  unsigned count = 0;
  for (const lldp_neighbour& n : heard) {
    if (!n.unit.dcbx.any()) continue;
    found = &n;
    ++count;
  }
  if (several != nullptr) *several = count > 1;
  return count == 1 ? found : nullptr;
}

bool supported(const wire::ets_table& t) {
  return std::none_of(t.algorithm.begin(), t.algorithm.end(),
                      [](wire::selection s) { return s == wire::selection::credit_based; });
}

operational agree(const wire::dcbx_values& local, const mac_address& own, const lldp_neighbour* peer) {
  operational o;
  o.ets = local.ets->table;
  o.pfc = local.pfc->enabled;
  if (local.applications) o.applications = *local.applications;
  if (peer == nullptr) return o;
  const wire::dcbx_values& theirs = peer->unit.dcbx;
  if (local.ets->willing && theirs.recommendation && supported(*theirs.recommendation)) {
    o.ets = *theirs.recommendation;
    o.ets_from = origin::peer;
  }
  if (local.pfc->willing && theirs.pfc && (!theirs.pfc->willing || peer->mac < own)) {
    o.pfc = theirs.pfc->enabled;
    o.pfc_from = origin::peer;
  }
  if (!local.ets->willing || !theirs.applications) return o;
  std::vector<wire::application_priority> all = *theirs.applications;
  for (const wire::application_priority& mine : o.applications)
    if (std::none_of(all.begin(), all.end(), [&mine](const wire::application_priority& a) {
          return a.selector == mine.selector && a.protocol == mine.protocol;
        }))
      all.push_back(mine);
  o.applications = std::move(all);
  return o;
}

}  // namespace rnic::host_driver::dcb
