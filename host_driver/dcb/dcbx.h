// SPDX-License-Identifier: Apache-2.0
// What two ends of a link agree on (IEEE 802.1Q-2018, clause 38).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host_driver/dcb/lldp_agent.h"
#include "host_driver/dcb/settings.h"
#include "model/wire/dcbx.h"

namespace rnic::host_driver::dcb {

/// Where a part of the operational configuration comes from.
enum class origin : std::uint8_t { local, peer };

/// What is in force on a port.
struct operational {
  wire::ets_table ets;
  origin ets_from = origin::local;
  std::uint8_t pfc = 0;  ///< bit n: priority n
  origin pfc_from = origin::local;
  /// From which RoCE has its priority (service::roce_priority): the peer's entries where we are willing to take its
  /// shares, and our own that it says nothing of.
  std::vector<wire::application_priority> applications;

  bool operator==(const operational& o) const {
    return ets == o.ets && ets_from == o.ets_from && pfc == o.pfc && pfc_from == o.pfc_from &&
           applications == o.applications;
  }
  bool operator!=(const operational& o) const { return !(*this == o); }
};

/// The own side of a port, as its TLVs say it.
wire::dcbx_values local_values(const settings& s, std::uint8_t pfc_mask);

/// The one that takes part in the exchange, of those that were heard; nullptr when there is none, or more than one,
/// which is as if there were none until one of them is left (38.3). `several`: the latter.
const lldp_neighbour* peer_of(const std::vector<lldp_neighbour>& heard, bool* several = nullptr);

/// `own`, `peer`'s: MAC addresses of the ends. ETS is asymmetric: who is willing takes the peer's recommendation
/// (38.4.1). PFC is symmetric: one that is willing takes the configuration of one that is not; of two that are willing
/// the one with the lower MAC address keeps its own (38.4.2). A recommendation with an algorithm that the adapter has
/// not (the credit-based shaper; en_dcb_nl.c: mlx4_en_ets_validate) is not taken.
operational agree(const wire::dcbx_values& local, const mac_address& own, const lldp_neighbour* peer);

/// Whether the adapter can do it.
bool supported(const wire::ets_table& t);

}  // namespace rnic::host_driver::dcb
