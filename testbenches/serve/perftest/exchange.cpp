// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/perftest/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "model/abi/endian.h"
#include "testbenches/serve/host/application.h"

namespace rnic::serve::perftest {

namespace {

constexpr const char* own_version = "6.06";
constexpr double oldest_version = 5.70;
constexpr unsigned smallest_mtu = 256, most_mtu_code = IBV_MTU_4096;
constexpr std::size_t address_at = 24, gid_at = 32, srqn_at = 48, structure_bytes = 56;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> fields(1);
  for (const char c : text) {
    if (c == ':')
      fields.emplace_back();
    else
      fields.back().push_back(c);
  }
  return fields;
}

std::optional<std::uint64_t> hexadecimal(const std::string& text, std::size_t digits) {
  if (text.size() != digits || text.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
    return std::nullopt;
  return std::stoull(text, nullptr, 16);
}

}  // namespace

std::string to_text(const destination& d) {
  std::string text =
      fmt::format("{:04x}:{:04x}:{:06x}:{:06x}:{:08x}:{:016x}:", d.lid, d.reads, d.qpn, d.psn, d.rkey, d.address);
  for (const std::uint8_t byte : d.gid) text += fmt::format("{:02x}:", byte);
  return text + fmt::format("{:08x}:", d.srqn);
}

std::optional<destination> parse_destination(const std::string& text) {
  constexpr std::size_t numbers = 6, gid_bytes = 16;
  constexpr std::size_t digits[numbers] = {4, 4, 6, 6, 8, 16};
  const std::vector<std::string> fields = split(text);
  if (fields.size() < numbers + gid_bytes + 1) return std::nullopt;
  std::uint64_t number[numbers] = {};
  for (std::size_t i = 0; i < numbers; ++i) {
    const auto value = hexadecimal(fields[i], digits[i]);
    if (!value) return std::nullopt;
    number[i] = *value;
  }
  destination d;
  d.lid = static_cast<std::uint16_t>(number[0]);
  d.reads = static_cast<std::uint32_t>(number[1]);
  d.qpn = static_cast<std::uint32_t>(number[2]);
  d.psn = static_cast<std::uint32_t>(number[3]);
  d.rkey = static_cast<std::uint32_t>(number[4]);
  d.address = number[5];
  for (std::size_t i = 0; i < gid_bytes; ++i) {
    const auto byte = hexadecimal(fields[numbers + i], 2);
    if (!byte) return std::nullopt;
    d.gid[i] = static_cast<std::uint8_t>(*byte);
  }
  const auto srqn = hexadecimal(fields[numbers + gid_bytes], 8);
  if (!srqn) return std::nullopt;
  d.srqn = static_cast<std::uint32_t>(*srqn);
  return d;
}

std::string to_bytes(const destination& d) {
  std::array<std::uint8_t, structure_bytes> b{};
  const std::uint32_t words[] = {d.lid, d.reads, d.qpn, d.psn, d.rkey};
  for (std::size_t i = 0; i < std::size(words); ++i) abi::store32(b.data(), 4 * i, words[i]);
  abi::store64(b.data(), address_at, d.address);
  std::copy(d.gid.begin(), d.gid.end(), b.begin() + gid_at);
  abi::store32(b.data(), srqn_at, d.srqn);
  return std::string(b.begin(), b.end());
}

destination destination_of(const std::string& bytes) {
  std::array<std::uint8_t, structure_bytes> b{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), b.size()), b.begin());
  destination d;
  d.lid = static_cast<std::uint16_t>(abi::load32(b.data(), 0));
  d.reads = abi::load32(b.data(), 4);
  d.qpn = abi::load32(b.data(), 8) & 0xffffff;
  d.psn = abi::load32(b.data(), 12) & 0xffffff;
  d.rkey = abi::load32(b.data(), 16);
  d.address = abi::load64(b.data(), address_at);
  std::copy_n(b.begin() + gid_at, d.gid.size(), d.gid.begin());
  d.srqn = abi::load32(b.data(), srqn_at);
  return d;
}

