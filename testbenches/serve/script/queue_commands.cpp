// SPDX-License-Identifier: Apache-2.0
// Completion queues, shared receive queues, XRC domains; completions and events.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/wire/ethernet.h"
#include "testbenches/serve/script/commands.h"

namespace rnic::serve::script {

using namespace host_driver;
using nlohmann::json;

namespace {

ibv_device_attr limits(session& s) {
  ibv_device_attr attr{};
  require_verb(s.device.query_device(&attr), "query_device");
  return attr;
}

json create_cq(session& s, fields& f) {
  const std::string name = s.cqs.new_name(f);
  const auto entries = f.number("entries", 1, static_cast<std::uint64_t>(limits(s).max_cqe));
  f.end();
  const auto cq = made_by(s.device.create_cq(static_cast<int>(entries)), "create_cq");
  s.cqs.put(name, cq);
  return {{"cq", name}, {"entries", cq->entries - 1}};
}

json destroy_cq(session& s, fields& f) {
  const auto cq = s.cqs.at(f);
  f.end();
  require_verb(s.device.destroy_cq(cq), "destroy_cq");
  s.cqs.remove(s.cqs.name_of([&](const auto& o) { return o == cq; }));
  return json::object();
}

json to_json(session& s, const ibv_wc& wc, const completion_queue& cq) {
  json j = {{"wr_id", wc.wr_id},
            {"status", said(statuses, wc.status)},
            {"qpn", wc.qp_num},
            {"qp", s.qps.name_of([&](const auto& q) { return q->qp_num == wc.qp_num; })}};
  if (wc.status != IBV_WC_SUCCESS) {  // the rest says nothing (IBA volume 1, 11.4.2.1)
    j["vendor_err"] = wc.vendor_err;
    return j;
  }
  const bool receive = (wc.opcode & IBV_WC_RECV) != 0;
  ++(receive ? s.received : s.sent);
  j["opcode"] = said(completion_opcodes, wc.opcode);
  if (receive || wc.opcode == IBV_WC_RDMA_READ) j["byte_len"] = wc.byte_len;
  if (!receive) return j;
  j["src_qp"] = wc.src_qp;
  if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) j["imm"] = __builtin_bswap32(wc.imm_data);
  if ((wc.wc_flags & IBV_WC_WITH_INV) != 0) j["invalidated_rkey"] = wc.invalidated_rkey;
  if ((wc.wc_flags & IBV_WC_GRH) != 0) j["grh"] = true;
  const std::string qp = j["qp"];
  if (!qp.empty() && s.qps.all().at(qp)->qp_type == IBV_QPT_UD) j["smac"] = wire::to_string(s.device.last_source(cq));
  return j;
}

/// One completion at a time: the sender's address is known of the last one only.
json poll(session& s, fields& f) {
  const auto cq = s.cqs.at(f);
  const auto most = f.number("count", 1, 1024, 16);
  const auto least = f.number("at_least", 0, most, std::min<std::uint64_t>(most, f.has("timeout_ms") ? 1 : 0));
  const std::uint64_t patience = timeout_ps(f);
  f.end();
  json all = json::array();
  look_for(s, patience, [&](std::uint64_t piece_ps) {
    while (all.size() < most) {
      ibv_wc wc{};
      const bool wait = piece_ps != 0 && all.size() < least;
      const int n = wait ? s.device.wait_cq(cq, 1, &wc, piece_ps) : s.device.poll_cq(cq, 1, &wc);
      require_verb(n, "poll_cq");
      if (n == 0) break;
      all.push_back(to_json(s, wc, *cq));
    }
    return all.size() >= least;
  });
  return {{"completions", all}};
}

json create_srq(session& s, fields& f) {
  const std::string name = s.srqs.new_name(f);
  const auto pd = s.pds.at(f);
  const ibv_device_attr has = limits(s);
  ibv_srq_init_attr_ex init{};
  init.attr.max_wr = static_cast<std::uint32_t>(f.number("max_wr", 1, static_cast<std::uint64_t>(has.max_srq_wr)));
  init.attr.max_sge =
      static_cast<std::uint32_t>(f.number("max_sge", 1, static_cast<std::uint64_t>(has.max_srq_sge), 1));
  init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  init.srq_type = IBV_SRQT_BASIC;
  init.pd = pd;
  if (f.has("xrcd")) {
    init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    init.srq_type = IBV_SRQT_XRC;
    init.xrcd = s.xrcds.at(f);
    init.cq = s.cqs.at(f);
  }
  f.end();
  const auto srq = made_by(s.device.create_srq_ex(&init), "create_srq");
  s.srqs.put(name, srq);
  return {{"srq", name}, {"srqn", srq->srqn}, {"max_wr", init.attr.max_wr}, {"max_sge", init.attr.max_sge}};
}

json modify_srq(session& s, fields& f) {
  const auto srq = s.srqs.at(f);
  ibv_srq_attr attr{};
  attr.srq_limit = static_cast<std::uint32_t>(f.number("srq_limit", 0, srq->count - 1));
  f.end();
  require_verb(s.device.modify_srq(srq, &attr, IBV_SRQ_LIMIT), "modify_srq");
  return json::object();
}

json query_srq(session& s, fields& f) {
  const auto srq = s.srqs.at(f);
  f.end();
  ibv_srq_attr attr{};
  require_verb(s.device.query_srq(srq, &attr), "query_srq");
  return {{"max_wr", attr.max_wr}, {"max_sge", attr.max_sge}, {"srq_limit", attr.srq_limit}, {"srqn", srq->srqn}};
}

json destroy_srq(session& s, fields& f) {
  const auto srq = s.srqs.at(f);
  f.end();
  require_verb(s.device.destroy_srq(srq), "destroy_srq");
  s.srqs.remove(s.srqs.name_of([&](const auto& o) { return o == srq; }));
  return json::object();
}

json open_xrcd(session& s, fields& f) {
  const std::string name = s.xrcds.new_name(f);
  f.end();
  s.xrcds.put(name, made_by(s.device.open_xrcd(), "open_xrcd"));
  return {{"xrcd", name}};
}

json close_xrcd(session& s, fields& f) {
  const auto xrcd = s.xrcds.at(f);
  f.end();
  require_verb(s.device.close_xrcd(xrcd), "close_xrcd");
  s.xrcds.remove(s.xrcds.name_of([&](const auto& o) { return o == xrcd; }));
  return json::object();
}

/// Events name objects that are there; of others only the kind is told.
json async_event(session& s, fields& f) {
  const std::uint64_t patience = timeout_ps(f);
  f.end();
  ibv_async_event e{};
  bool found = false;
  look_for(s, patience, [&](std::uint64_t piece_ps) {
    found = s.device.get_async_event(&e, std::max<std::uint64_t>(piece_ps, 1));
    return found;
  });
  if (!found) return {{"event", nullptr}};
  json j = {{"event", said(event_types, e.event_type)}};
  const auto name = [](const auto& shelf, const void* object) {
    return shelf.name_of([&](const auto& o) { return static_cast<const void*>(o) == object; });
  };
  if (e.event_type == IBV_EVENT_CQ_ERR)
    j["cq"] = name(s.cqs, e.element.cq);
  else if (e.event_type == IBV_EVENT_SRQ_ERR || e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
    j["srq"] = name(s.srqs, e.element.srq);
  else if (e.event_type == IBV_EVENT_PORT_ACTIVE || e.event_type == IBV_EVENT_PORT_ERR)
    j["port_num"] = e.element.port_num;
  else
    j["qp"] = name(s.qps, e.element.qp);
  return j;
}

}  // namespace

void add_queue_commands(command_table& table) {
  table.insert({{"create_cq", create_cq},
                {"destroy_cq", destroy_cq},
                {"poll", poll},
                {"create_srq", create_srq},
                {"modify_srq", modify_srq},
                {"query_srq", query_srq},
                {"destroy_srq", destroy_srq},
                {"open_xrcd", open_xrcd},
                {"close_xrcd", close_xrcd},
                {"async_event", async_event}});
}

}  // namespace rnic::serve::script
