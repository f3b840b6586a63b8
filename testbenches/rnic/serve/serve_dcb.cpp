// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/serve/serve_dcb.h"

#include <fmt/format.h>

#include <functional>

#include "model/wire/ethernet.h"

namespace rnic::program {

namespace {

using host_driver::dcb::origin;
using host_driver::dcb::service;
using wire::application_priority;

const char* name_of(wire::selection s) {
  switch (s) {
    case wire::selection::strict:
      return "strict";
    case wire::selection::credit_based:
      return "cbs";
    case wire::selection::ets:
      return "ets";
    case wire::selection::vendor:
      break;
  }
  return "vendor";
}

const char* name_of(origin o) { return o == origin::peer ? "peer" : "local"; }
const char* on_off(bool on) { return on ? "on" : "off"; }

/// "name 0:x 1:y ... 7:z".
std::string row(const char* name, const std::function<std::string(unsigned)>& value) {
  std::string s = name;
  for (unsigned i = 0; i < 8; ++i) s += fmt::format(" {}:{}", i, value(i));
  return s + "\n";
}

std::string table(const char* prefix, const wire::ets_table& t) {
  const auto name = [prefix](const char* rest) { return std::string(prefix) + rest; };
  return row(name("tc-bw").c_str(), [&](unsigned i) { return std::to_string(t.percent[i]); }) +
         row(name("tc-tsa").c_str(), [&](unsigned i) { return std::string(name_of(t.algorithm[i])); }) +
         row(name("prio-tc").c_str(), [&](unsigned i) { return std::to_string(t.class_of[i]); });
}

std::string priorities(std::uint8_t mask) {
  std::string s;
  for (unsigned p = 0; p < 8; ++p)
    if ((mask >> p & 1) != 0) s += (s.empty() ? "" : ",") + std::to_string(p);
  return s.empty() ? "none" : s;
}

/// "tc0 strict of 0,1,2,4,6,7; tc1 70 % of 3": classes that have a priority.
std::string classes(const wire::ets_table& t) {
  std::string s;
  for (unsigned tc = 0; tc < 8; ++tc) {
    unsigned mask = 0;
    for (unsigned p = 0; p < 8; ++p)
      if (t.class_of[p] == tc) mask |= 1u << p;
    if (mask == 0) continue;
    const bool shares = t.algorithm[tc] == wire::selection::ets;
    s += fmt::format("{}tc{} {} of {}", s.empty() ? "" : "; ", tc,
                     shares ? std::to_string(t.percent[tc]) + " %" : name_of(t.algorithm[tc]),
                     priorities(static_cast<std::uint8_t>(mask)));
  }
  return s;
}

std::string text_of(const wire::lldp_id& id) {
  if (id.value.size() == 6) {
    wire::mac_address mac;
    std::copy(id.value.begin(), id.value.end(), mac.begin());
    return wire::to_string(mac);
  }
  std::string s;
  for (const std::uint8_t b : id.value)
    s += b >= 0x20 && b < 0x7f ? std::string(1, static_cast<char>(b)) : fmt::format("\\x{:02x}", b);
  return s;
}

/// Without what would move a terminal's cursor, or is no text at all.
std::string printable(const std::string& from) {
  std::string s;
  for (const char c : from) s += c >= 0x20 && c < 0x7f ? c : '?';
  return s;
}

nlohmann::json table_json(const wire::ets_table& t) {
  nlohmann::json j;
  j["prio_tc"] = t.class_of;
  j["tc_bw"] = t.percent;
  for (const wire::selection s : t.algorithm) j["tc_tsa"].push_back(name_of(s));
  return j;
}

nlohmann::json applications_json(const std::vector<application_priority>& all) {
  nlohmann::json j = nlohmann::json::array();
  for (const application_priority& a : all)
    j.push_back({{"selector", static_cast<unsigned>(a.selector)}, {"protocol", a.protocol}, {"priority", a.priority}});
  return j;
}

nlohmann::json neighbour_json(const host_driver::dcb::lldp_neighbour& n) {
  const wire::lldp_unit& u = n.unit;
  nlohmann::json j{{"mac", wire::to_string(n.mac)},
                   {"chassis_id", text_of(u.chassis)},
                   {"port_id", text_of(u.port)},
                   {"ttl_s", u.ttl_s},
                   {"system_name", printable(u.system_name)},
                   {"port_description", printable(u.port_description)}};
  if (u.dcbx.ets) {
    j["ets"] = table_json(u.dcbx.ets->table);
    j["ets"]["willing"] = u.dcbx.ets->willing;
  }
  if (u.dcbx.recommendation) j["ets_recommendation"] = table_json(*u.dcbx.recommendation);
  if (u.dcbx.pfc) j["pfc"] = {{"willing", u.dcbx.pfc->willing}, {"enabled", u.dcbx.pfc->enabled}};
  if (u.dcbx.applications) j["app"] = applications_json(*u.dcbx.applications);
  return j;
}

}  // namespace

std::string dcb_line(const service::state& s) {
  std::string with = "nobody";
  if (s.several) with = fmt::format("{} peers, of which none counts", s.neighbours.size());
  if (s.peer) with = fmt::format("{} {}", wire::to_string(s.peer->mac), printable(s.peer->unit.system_name));
  return fmt::format("ETS {}: {}; PFC {}: {}; with {}", name_of(s.now.ets_from), classes(s.now.ets),
                     name_of(s.now.pfc_from), priorities(s.now.pfc), with);
}

std::string dcb_show(const std::string& interface, const service::state& s) {
  const wire::ets_configuration& ets = *s.local.ets;
  std::string t = fmt::format("# dcb ets show dev {}\nwilling {} ets-cap {} cbs {}\n", interface, on_off(ets.willing),
                              ets.classes, on_off(ets.credit_based));
  t += table("", s.now.ets);
  if (s.local.recommendation) t += table("reco-", *s.local.recommendation);
  t += fmt::format("# dcb pfc show dev {}\npfc-cap {} macsec-bypass {} delay 0\n", interface, s.local.pfc->capability,
                   on_off(s.local.pfc->macsec_bypass));
  t += row("prio-pfc", [&](unsigned i) { return std::string(on_off((s.now.pfc >> i & 1) != 0)); });
  t += fmt::format("# dcb app show dev {}\n", interface);
  const std::pair<application_priority::kind, const char*> kinds[] = {
      {application_priority::kind::ethertype, "ethtype-prio"},
      {application_priority::kind::tcp_port, "stream-port-prio"},
      {application_priority::kind::udp_port, "dgram-port-prio"},
      {application_priority::kind::any_port, "port-prio"},
      {application_priority::kind::dscp, "dscp-prio"}};
  for (const auto& [kind, name] : kinds) {
    std::string entries;
    for (const application_priority& a : s.now.applications)
      if (a.selector == kind)
        entries += kind == application_priority::kind::ethertype ? fmt::format(" 0x{:x}:{}", a.protocol, a.priority)
                                                                 : fmt::format(" {}:{}", a.protocol, a.priority);
    if (!entries.empty()) t += name + entries + "\n";
  }
  return t;
}

nlohmann::json dcb_json(const service::state& s) {
  nlohmann::json j;
  j["ets"] = table_json(s.now.ets);
  j["ets"]["from"] = name_of(s.now.ets_from);
  j["ets"]["willing"] = s.local.ets->willing;
  j["pfc"] = {{"from", name_of(s.now.pfc_from)}, {"enabled", s.now.pfc}, {"willing", s.local.pfc->willing}};
  j["app"] = applications_json(s.now.applications);
  j["peer"] = s.peer ? neighbour_json(*s.peer) : nlohmann::json();
  j["several_peers"] = s.several;
  j["neighbours"] = nlohmann::json::array();
  for (const auto& n : s.neighbours) j["neighbours"].push_back(neighbour_json(n));
  j["changes"] = s.changes;
  j["command_errors"] = s.command_errors;
  const host_driver::dcb::lldp_counters& c = s.lldp;
  j["lldp"] = {{"frames_out", c.frames_out},
               {"frames_in", c.frames_in},
               {"frames_discarded", c.frames_discarded},
               {"frames_in_errors", c.frames_in_errors},
               {"tlvs_discarded", c.tlvs_discarded},
               {"tlvs_unrecognized", c.tlvs_unrecognized},
               {"inserts", c.inserts},
               {"deletes", c.deletes},
               {"ageouts", c.ageouts},
               {"too_many", c.too_many}};
  return j;
}

}  // namespace rnic::program
