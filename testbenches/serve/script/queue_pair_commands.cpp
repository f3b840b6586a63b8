// SPDX-License-Identifier: Apache-2.0
// Queue pairs and address handles.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"
#include "testbenches/serve/script/commands.h"

namespace rnic::serve::script {

using namespace host_driver;
using nlohmann::json;

namespace {

constexpr std::uint64_t any8 = 0xff, any24 = 0xffffff;

ibv_qp_cap read_cap(session& s, fields& f) {
  ibv_device_attr has{};
  require_verb(s.device.query_device(&has), "query_device");
  const auto most_wr = static_cast<std::uint64_t>(has.max_qp_wr), most_sge = static_cast<std::uint64_t>(has.max_sge);
  ibv_qp_cap cap{};
  cap.max_send_wr = static_cast<std::uint32_t>(f.number("max_send_wr", 0, most_wr, 16));
  cap.max_recv_wr = static_cast<std::uint32_t>(f.number("max_recv_wr", 0, most_wr, 16));
  cap.max_send_sge = static_cast<std::uint32_t>(f.number("max_send_sge", 0, most_sge, 1));
  cap.max_recv_sge = static_cast<std::uint32_t>(f.number("max_recv_sge", 0, most_sge, 1));
  cap.max_inline_data = static_cast<std::uint32_t>(f.number("max_inline_data", 0, 4096, 0));
  return cap;
}

json create_qp(session& s, fields& f) {
  const std::string name = s.qps.new_name(f);
  ibv_qp_init_attr_ex init{};
  init.qp_type = static_cast<ibv_qp_type>(f.word("type", qp_types));
  const bool receives_xrc = init.qp_type == IBV_QPT_XRC_RECV;
  if (receives_xrc) {
    init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    init.xrcd = s.xrcds.at(f);
  } else {
    init.comp_mask = IBV_QP_INIT_ATTR_PD;
    init.pd = s.pds.at(f);
    init.send_cq = s.cqs.at(f, "send_cq");
    init.cap = read_cap(s, f);
    init.sq_sig_all = f.flag("sq_sig_all", false) ? 1 : 0;
  }
  if (!is_xrc(init.qp_type)) {
    init.recv_cq = s.cqs.at(f, f.has("recv_cq") ? "recv_cq" : "send_cq");
    if (f.has("srq")) {
      const auto srq = s.srqs.at(f);
      if (srq->domain != nullptr) f.wrong("srq", "is one of an XRC domain, which queue pairs do not name");
      init.srq = srq;
      init.cap.max_recv_wr = 0;
    }
  }
  f.end();
  const auto qp = made_by(s.device.create_qp_ex(&init), "create_qp");
  s.qps.put(name, qp);
  return {{"qp", name},
          {"qpn", qp->qp_num},
          {"max_send_wr", init.cap.max_send_wr},
          {"max_recv_wr", init.cap.max_recv_wr},
          {"max_send_sge", init.cap.max_send_sge},
          {"max_recv_sge", init.cap.max_recv_sge},
          {"max_inline_data", qp->max_inline}};
}

json destroy_qp(session& s, fields& f) {
  const auto qp = s.qps.at(f);
  f.end();
  require_verb(s.device.destroy_qp(qp), "destroy_qp");
  s.qps.remove(s.qps.name_of([&](const auto& o) { return o == qp; }));
  return json::object();
}

ibv_mtu read_mtu(fields& f) {
  const auto bytes = f.number("path_mtu", 256, 4096);
  if ((bytes & (bytes - 1)) != 0) f.wrong("path_mtu", "expected 256, 512, 1024, 2048 or 4096");
  return hosts::to_ibv_mtu(static_cast<unsigned>(bytes));
}

/// The attributes that a command has, one after the other, and the mask that goes with them.
class attribute_reader {
 public:
  explicit attribute_reader(fields& f) : f_(f) {}
  template <class T>
  void number(const char* name, int bit, T& to, std::uint64_t most) {
    if (!f_.has(name)) return;
    to = static_cast<T>(f_.number(name, 0, most));
    mask |= bit;
  }
  template <class T, std::size_t N>
  void word(const char* name, int bit, T& to, const vocabulary<N>& table) {
    if (!f_.has(name)) return;
    to = static_cast<T>(f_.word(name, table));
    mask |= bit;
  }
  int mask = 0;

