// SPDX-License-Identifier: Apache-2.0
#include "model/wire/dcbx.h"

#include <algorithm>

#include "model/wire/bytes.h"

namespace rnic::wire {

namespace {

constexpr std::uint8_t subtype_ets = 9, subtype_recommendation = 10, subtype_pfc = 11, subtype_application = 12;
constexpr std::size_t table_bytes = 20, application_bytes = 3;
constexpr std::uint8_t bit7 = 0x80, bit6 = 0x40;
constexpr unsigned first_selector = 1, last_selector = 5;

/// Eight classes in nibbles, the priority with the even number in the high one; eight shares; eight algorithms.
std::optional<ets_table> decode_table(const std::uint8_t* p) {
  ets_table t;
  for (unsigned i = 0; i < 8; ++i) {
    t.class_of[i] = i % 2 == 0 ? p[i / 2] >> 4 : p[i / 2] & 15;
    t.percent[i] = p[4 + i];
    const std::uint8_t algorithm = p[12 + i];
    if (algorithm > static_cast<std::uint8_t>(selection::ets) &&
        algorithm != static_cast<std::uint8_t>(selection::vendor))
      return std::nullopt;
    t.algorithm[i] = static_cast<selection>(algorithm);
  }
  if (!valid(t)) return std::nullopt;
  return t;
}

void encode_table(const ets_table& t, std::vector<std::uint8_t>& out) {
  for (unsigned i = 0; i < 8; i += 2) out.push_back(static_cast<std::uint8_t>(t.class_of[i] << 4 | t.class_of[i + 1]));
  out.insert(out.end(), t.percent.begin(), t.percent.end());
  for (const selection s : t.algorithm) out.push_back(static_cast<std::uint8_t>(s));
}

std::uint8_t flags(bool first, bool second) {
  return static_cast<std::uint8_t>((first ? bit7 : 0) | (second ? bit6 : 0));
}

std::optional<ets_configuration> decode_ets(const std::uint8_t* p, std::size_t length) {
  if (length != 1 + table_bytes) return std::nullopt;
  ets_configuration c;
  c.willing = (p[0] & bit7) != 0;
  c.credit_based = (p[0] & bit6) != 0;
  c.classes = (p[0] & 7) == 0 ? 8 : p[0] & 7;
  const auto table = decode_table(p + 1);
  if (!table) return std::nullopt;
  c.table = *table;
  return c;
}

std::optional<pfc_configuration> decode_pfc(const std::uint8_t* p, std::size_t length) {
  if (length != 2) return std::nullopt;
  pfc_configuration c;
  c.willing = (p[0] & bit7) != 0;
  c.macsec_bypass = (p[0] & bit6) != 0;
  c.capability = p[0] & 15;
  c.enabled = p[1];
  if (c.capability > 8) return std::nullopt;
  return c;
}

std::optional<std::vector<application_priority>> decode_applications(const std::uint8_t* p, std::size_t length) {
  if (length == 0 || (length - 1) % application_bytes != 0) return std::nullopt;
  std::vector<application_priority> all;
  for (std::size_t at = 1; at < length; at += application_bytes) {
    const unsigned selector = p[at] & 7;
    if (selector < first_selector || selector > last_selector) continue;  // of a later edition
    all.push_back({static_cast<application_priority::kind>(selector), load_be16(p + at + 1),
                   static_cast<std::uint8_t>(p[at] >> 5)});
  }
  return all;
}

/// The first of its kind counts.
template <class T>
tlv_result take(std::optional<T>& to, std::optional<T> found) {
  if (!found || to) return tlv_result::bad;
  to = std::move(found);
  return tlv_result::taken;
}

}  // namespace

bool valid(const ets_table& t) {
  unsigned sum = 0;
  bool any = false;
  for (unsigned i = 0; i < 8; ++i) {
    if (t.class_of[i] > 7 || t.percent[i] > 100) return false;
    if (t.algorithm[i] != selection::ets) continue;
    any = true;
    sum += t.percent[i];
  }
  return !any || sum == 100;
}

tlv_result decode_dcbx(std::uint8_t subtype, const std::uint8_t* value, std::size_t length, dcbx_values& to) {
  switch (subtype) {
    case subtype_ets:
      return take(to.ets, decode_ets(value, length));
    case subtype_recommendation:
      return take(to.recommendation, length == 1 + table_bytes ? decode_table(value + 1) : std::nullopt);
    case subtype_pfc:
      return take(to.pfc, decode_pfc(value, length));
    case subtype_application:
      return take(to.applications, decode_applications(value, length));
    default:
      return tlv_result::unknown;
  }
}

std::vector<dcbx_tlv> encode_dcbx(const dcbx_values& v) {
  std::vector<dcbx_tlv> all;
  if (v.ets) {
    dcbx_tlv t{subtype_ets, {}};
    t.value.push_back(static_cast<std::uint8_t>(flags(v.ets->willing, v.ets->credit_based) | (v.ets->classes & 7)));
    encode_table(v.ets->table, t.value);
    all.push_back(std::move(t));
  }
  if (v.recommendation) {
    dcbx_tlv t{subtype_recommendation, {0}};
    encode_table(*v.recommendation, t.value);
    all.push_back(std::move(t));
  }
  if (v.pfc) {
    const auto first = static_cast<std::uint8_t>(flags(v.pfc->willing, v.pfc->macsec_bypass) | v.pfc->capability);
    all.push_back({subtype_pfc, {first, v.pfc->enabled}});
  }
  if (v.applications) {
    dcbx_tlv t{subtype_application, {0}};
    for (const application_priority& a : *v.applications) {
      t.value.push_back(static_cast<std::uint8_t>(unsigned{a.priority} << 5 | static_cast<unsigned>(a.selector)));
      t.value.push_back(static_cast<std::uint8_t>(a.protocol >> 8));
      t.value.push_back(static_cast<std::uint8_t>(a.protocol));
    }
    all.push_back(std::move(t));
  }
  return all;
}

}  // namespace rnic::wire