std::string exchange::swap(const std::string& own, const char* what, bool at_work) {
  const auto failed = [this, what] {
    return peer_failure(fmt::format("the peer did not tell its {}: is it gone?{}", what, in_brackets()));
  };
  if (client_ && !peer_->send(own)) throw failed();
  const auto theirs =
      at_work ? peer_->receive(own.size(), for_ever, meanwhile_) : peer_->receive(own.size(), exchange_ps, {});
  if (!theirs) throw failed();
  if (!client_ && !peer_->send(own)) throw failed();
  return *theirs;
}

/// Big-endian, as everything that is not text.
std::uint64_t exchange::swap(std::uint64_t own, std::size_t bytes, const char* what, bool at_work) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(own >> (8 * (bytes - 1 - i)));
  std::uint64_t theirs = 0;
  for (const char c : swap(text, what, at_work)) theirs = theirs << 8 | static_cast<std::uint8_t>(c);
  return theirs;
}

double exchange::swap(double own, const char* what) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &own, sizeof bits);
  bits = swap(bits, sizeof bits, what);
  std::memcpy(&own, &bits, sizeof bits);
  return own;
}

/// As the tools do (perftest_communication.c:exchange_versions, check_version_compatibility): both tell, then each
/// looks.
void exchange::agree_on_version() {
  std::string version = own_version;
  version.resize(version_bytes, '\0');
  const std::string said = swap(version, "version"), theirs = said.c_str();
  const bool is_one = !theirs.empty() && theirs.find_first_not_of("0123456789.") == std::string::npos;
  if (!is_one) throw peer_failure(fmt::format("the peer tells no version of perftest; this one is {}", own_version));
  if (theirs == own_version) return;
  versions_ = fmt::format("speaks perftest {}, this host {}", theirs, own_version);
  if (!(std::strtod(theirs.c_str(), nullptr) >= oldest_version))
    throw peer_failure(fmt::format("the peer {}: versions older than {:.2f} are refused", versions_, oldest_version));
}

std::string exchange::in_brackets() const { return versions_.empty() ? "" : " (it " + versions_ + ")"; }

exchange::agreement exchange::agree(const agreement& own) {
  agree_on_version();
  agreement both;
  both.cycle_bytes = static_cast<std::uint32_t>(swap(own.cycle_bytes, 4, "page size"));
  both.line_bytes = static_cast<std::uint32_t>(swap(own.line_bytes, 4, "cache line"));
  constexpr std::uint32_t longest_page = 1u << 24, longest_line = 4096;
  if (both.cycle_bytes > longest_page || both.line_bytes > longest_line)
    throw peer_failure("the peer's pages and cache lines make no sense" + in_brackets());
  both.cycle_bytes = std::max(both.cycle_bytes, own.cycle_bytes);
  both.line_bytes = std::max(both.line_bytes, own.line_bytes);
  const auto own_code = static_cast<unsigned>(hosts::to_ibv_mtu(own.mtu));
  const std::string code = swap(fmt::format("{}", own_code) + '\0', "MTU");
  const auto their_code = static_cast<unsigned>(std::strtoul(code.c_str(), nullptr, 10));
  const bool valid = their_code >= IBV_MTU_256 && their_code <= most_mtu_code;
  both.mtu = smallest_mtu << ((valid ? std::min(own_code, their_code) : own_code) - IBV_MTU_256);
  return both;
}

destination exchange::tell(const destination& own, bool at_work) {
  if (!peer_->is_text()) return destination_of(swap(to_bytes(own), "queue pair", at_work));
  std::string text = to_text(own);
  text.resize(text_bytes, '\0');
  const auto theirs = parse_destination(swap(text, "queue pair", at_work));
  if (!theirs)
    throw peer_failure("what the peer tells of its queue pair makes no sense: is it the same test?" + in_brackets());
  return *theirs;
}

report exchange::tell(const report& own) {
  report r;
  r.size = swap(own.size, sizeof own.size, "report", true);
  r.iterations = swap(own.iterations, sizeof own.iterations, "report");
  r.peak = swap(own.peak, "report");
  r.average = swap(own.average, "report");
  r.rate = swap(own.rate, "report");
  return r;
}

void exchange::end(const destination& own) {
  tell(own, true);
  if (peer_->is_text()) peer_->send(std::string("done") + '\0');  // nobody waits for it: the peer may be gone
}

}  // namespace rnic::serve::perftest