 private:
  fields& f_;
};

void read_plain_attributes(attribute_reader& r, fields& f, ibv_qp_attr& a) {
  r.word("qp_state", IBV_QP_STATE, a.qp_state, qp_states);
  r.word("cur_qp_state", IBV_QP_CUR_STATE, a.cur_qp_state, qp_states);
  r.word("path_mig_state", IBV_QP_PATH_MIG_STATE, a.path_mig_state, migration_states);
  r.number("qkey", IBV_QP_QKEY, a.qkey, fields::any32);
  r.number("rq_psn", IBV_QP_RQ_PSN, a.rq_psn, any24);
  r.number("sq_psn", IBV_QP_SQ_PSN, a.sq_psn, any24);
  r.number("dest_qp_num", IBV_QP_DEST_QPN, a.dest_qp_num, any24);
  r.number("pkey_index", IBV_QP_PKEY_INDEX, a.pkey_index, 0xffff);
  r.number("max_rd_atomic", IBV_QP_MAX_QP_RD_ATOMIC, a.max_rd_atomic, any8);
  r.number("max_dest_rd_atomic", IBV_QP_MAX_DEST_RD_ATOMIC, a.max_dest_rd_atomic, any8);
  r.number("min_rnr_timer", IBV_QP_MIN_RNR_TIMER, a.min_rnr_timer, 31);
  r.number("port_num", IBV_QP_PORT, a.port_num, any8);
  r.number("timeout", IBV_QP_TIMEOUT, a.timeout, 31);
  r.number("retry_cnt", IBV_QP_RETRY_CNT, a.retry_cnt, 7);
  r.number("rnr_retry", IBV_QP_RNR_RETRY, a.rnr_retry, 7);
  r.number("rate_limit", IBV_QP_RATE_LIMIT, a.rate_limit, fields::any32);
  if (f.has("qp_access_flags")) {
    a.qp_access_flags = static_cast<unsigned>(f.words("qp_access_flags", access_rights));
    r.mask |= IBV_QP_ACCESS_FLAGS;
  }
  if (f.has("en_sqd_async_notify")) {
    a.en_sqd_async_notify = f.flag("en_sqd_async_notify", false) ? 1 : 0;
    r.mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
  }
  if (f.has("path_mtu")) {
    a.path_mtu = read_mtu(f);
    r.mask |= IBV_QP_PATH_MTU;
  }
}

json modify_qp(session& s, fields& f) {
  const auto qp = s.qps.at(f);
  ibv_qp_attr a{};
  attribute_reader r(f);
  read_plain_attributes(r, f, a);
  std::optional<neighbour_path> path;
  if (f.has("ah_attr")) {
    path = read_path(s, f.object("ah_attr"));
    r.mask |= IBV_QP_AV;
  }
  if (f.has("alt_ah_attr")) {
    a.alt_ah_attr = read_path(s, f.object("alt_ah_attr")).attr;
    a.alt_port_num = static_cast<std::uint8_t>(f.number("alt_port_num", 0, any8, 1));
    a.alt_pkey_index = static_cast<std::uint16_t>(f.number("alt_pkey_index", 0, 0xffff, 0));
    a.alt_timeout = static_cast<std::uint8_t>(f.number("alt_timeout", 0, 31, 0));
    r.mask |= IBV_QP_ALT_PATH;
  }
  f.end();
  if (path) {
    find_neighbour(s, *path);
    a.ah_attr = path->attr;
  }
  const ibv_qp_state before = qp->state;
  const int error = s.device.modify_qp(qp, &a, r.mask, path ? &path->mac : nullptr);
  if (error != 0) {
    const std::string from = said(qp_states, before),
                      to = (r.mask & IBV_QP_STATE) != 0 ? said(qp_states, a.qp_state) : from;
    failed(fmt::format("modify_qp of {} in {} to {}", said(qp_types, qp->qp_type), from, to).c_str(), -error);
  }
  return {{"qp_state", said(qp_states, qp->state)}};
}

json query_qp(session& s, fields& f) {
  const auto qp = s.qps.at(f);
  f.end();
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  require_verb(s.device.query_qp(qp, &a, 0, &init), "query_qp");
  json rights = json::array();
  for (const word_value& w : access_rights)
    if ((a.qp_access_flags & static_cast<unsigned>(w.value)) != 0) rights.push_back(w.text);
  json j = {{"qpn", qp->qp_num},
            {"type", said(qp_types, qp->qp_type)},
            {"qp_state", said(qp_states, a.qp_state)},
            {"sq_draining", a.sq_draining != 0},
            {"qp_access_flags", rights},
            {"qkey", a.qkey},
            {"rq_psn", a.rq_psn},
            {"sq_psn", a.sq_psn},
            {"dest_qp_num", a.dest_qp_num},
            {"pkey_index", a.pkey_index},
            {"port_num", a.port_num},
            {"max_rd_atomic", a.max_rd_atomic},
            {"max_dest_rd_atomic", a.max_dest_rd_atomic},
            {"min_rnr_timer", a.min_rnr_timer},
            {"timeout", a.timeout},
            {"retry_cnt", a.retry_cnt},
            {"rnr_retry", a.rnr_retry}};
  if (a.path_mtu != 0) j["path_mtu"] = 128u << static_cast<unsigned>(a.path_mtu);
  return j;
}

json create_ah(session& s, fields& f) {
  const std::string name = s.ahs.new_name(f);
  const auto pd = s.pds.at(f);
  neighbour_path path = read_path(s, f.object("ah_attr"));
  f.end();
  find_neighbour(s, path);
  s.ahs.put(name, made_by(s.device.create_ah(pd, &path.attr, &path.mac), "create_ah"));
  return {{"ah", name}};
}

json destroy_ah(session& s, fields& f) {
  const auto ah = s.ahs.at(f);
  f.end();
  require_verb(s.device.destroy_ah(ah), "destroy_ah");
  s.ahs.remove(s.ahs.name_of([&](const auto& o) { return o == ah; }));
  return json::object();
}

json group(session& s, fields& f, bool attach) {
  const auto qp = s.qps.at(f);
  const gid_bytes bytes = gid_of(f, "gid");
  f.end();
  ibv_gid gid{};
  std::copy(bytes.begin(), bytes.end(), gid.raw);
  if (attach)
    require_verb(s.device.attach_mcast(qp, &gid), "attach_mcast");
  else
    require_verb(s.device.detach_mcast(qp, &gid), "detach_mcast");
  return json::object();
}

json attach_mcast(session& s, fields& f) { return group(s, f, true); }
json detach_mcast(session& s, fields& f) { return group(s, f, false); }

}  // namespace

void add_queue_pair_commands(command_table& table) {
  table.insert({{"create_qp", create_qp},
                {"modify_qp", modify_qp},
                {"query_qp", query_qp},
                {"destroy_qp", destroy_qp},
                {"create_ah", create_ah},
                {"destroy_ah", destroy_ah},
                {"attach_mcast", attach_mcast},
                {"detach_mcast", detach_mcast}});
}

neighbour_path read_path(session& s, fields f) {
  neighbour_path p;
  const gid_bytes to = gid_of(f, "dgid");
  p.attr.is_global = 1;
  std::copy(to.begin(), to.end(), p.attr.grh.dgid.raw);
  p.attr.grh.sgid_index =
      static_cast<std::uint8_t>(f.number("sgid_index", 0, 127, static_cast<std::uint64_t>(s.gid_index)));
  p.attr.grh.hop_limit = static_cast<std::uint8_t>(f.number("hop_limit", 0, any8, 64));
  p.attr.grh.traffic_class = static_cast<std::uint8_t>(f.number("traffic_class", 0, any8, 0));
  p.attr.grh.flow_label = static_cast<std::uint32_t>(f.number("flow_label", 0, 0xfffff, 0));
  p.attr.sl = static_cast<std::uint8_t>(f.number("sl", 0, 15, 0));
  p.attr.static_rate = static_cast<std::uint8_t>(f.number("static_rate", 0, any8, 0));
  p.attr.port_num = static_cast<std::uint8_t>(f.number("port_num", 0, any8, 1));
  if (f.has("dmac")) {
    const auto mac = wire::parse_mac(f.text("dmac", 17));
    if (!mac) f.wrong("dmac", "expected a MAC address");
    p.mac = *mac;
  }
  f.end();
  return p;
}

void find_neighbour(session& s, neighbour_path& path) {
  if (path.mac != mac_address{}) return;
  const gid_bytes to = to_bytes(path.attr.grh.dgid);
  if (is_multicast(to)) {
    require_verb(s.device.resolve(to, &path.mac), "resolve");
    return;
  }
  if (!s.device.port(1).gids[path.attr.grh.sgid_index].valid)
    throw command_error("ah_attr.sgid_index: there is no such GID to ask from");
  const auto mac = s.host.resolve(to, path.attr.grh.sgid_index);
  if (!mac) throw command_error("ah_attr.dgid: no neighbour has the address " + wire::to_string(to));
  path.mac = *mac;
}

gid_bytes gid_of(fields& f, const char* name) {
  const auto gid = wire::parse_gid(f.text(name, 45));
  if (!gid) f.wrong(name, "expected an IPv4 or IPv6 address");
  return *gid;
}

}  // namespace rnic::serve::script
