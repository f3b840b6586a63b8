// SPDX-License-Identifier: Apache-2.0
// Messages of the connection manager. Queue pairs are the client's: it takes them through their states itself.
#include <algorithm>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"
#include "testbenches/serve/script/commands.h"

namespace rnic::serve::script {

using namespace host_driver;
using nlohmann::json;

namespace {

constexpr std::uint8_t hop_limit = 64, rate_10_gbps = 3;
constexpr std::uint16_t client_port = 0xc0de;

std::uint64_t service_of(fields& f) {
  return cm::service_id(cm::port_space::tcp, static_cast<std::uint16_t>(f.number("port", 1, 65535)));
}

json cm_listen(session& s, fields& f) {
  const std::uint64_t service = service_of(f);
  f.end();
  if (!s.service.manager().listen(service)) throw command_error("port: somebody listens there");
  s.listening.insert(service);
  return json::object();
}

json cm_stop_listening(session& s, fields& f) {
  const std::uint64_t service = service_of(f);
  f.end();
  if (s.listening.erase(service) == 0) throw command_error("port: this client does not listen there");
  s.service.manager().stop_listening(service);
  return json::object();
}

/// Private data from `offset` on, behind the addresses where a message has them.
void read_private(fields& f, cm::message kind, std::size_t offset, cm::private_area& area) {
  const std::size_t room = cm::private_bytes(kind) - offset;
  const auto bytes = f.bytes("private_data", room);
  std::copy(bytes.begin(), bytes.end(), area.begin() + static_cast<std::ptrdiff_t>(offset));
}

/// What REQ and REP have in common.
void read_connection(session& s, fields& f, cm::connection_data& data) {
  data.qpn = s.qps.at(f)->qp_num;
  data.psn = static_cast<std::uint32_t>(f.number("psn", 0, 0xffffff));
  data.responder_resources = static_cast<std::uint8_t>(f.number("responder_resources", 0, 255, 1));
  data.initiator_depth = static_cast<std::uint8_t>(f.number("initiator_depth", 0, 255, 1));
  data.rnr_retry_count = static_cast<std::uint8_t>(f.number("rnr_retry_count", 0, 7, 7));
  data.shared_receive_queue = f.flag("srq", false);
}

json cm_connect(session& s, fields& f) {
  cm::connection_data data;
  data.service_id = service_of(f);
  read_connection(s, f, data);
  neighbour_path path = read_path(s, f.object("ah_attr"));
  const auto mtu = f.number("path_mtu", 256, 4096, 1024);
  if ((mtu & (mtu - 1)) != 0) f.wrong("path_mtu", "expected 256, 512, 1024, 2048 or 4096");
  data.mtu_code = static_cast<std::uint8_t>(hosts::to_ibv_mtu(static_cast<unsigned>(mtu)));
  data.retry_count = static_cast<std::uint8_t>(f.number("retry_count", 0, 7, 7));
  data.path.ack_timeout = static_cast<std::uint8_t>(f.number("ack_timeout", 0, 31, 16));
  const gid_row& row = s.device.port(1).gids[path.attr.grh.sgid_index];
  const gid_bytes to = to_bytes(path.attr.grh.dgid);
  cm::private_area area{};
  cm::put_ip_header({client_port, row.id, to}, area.data());
  read_private(f, cm::message::req, cm::ip_header::bytes, area);
  f.end();
  if (!row.valid) throw command_error("ah_attr.sgid_index: there is no such GID");
  find_neighbour(s, path);
  data.path.local = row.id;
  data.path.remote = to;
  data.path.hop_limit = hop_limit;
  data.path.rate = rate_10_gbps;
  data.path.service_level = path.attr.sl;
  data.path.traffic_class = path.attr.grh.traffic_class;
  const cm::address peer{to, path.mac, path.attr.grh.sgid_index, path.attr.sl, path.attr.grh.traffic_class};
  const auto id = s.service.manager().connect(peer, data, area, s.service.now_ps());
  if (id == 0) throw command_error("cm_connect: no room for a connection");
  s.connections.insert(id);
  return {{"connection", id}};
}

cm_service::connection_id connection_of(session& s, fields& f) {
  const auto id = static_cast<cm_service::connection_id>(f.number("connection", 0, fields::any32));
  if (s.connections.count(id) == 0) f.wrong("connection", "there is none of this number");
  return id;
}

void require_state(session& s, cm_service::connection_id id, bool done, const char* what) {
  if (!done)
    throw command_error(std::string(what) + ": not in state " + cm::to_string(s.service.manager().state_of(id)));
}

json cm_accept(session& s, fields& f) {
  const auto id = connection_of(s, f);
  cm::connection_data data;
  read_connection(s, f, data);
  cm::private_area area{};
  read_private(f, cm::message::rep, 0, area);
  f.end();
  require_state(s, id, s.service.manager().accept(id, data, area, s.service.now_ps()), "cm_accept");
  return json::object();
}

json cm_confirm(session& s, fields& f) {
  const auto id = connection_of(s, f);
  cm::private_area area{};
  read_private(f, cm::message::rtu, 0, area);
  f.end();
  require_state(s, id, s.service.manager().confirm(id, area), "cm_confirm");
  return json::object();
}

json cm_reject(session& s, fields& f) {
  const auto id = connection_of(s, f);
  const auto why =
      static_cast<cm::reason>(f.number("reason", 0, 0xffff, static_cast<std::uint16_t>(cm::reason::consumer)));
  cm::private_area area{};
  read_private(f, cm::message::rej, 0, area);
  f.end();
  require_state(s, id, s.service.manager().reject(id, why, area, s.service.now_ps()), "cm_reject");
  return json::object();
}

json cm_disconnect(session& s, fields& f) {
  const auto id = connection_of(s, f);
  f.end();
  require_state(s, id, s.service.manager().disconnect(id, {}, s.service.now_ps()), "cm_disconnect");
  return json::object();
}

json to_json(session& s, const cm_service::event& e) {
  using kind = cm::event::kind;
  json j = {{"event", said(cm_events, static_cast<int>(e.what))},
            {"connection", e.id},
            {"from", wire::to_string(e.from.gid)},
            {"from_mac", wire::to_string(e.from.mac)},
            {"gid_index", e.from.gid_index}};
  if (e.what == kind::rejected) j["reason"] = static_cast<unsigned>(e.message.why);
  if (e.what == kind::request || e.what == kind::reply) {
    const cm::connection_data& d = e.message.connection;
    j["qpn"] = d.qpn;
    j["psn"] = d.psn;
    j["responder_resources"] = d.responder_resources;
    j["initiator_depth"] = d.initiator_depth;
    j["retry_count"] = d.retry_count;
    j["rnr_retry_count"] = d.rnr_retry_count;
    if (e.what == kind::request) j["port"] = d.service_id & 0xffff;
    if (e.what == kind::request && d.mtu_code >= 1 && d.mtu_code <= 5) j["path_mtu"] = 128u << d.mtu_code;
  }
  if (e.what != kind::unreachable) {
    const std::size_t from = e.what == kind::request ? cm::ip_header::bytes : 0;
    const std::size_t to = cm::private_bytes(e.message.kind);
    if (to > from) j["private_data"] = to_hex(e.message.private_data.data() + from, to - from);
  }
  s.connections.insert(e.id);
  return j;
}

json cm_event(session& s, fields& f) {
  const bool of_one = f.has("connection");
  const cm_service::connection_id id = of_one ? connection_of(s, f) : 0;
  const std::uint64_t patience = timeout_ps(f);
  f.end();
  std::optional<cm_service::event> e;
  look_for(s, patience, [&](std::uint64_t piece_ps) {
    e = of_one ? s.service.wait_of(id, piece_ps) : s.service.wait_any(piece_ps);
    return e.has_value();
  });
  return e ? to_json(s, *e) : json{{"event", nullptr}};
}

}  // namespace

void add_manager_commands(command_table& table) {
  table.insert({{"cm_listen", cm_listen},
                {"cm_stop_listening", cm_stop_listening},
                {"cm_connect", cm_connect},
                {"cm_accept", cm_accept},
                {"cm_confirm", cm_confirm},
                {"cm_reject", cm_reject},
                {"cm_disconnect", cm_disconnect},
                {"cm_event", cm_event}});
}

}  // namespace rnic::serve::script
