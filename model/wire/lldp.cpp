// SPDX-License-Identifier: Apache-2.0
#include "model/wire/lldp.h"

#include <algorithm>
#include <array>

#include "model/wire/bytes.h"

namespace rnic::wire {

namespace {

constexpr unsigned type_end = 0, type_chassis = 1, type_port = 2, type_ttl = 3, type_port_description = 4,
                   type_system_name = 5, type_system_description = 6, type_capabilities = 7, type_organization = 127;
constexpr unsigned last_basic = 8;  // the management address, which may come several times and is not looked at
constexpr std::size_t header_bytes = 2, longest_value = 511, longest_id = 256, longest_string = 255;
constexpr std::array<std::uint8_t, 3> oui_8023{0x00, 0x12, 0x0f};
constexpr std::uint8_t subtype_largest_frame = 4;

struct tlv {
  unsigned type = type_end;
  const std::uint8_t* value = nullptr;
  std::size_t length = 0;
};

/// One TLV after the other.
class reader {
 public:
  reader(const std::uint8_t* from, std::size_t length) : at_(from), left_(length) {}
  /// False: there is none that is whole.
  bool next(tlv& t) {
    if (left_ < header_bytes) return false;
    const unsigned header = load_be16(at_);
    t = {header >> 9, at_ + header_bytes, header & longest_value};
    if (t.length > left_ - header_bytes) return false;
    at_ += header_bytes + t.length;
    left_ -= header_bytes + t.length;
    return true;
  }
  bool exhausted() const { return left_ == 0; }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

bool take_id(const tlv& t, unsigned type, lldp_id& to) {
  if (t.type != type || t.length < 2 || t.length > longest_id) return false;
  to = {t.value[0], {t.value + 1, t.value + t.length}};
  return true;
}

bool take_string(const tlv& t, std::string& to) {
  if (t.length == 0 || t.length > longest_string || !to.empty()) return false;
  to.assign(t.value, t.value + t.length);
  return true;
}

tlv_result take_organization(const tlv& t, lldp_unit& to) {
  constexpr std::size_t prefix = 4;
  if (t.length < prefix) return tlv_result::bad;
  const auto of = [&t](const std::array<std::uint8_t, 3>& oui) { return std::equal(oui.begin(), oui.end(), t.value); };
  const std::uint8_t subtype = t.value[3];
  if (of(oui_8021)) return decode_dcbx(subtype, t.value + prefix, t.length - prefix, to.dcbx);
  if (!of(oui_8023) || subtype != subtype_largest_frame) return tlv_result::unknown;
  if (t.length != prefix + 2 || to.largest_frame) return tlv_result::bad;
  to.largest_frame = load_be16(t.value + prefix);
  return tlv_result::taken;
}

tlv_result take_capabilities(const tlv& t, lldp_unit& to) {
  if (t.length != 4 || to.capabilities) return tlv_result::bad;
  const std::uint16_t has = load_be16(t.value), uses = load_be16(t.value + 2);
  if ((uses & ~has) != 0) return tlv_result::bad;  // 8.5.8.3
  to.capabilities = uses;
  return tlv_result::taken;
}

tlv_result take_optional(const tlv& t, lldp_unit& to) {
  const auto text = [&t](std::string& s) { return take_string(t, s) ? tlv_result::taken : tlv_result::bad; };
  switch (t.type) {
    case type_port_description:
      return text(to.port_description);
    case type_system_name:
      return text(to.system_name);
    case type_system_description:
      return text(to.system_description);
    case type_capabilities:
      return take_capabilities(t, to);
    case type_organization:
      return take_organization(t, to);
    default:
      return t.type <= last_basic ? tlv_result::taken : tlv_result::unknown;
  }
}

class writer {
 public:
  void put(unsigned type, const std::vector<std::uint8_t>& value) {
    const std::size_t length = std::min(value.size(), longest_value);
    const auto header = static_cast<std::uint16_t>(type << 9 | length);
    bytes_.push_back(static_cast<std::uint8_t>(header >> 8));
    bytes_.push_back(static_cast<std::uint8_t>(header));
    bytes_.insert(bytes_.end(), value.begin(), value.begin() + static_cast<std::ptrdiff_t>(length));
  }
  void put(unsigned type, const lldp_id& id) {
    std::vector<std::uint8_t> value{id.subtype};
    value.insert(value.end(), id.value.begin(), id.value.end());
    put(type, value);
  }
  void put(unsigned type, const std::string& text) {
    if (text.empty()) return;
    put(type, std::vector<std::uint8_t>(
                  text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), longest_string))));
  }
  void put(const std::array<std::uint8_t, 3>& oui, std::uint8_t subtype, const std::vector<std::uint8_t>& rest) {
    std::vector<std::uint8_t> value(oui.begin(), oui.end());
    value.push_back(subtype);
    value.insert(value.end(), rest.begin(), rest.end());
    put(type_organization, value);
  }
  std::vector<std::uint8_t> finish() {
    put(type_end, std::vector<std::uint8_t>{});
    return std::move(bytes_);
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

std::vector<std::uint8_t> words(std::initializer_list<std::uint16_t> all) {
  std::vector<std::uint8_t> b;
  for (const std::uint16_t w : all) {
    b.push_back(static_cast<std::uint8_t>(w >> 8));
    b.push_back(static_cast<std::uint8_t>(w));
  }
  return b;
}

}  // namespace

std::optional<lldp_unit> decode_lldp(const std::uint8_t* body, std::size_t length, lldp_faults& faults) {
  lldp_unit u;
  reader from(body, length);
  tlv t;
  if (!from.next(t) || !take_id(t, type_chassis, u.chassis)) return std::nullopt;
  if (!from.next(t) || !take_id(t, type_port, u.port)) return std::nullopt;
  if (!from.next(t) || t.type != type_ttl || t.length < 2) return std::nullopt;
  u.ttl_s = load_be16(t.value);
  if (u.ttl_s == 0) return u;  // what follows does not count (9.2.7.7)
  while (!from.exhausted()) {
    if (!from.next(t)) return std::nullopt;
    if (t.type == type_end) {
      if (t.length != 0) return std::nullopt;
      break;  // the rest is padding
    }
    if (t.type <= type_ttl) return std::nullopt;  // a second one
    switch (take_optional(t, u)) {
      case tlv_result::taken:
        break;
      case tlv_result::unknown:
        ++faults.tlvs_unrecognized;
        break;
      case tlv_result::bad:
        ++faults.tlvs_discarded;
        break;
    }
  }
  return u;
}

std::vector<std::uint8_t> encode_lldp(const lldp_unit& u) {
  writer to;
  to.put(type_chassis, u.chassis);
  to.put(type_port, u.port);
  to.put(type_ttl, words({u.ttl_s}));
  if (u.ttl_s == 0) return to.finish();
  to.put(type_port_description, u.port_description);
  to.put(type_system_name, u.system_name);
  to.put(type_system_description, u.system_description);
  if (u.capabilities) to.put(type_capabilities, words({*u.capabilities, *u.capabilities}));
  for (const dcbx_tlv& t : encode_dcbx(u.dcbx)) to.put(oui_8021, t.subtype, t.value);
  if (u.largest_frame) to.put(oui_8023, subtype_largest_frame, words({*u.largest_frame}));
  return to.finish();
}

}  // namespace rnic::wire
