// SPDX-License-Identifier: Apache-2.0
// Protection domains, regions, windows, and the bytes in them.
#include <fmt/format.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cstring>

#include "testbenches/serve/script/commands.h"

namespace rnic::serve::script {

using nlohmann::json;

namespace {

constexpr std::size_t most_at_once = 256 << 10;  // bytes that one command carries

json alloc_pd(session& s, fields& f) {
  const std::string name = s.pds.new_name(f);
  f.end();
  s.pds.put(name, made_by(s.device.alloc_pd(), "alloc_pd"));
  return {{"pd", name}};
}

json dealloc_pd(session& s, fields& f) {
  const auto pd = s.pds.at(f);
  f.end();
  require_verb(s.device.dealloc_pd(pd), "dealloc_pd");
  s.pds.remove(s.pds.name_of([&](const auto& o) { return o == pd; }));
  return json::object();
}

json reg_mr(session& s, fields& f) {
  const std::string name = s.mrs.new_name(f);
  const auto pd = s.pds.at(f);
  const int access = f.words("access", access_rights);
  region r;
  if (f.has("of")) {
    const region& other = s.mrs.at(f, "of");
    r.bytes = other.bytes;
    const std::uint64_t offset = f.number("offset", 0, other.length, 0);
    r.offset = other.offset + offset;
    r.length = f.number("bytes", 1, other.length - offset, std::max<std::uint64_t>(other.length - offset, 1));
    f.end();
  } else {
    const std::uint64_t used = s.memory_bytes();
    r.length = f.number("bytes", 1, most_memory_bytes - std::min(used, most_memory_bytes - 1));
    f.end();
    if (used >= most_memory_bytes)
      throw command_error(fmt::format("bytes: the client has the {} bytes that it may have", most_memory_bytes));
    r.bytes = std::make_shared<memory>(s.device, r.length);
    if (r.bytes->dma.pointer == nullptr) failed("allocate_buffer", ENOMEM);
    std::memset(r.bytes->dma.pointer, 0, r.length);
  }
  r.mr = made_by(s.device.reg_mr(pd, r.pointer(), r.length, access), "reg_mr");
  s.mrs.put(name, r);
  return {{"mr", name}, {"addr", r.mr->iova}, {"bytes", r.length}, {"lkey", r.mr->lkey}, {"rkey", r.mr->rkey}};
}

json dereg_mr(session& s, fields& f) {
  const auto mr = s.mrs.at(f).mr;
  f.end();
  require_verb(s.device.dereg_mr(mr), "dereg_mr");
  s.mrs.remove(s.mrs.name_of([&](const region& r) { return r.mr == mr; }));
  return json::object();
}

/// Part of a region that a command speaks of.
struct part {
  std::uint8_t* pointer;
  std::size_t bytes;
};

part part_of(session& s, fields& f, std::uint64_t most, const std::uint64_t* length = nullptr) {
  const region& r = s.mrs.at(f);
  const std::uint64_t offset = f.number("offset", 0, r.length, 0);
  const std::uint64_t room = std::min<std::uint64_t>(r.length - offset, most);
  const std::uint64_t bytes = length != nullptr ? *length : f.number("bytes", 0, room, room);
  if (bytes > room)
    f.wrong("hex", fmt::format("{} bytes from {} on are more than the {} of the region", bytes, offset, r.length));
  return {r.pointer() + offset, bytes};
}

json write(session& s, fields& f) {
  const std::vector<std::uint8_t> bytes = f.bytes("hex", most_at_once);
  const std::uint64_t length = bytes.size();
  const part p = part_of(s, f, fields::any64, &length);
  f.end();
  std::copy(bytes.begin(), bytes.end(), p.pointer);
  return json::object();
}

json read(session& s, fields& f) {
  const part p = part_of(s, f, most_at_once);
  f.end();
  return {{"hex", to_hex(p.pointer, p.bytes)}};
}

json fill(session& s, fields& f) {
  const part p = part_of(s, f, fields::any64);
  const bool seeded = f.has("seed");
  auto state = static_cast<std::uint32_t>(seeded ? f.number("seed", 0, fields::any32) : f.number("byte", 0, 255));
  f.end();
  for (std::size_t i = 0; i < p.bytes; ++i) {
    if (seeded) state = state * 1664525u + 1013904223u;
    p.pointer[i] = static_cast<std::uint8_t>(seeded ? state >> 24 : state);
  }
  return json::object();
}

json crc32(session& s, fields& f) {
  const part p = part_of(s, f, fields::any64);
  f.end();
  boost::crc_32_type crc;
  crc.process_bytes(p.pointer, p.bytes);
  return {{"crc32", crc.checksum()}};
}

json alloc_mw(session& s, fields& f) {
  const std::string name = s.mws.new_name(f);
  const auto pd = s.pds.at(f);
  const auto type = f.number("type", 1, 2);
  f.end();
  const auto mw = made_by(s.device.alloc_mw(pd, type == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2), "alloc_mw");
  s.mws.put(name, mw);
  return {{"mw", name}, {"rkey", mw->rkey}};
}

json dealloc_mw(session& s, fields& f) {
  const auto mw = s.mws.at(f);
  f.end();
  require_verb(s.device.dealloc_mw(mw), "dealloc_mw");
  s.mws.remove(s.mws.name_of([&](const auto& o) { return o == mw; }));
  return json::object();
}

}  // namespace

void add_memory_commands(command_table& table) {
  table.insert({{"alloc_pd", alloc_pd},
                {"dealloc_pd", dealloc_pd},
                {"reg_mr", reg_mr},
                {"dereg_mr", dereg_mr},
                {"write", write},
                {"read", read},
                {"fill", fill},
                {"crc32", crc32},
                {"alloc_mw", alloc_mw},
                {"dealloc_mw", dealloc_mw}});
}

}  // namespace rnic::serve::script
