// SPDX-License-Identifier: Apache-2.0
// The host and its adapter: addresses, neighbours, time.
#include "model/wire/ethernet.h"
#include "testbenches/serve/script/commands.h"

namespace rnic::serve::script {

using namespace host_driver;
using nlohmann::json;

namespace {

json address(session& s, fields& f) {
  f.end();
  json gids = json::array();
  const auto& rows = s.device.port(1).gids;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].valid) continue;
    json row = {{"index", i},
                {"gid", wire::to_string(rows[i].id)},
                {"type", rows[i].type == IBV_GID_TYPE_ROCE_V2 ? "roce_v2" : "roce_v1"}};
    if (rows[i].vlan != no_vlan) row["vlan"] = rows[i].vlan;
    gids.push_back(row);
  }
  return {{"mac", wire::to_string(s.host.mac())}, {"gid_index", s.gid_index}, {"gids", gids}};
}

json query_device(session& s, fields& f) {
  f.end();
  ibv_device_attr a{};
  require_verb(s.device.query_device(&a), "query_device");
  return {{"max_qp", a.max_qp},         {"max_qp_wr", a.max_qp_wr},
          {"max_sge", a.max_sge},       {"max_cq", a.max_cq},
          {"max_cqe", a.max_cqe},       {"max_mr", a.max_mr},
          {"max_pd", a.max_pd},         {"max_qp_rd_atom", a.max_qp_rd_atom},
          {"max_srq", a.max_srq},       {"max_qp_init_rd_atom", a.max_qp_init_rd_atom},
          {"max_srq_wr", a.max_srq_wr}, {"max_srq_sge", a.max_srq_sge}};
}

json resolve(session& s, fields& f) {
  const gid_bytes gid = gid_of(f, "gid");
  const auto row = f.number("gid_index", 0, 127, static_cast<std::uint64_t>(s.gid_index));
  f.end();
  if (!s.device.port(1).gids[row].valid) throw command_error("gid_index: there is no such GID");
  const auto mac = s.host.resolve(gid, static_cast<int>(row));
  if (!mac) throw command_error("gid: no neighbour has the address " + wire::to_string(gid));
  return {{"mac", wire::to_string(*mac)}};
}

json wait(session& s, fields& f) {
  const std::uint64_t patience = timeout_ps(f);
  f.end();
  look_for(s, patience, [&](std::uint64_t piece_ps) {
    if (piece_ps != 0) sc_core::wait(sc_core::sc_time::from_value(piece_ps));
    return false;
  });
  return json::object();
}

json time(session& s, fields& f) {
  f.end();
  return {{"now_us", s.service.now_ps() / sim::ps_per_us}};
}

json destroy_all(session& s, fields& f) {
  f.end();
  return {{"left", s.clear()}};
}

}  // namespace

std::uint64_t timeout_ps(fields& f) { return f.number("timeout_ms", 0, longest_wait_ms, 0) * (sim::ps_per_us * 1000); }

void add_host_commands(command_table& table) {
  table.insert({{"address", address},
                {"query_device", query_device},
                {"resolve", resolve},
                {"wait", wait},
                {"time", time},
                {"destroy_all", destroy_all}});
}

}  // namespace rnic::serve::script
