// SPDX-License-Identifier: Apache-2.0
// What an administrator says of data centre bridging on a host's ports.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace rnic::host_driver::dcb {

/// Timers of LLDP (IEEE 802.1AB-2016, 9.2.5), with the standard's defaults.
struct lldp_timers {
  unsigned tx_interval_s = 30;  ///< msgTxInterval, 1 to 3600 s
  unsigned tx_hold = 4;         ///< msgTxHold, 1 to 100: times the interval is how long a neighbour remembers us
  unsigned fast_tx_s = 1;       ///< msgFastTx, 1 to 3600 s: interval after a new neighbour has come
  unsigned fast_init = 4;       ///< txFastInit, 1 to 8 data units at that interval
  unsigned credit_max = 5;      ///< txCreditMax, 1 to 10 data units one after the other; one more each second
  unsigned reinit_s = 2;        ///< reinitDelay, 1 to 10 s from a stop to the next start
};

/// The same for all ports of a host. Which priorities have PFC is config::pfc_mask.
struct settings {
  bool enabled = false;  ///< without it nothing is sent, nothing is listened for, and no command is given
  bool ets_willing = true, pfc_willing = true;
  bool recommend = true;  ///< the peer gets the own table as ETS Recommendation
  enum class algorithm : std::uint8_t { strict, ets };
  struct traffic_class {
    algorithm select = algorithm::strict;
    std::uint8_t percent = 0;  ///< of the ETS classes, 100 together
  };
  std::array<traffic_class, 8> classes{};
  std::array<std::uint8_t, 8> class_of{0, 1, 2, 3, 4, 5, 6, 7};  ///< of each priority
  static constexpr std::uint8_t no_entry = 8;
  std::uint8_t roce_v1_priority = no_entry, roce_v2_priority = no_entry;  ///< 0 to 7, or nothing is said of it
  lldp_timers lldp;
  std::string system_name;  ///< LLDP's; the host's
};

/// What the reaction points of all ports are set to (802.1Q names without rpg, rppp; dcbnl's struct ieee_qcn). Defaults
/// are those of 802.1Q's managed objects, but for max_rps.
struct qcn_settings {
  std::uint8_t priorities = 0;  ///< that react, one bit each; with none of them no command is given
  std::uint32_t max_rps = 100;  ///< reaction points (queue pairs) of a port's priority
  std::uint32_t time_reset_us = 15'000, byte_reset = 150'000, threshold = 5;
  std::uint32_t max_rate_mbps = 0;  ///< 0: the port's rate
  std::uint32_t ai_rate_mbps = 5, hai_rate_mbps = 50, gd = 7, min_dec_percent = 50, min_rate_mbps = 5;
};

}  // namespace rnic::host_driver::dcb
