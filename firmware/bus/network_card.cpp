// SPDX-License-Identifier: Apache-2.0
#include "firmware/bus/network_card.h"

#include <memory>

#include "model/icrc/icrc_model.h"

namespace rnic::firmware {

firmware_config config_of(const adapter::config& adapter, const firmware_config& more, unsigned number) {
  firmware_config f = more;
  f.num_ports = adapter.ports;
  f.total_vfs = adapter.pcie.space.total_vfs;
  f.msix_vectors = adapter.pcie.space.msix_vectors;
  f.vf_msix_vectors = adapter.pcie.space.vf_msix_vectors;
  f.device_id = adapter.who.device_id;
  f.version = {adapter.who.firmware_major, adapter.who.firmware_minor, adapter.who.firmware_subminor};
  f.board_id = adapter.who.board;
  f.core_clock_mhz = static_cast<std::uint16_t>(adapter.clock_khz / 1000);
  f.roce_v2 = f.roce_v2 && adapter.parser.roce_v2;
  for (unsigned i = 0; i < adapter.ports; ++i) f.link_modes = f.link_modes && has_link_mode(adapter.rate_mbps(i));
  const std::uint64_t offset = std::uint64_t{number} << 8;
  for (unsigned i = 0; i < 2; ++i) {
    f.mac[i] += offset;
    f.port_guid[i] += offset;
  }
  f.node_guid += offset;
  f.system_guid += offset;
  return f;
}

network_card::network_card(const sc_core::sc_module_name& name, const adapter::environment& env,
                           const adapter::config& cfg, unsigned number)
    : sc_core::sc_module(name),
      adapter_("adapter", env, cfg,
               [&cfg](const auto&, const auto&) { return std::make_unique<icrc::icrc_model>(cfg.datapath_bytes); }),
      firmware_("firmware", adapter_.firmware_port(), config_of(cfg, {}, number)) {}

}  // namespace rnic::firmware
