// SPDX-License-Identifier: Apache-2.0
// TLVs of the data centre bridging exchange (IEEE 802.1Q-2018, D.2.9 to D.2.12), values to bytes and back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rnic::wire {

/// How a traffic class is selected for transmission (IEEE 802.1Q table 8-5).
enum class selection : std::uint8_t { strict = 0, credit_based = 1, ets = 2, vendor = 255 };

/// What ETS Configuration and ETS Recommendation have in common.
struct ets_table {
  std::array<std::uint8_t, 8> class_of{0, 1, 2, 3, 4, 5, 6, 7};  ///< traffic class (0 to 7) of each priority
  std::array<std::uint8_t, 8> percent{};                         ///< share of each class; counts where it is `ets`
  std::array<selection, 8> algorithm{};                          ///< of each class

  bool operator==(const ets_table& o) const {
    return class_of == o.class_of && percent == o.percent && algorithm == o.algorithm;
  }
  bool operator!=(const ets_table& o) const { return !(*this == o); }
};
/// Classes are 0 to 7, shares at most 100, and those of the classes with `ets`, if there are any, sum to 100.
bool valid(const ets_table& t);

struct ets_configuration {
  bool willing = false;
  bool credit_based = false;  ///< the station has the credit-based shaper
  std::uint8_t classes = 8;   ///< that the station has, 3 to 8; 8 is 0 in the TLV
  ets_table table;
};

struct pfc_configuration {
  bool willing = false;
  bool macsec_bypass = false;
  std::uint8_t capability = 8;  ///< classes that may have PFC at a time, 0 to 8
  std::uint8_t enabled = 0;     ///< bit n: priority n
};

/// An entry of the Application Priority TLV.
struct application_priority {
  enum class kind : std::uint8_t { ethertype = 1, tcp_port = 2, udp_port = 3, any_port = 4, dscp = 5 };
  kind selector = kind::ethertype;
  std::uint16_t protocol = 0;
  std::uint8_t priority = 0;  ///< 0 to 7

  bool operator==(const application_priority& o) const {
    return selector == o.selector && protocol == o.protocol && priority == o.priority;
  }
};

/// What one LLDP data unit says of data centre bridging.
struct dcbx_values {
  std::optional<ets_configuration> ets;
  std::optional<ets_table> recommendation;
  std::optional<pfc_configuration> pfc;
  std::optional<std::vector<application_priority>> applications;

  bool any() const { return ets || recommendation || pfc || applications; }
};

enum class tlv_result : std::uint8_t {
  taken,
  unknown,  ///< of another subtype
  bad,      ///< wrong length or impossible contents, or there was one before: to be discarded (IEEE 802.1AB 9.2.7)
};

/// Organisation of the TLVs of IEEE 802.1.
inline constexpr std::array<std::uint8_t, 3> oui_8021{0x00, 0x80, 0xc2};

/// Takes what follows OUI and subtype in a TLV of IEEE 802.1 into `to`. Reserved bits are not looked at.
tlv_result decode_dcbx(std::uint8_t subtype, const std::uint8_t* value, std::size_t length, dcbx_values& to);

/// A TLV of IEEE 802.1: its subtype and what follows.
struct dcbx_tlv {
  std::uint8_t subtype = 0;
  std::vector<std::uint8_t> value;
};
/// One TLV for each value that is there.
std::vector<dcbx_tlv> encode_dcbx(const dcbx_values& values);

}  // namespace rnic::wire
