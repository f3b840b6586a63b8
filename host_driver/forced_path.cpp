// SPDX-License-Identifier: Apache-2.0
#include "host_driver/forced_path.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <tuple>

namespace rnic::host_driver {

namespace {

constexpr unsigned mapped_bits = 96;  // of a GID, in front of an IPv4 address
constexpr int highest = 255;

/// A whole number that a signed one of the kernel's takes, and nothing behind it.
std::optional<int> number(const std::string& text) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && at == end && !text.empty() ? std::optional(value) : std::nullopt;
}

std::optional<gid_bytes> address(const std::string& text) {
  gid_bytes g{};
  if (inet_pton(AF_INET6, text.c_str(), g.data()) == 1) return g;
  std::uint8_t four[4];
  if (inet_pton(AF_INET, text.c_str(), four) != 1) return std::nullopt;
  g[10] = g[11] = 0xff;
  std::copy(std::begin(four), std::end(four), g.begin() + 12);
  return g;
}

std::string text_of(const gid_bytes& g) {
  char text[INET6_ADDRSTRLEN];
  return is_ipv4(g) ? inet_ntop(AF_INET, g.data() + 12, text, sizeof text)
                    : inet_ntop(AF_INET6, g.data(), text, sizeof text);
}

bool same_bits(const gid_bytes& a, const gid_bytes& b, unsigned bits) {
  for (unsigned i = 0; i < bits; ++i)
    if (((a[i / 8] ^ b[i / 8]) >> (7 - i % 8) & 1) != 0) return false;
  return true;
}

std::string without_newline(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

struct forced_path::request {
  int value = 0;
  rule of;
  bool of_addresses() const { return of.source || of.destination; }
};

bool forced_path::rule::same_addresses(const rule& other) const {
  return source == other.source && destination == other.destination && mask_bits == other.mask_bits;
}

bool forced_path::rule::covers(const gid_bytes& from, const gid_bytes& to) const {
  return (!source || *source == from) && (!destination || same_bits(*destination, to, mask_bits));
}

bool forced_path::rule::goes_before(const rule& other) const {
  const bool both = source && destination, others_both = other.source && other.destination;
  if (both != others_both) return both;
  const unsigned mask = destination ? mask_bits : 0, others_mask = other.destination ? other.mask_bits : 0;
  if (source.has_value() != other.source.has_value()) return source.has_value();
  return mask > others_mask;
}

/// False: it is no request.
bool forced_path::parse(const std::string& text, request& out) {
  bool valued = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string field = text.substr(at, end - at);
    const std::size_t equals = field.find('=');
    const std::string name = equals == std::string::npos ? "tclass" : field.substr(0, equals);
    std::string value = equals == std::string::npos ? field : field.substr(equals + 1);
    if (name == "tclass") {
      const auto n = number(value);
      if (valued || !n || *n > highest) return false;
      out.value = *n;
      valued = true;
    } else if (name == "src_ip") {
      if (out.of.source || !(out.of.source = address(value))) return false;
    } else if (name == "dst_ip") {
      const std::size_t slash = value.find('/');
      const auto bits = slash == std::string::npos ? std::nullopt : number(value.substr(slash + 1));
      if (out.of.destination || (slash != std::string::npos && (!bits || *bits < 0 || *bits > 32))) return false;
      out.of.destination = address(value.substr(0, slash));
      if (!out.of.destination || (bits && !is_ipv4(*out.of.destination))) return false;
      if (bits) out.of.mask_bits = mapped_bits + static_cast<unsigned>(*bits);
    } else {
      return false;
    }
    at = end + 1;
  }
  return valued;
}

int forced_path::write_traffic_class(const std::string& text) {
  request r;
  if (!parse(without_newline(text), r)) return -EINVAL;
  const bool off = r.value < 0;
  if (!r.of_addresses()) {
    for_all_ = off ? std::nullopt : std::optional(static_cast<std::uint8_t>(r.value));
    return 0;
  }
  const auto old =
      std::find_if(rules_.begin(), rules_.end(), [&](const rule& one) { return one.same_addresses(r.of); });
  if (off && old == rules_.end()) return -ENOENT;
  if (old != rules_.end()) rules_.erase(old);
  if (off) return 0;
  r.of.traffic_class = static_cast<std::uint8_t>(r.value);
  // Kept in the order in which they apply; equal ones by their addresses, not by when they were written.
  const auto place = std::find_if(rules_.begin(), rules_.end(), [&](const rule& one) {
    if (r.of.goes_before(one) != one.goes_before(r.of)) return r.of.goes_before(one);
    return std::tie(r.of.source, r.of.destination) < std::tie(one.source, one.destination);
  });
  rules_.insert(place, r.of);
  return 0;
}

std::string forced_path::traffic_class_text() const {
  std::string text;
  if (for_all_) text += "Global tclass=" + std::to_string(*for_all_) + "\n";
  for (const rule& r : rules_) {
    text += "tclass=" + std::to_string(r.traffic_class);
    if (r.source) text += ",src_ip=" + text_of(*r.source);
    if (r.destination) text += ",dst_ip=" + text_of(*r.destination);
    if (r.destination && r.mask_bits != 128) text += "/" + std::to_string(r.mask_bits - mapped_bits);
    text += "\n";
  }
  return text;
}

std::optional<std::uint8_t> forced_path::traffic_class(const gid_bytes& source, const gid_bytes& destination) const {
  if (for_all_) return for_all_;
  const auto at =
      std::find_if(rules_.begin(), rules_.end(), [&](const rule& r) { return r.covers(source, destination); });
  return at == rules_.end() ? std::nullopt : std::optional(at->traffic_class);
}

int forced_path::write_ttl(const std::string& text) {
  const auto n = number(without_newline(text));
  if (!n || *n > highest) return -EINVAL;
  ttl_ = *n < 0 ? std::nullopt : std::optional(static_cast<std::uint8_t>(*n));
  return 0;
}

std::string forced_path::ttl_text() const { return ttl_ ? std::to_string(*ttl_) : "-1"; }

}  // namespace rnic::host_driver
