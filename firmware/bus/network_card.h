// SPDX-License-Identifier: Apache-2.0
// What one plugs into a slot: an adapter with its firmware.
#pragma once

#include <systemc>

#include "firmware/bus/firmware_runner.h"
#include "firmware/firmware_config.h"
#include "model/adapter/adapter.h"

namespace rnic::firmware {

/// What an adapter's firmware says about it follows from the adapter's configuration; `number` (1, 2, ...) makes MAC
/// addresses and GUIDs of the adapters of a simulation differ.
firmware_config config_of(const adapter::config& adapter, const firmware_config& more, unsigned number);

/// A module whose outside is TLM-2.0 sockets: the slot's and one pair a port. Below it are "adapter" and the process
/// "firmware".
class network_card : public sc_core::sc_module {
 public:
  network_card(const sc_core::sc_module_name& name, const adapter::environment& env, const adapter::config& cfg,
               unsigned number);

  pcie::endpoint_socket& pcie_socket() { return adapter_.pcie_socket(); }
  payload::ethernet_port_socket& port_socket(unsigned index) { return adapter_.port_socket(index); }
  adapter::adapter& nic() { return adapter_; }

 private:
  adapter::adapter adapter_;
  firmware_runner firmware_;
};

}  // namespace rnic::firmware
