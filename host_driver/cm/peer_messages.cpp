// SPDX-License-Identifier: Apache-2.0
// The connection manager: what messages of the peer do in each state (IBA volume 1, 12.9).
#include <algorithm>

#include "host_driver/cm/connection_manager.h"

namespace rnic::host_driver::cm {

namespace {
constexpr std::uint8_t sidr_unsupported = 1, sidr_reject = 2;  // IBA volume 1, table 120
}  // namespace

void connection_manager::receive(const address& from, const std::uint8_t* datagram, std::size_t length,
                                 std::uint64_t now_ps) {
  ++count_.received;
  const auto m = decode(datagram, length);
  if (!m) {
    ++count_.malformed;
    return;
  }
  dispatch(from, *m, now_ps);
}

void connection_manager::refuse_version(const address& from, const std::uint8_t* datagram, std::size_t length,
                                        std::uint64_t now_ps) {
  ++count_.received;
  const auto m = decode(datagram, length);
  if (!m) {
    ++count_.malformed;
    return;
  }
  ++count_.other_version;
  if (m->kind == message::req) refuse(from, *m, reason::invalid_gid);
  if (m->kind == message::sidr_req) refuse_service(from, *m, sidr_unsupported);
  if (m->kind != message::rej && m->kind != message::sidr_rep) return;
  connection* c = m->kind == message::rej ? named(from, *m) : nullptr;
  if (c != nullptr && c->at == state::req_sent) take_rej(*c, *m, now_ps);
  if (m->kind == message::sidr_rep && m->service.status != 0) take_service_reply(from, *m);
}

bool connection_manager::refuse_request(const address& from, const std::uint8_t* datagram, std::size_t length) {
  const auto m = decode(datagram, length);
  if (!m || (m->kind != message::req && m->kind != message::sidr_req)) return false;
  ++count_.received;
  ++count_.not_admitted;
  if (m->kind == message::req)
    refuse(from, *m, reason::consumer);
  else
    refuse_service(from, *m, sidr_reject);
  return true;
}

void connection_manager::dispatch(const address& from, const contents& m, std::uint64_t now_ps) {
  switch (m.kind) {
    case message::req:
      return take_req(from, m, now_ps);
    case message::dreq:
      return take_dreq(from, m, now_ps);
    case message::lap:
      return take_lap(from, m);
    case message::sidr_req:
      return take_service_request(from, m);
    case message::sidr_rep:
      return take_service_reply(from, m);
    default:
      break;
  }
  connection* c = named(from, m);
  if (c == nullptr) {
    ++count_.unknown_id;
    return;
  }
  switch (m.kind) {
    case message::mra:
      return take_mra(*c, m, now_ps);
    case message::rej:
      return take_rej(*c, m, now_ps);
    case message::rep:
      return take_rep(*c, m, now_ps);
    case message::rtu:
      return take_rtu(*c, m);
    case message::drep:
      return take_drep(*c, m, now_ps);
    default:  // APR: we never ask for a path
      ++count_.wrong_state;
  }
}

/// A REJ without a connection of ours.
void connection_manager::refuse(const address& to, const contents& req, reason why) {
  contents m;
  m.kind = message::rej;
  m.transaction = req.transaction;
  m.remote_id = req.local_id;
  m.subject = about::req;
  m.why = why;
  out_.send_mad(to, encode(m));
  ++count_.sent;
}

/// The peer has not seen our answer to this REQ yet.
bool connection_manager::repeats(const address& from, const contents& m, std::uint64_t now_ps) {
  for (auto& [id, c] : connections_) {
    if (!c.passive || c.remote_id != m.local_id || c.peer.gid != from.gid || c.remote_guid != m.connection.ca_guid ||
        c.remote_qpn != m.connection.qpn || c.at == state::timewait)
      continue;
    ++count_.duplicates;
    if (c.at == state::mra_req_sent || c.at == state::rep_sent) send_again(c);
    if (c.at == state::mra_req_sent) await_owner(c, now_ps);
    return true;
  }
  return false;
}

/// The connection that the peer's queue pair is in, and that the peer has forgotten: its host or its process began anew
/// (IBA volume 1, 12.9.8.3.1). One whose end it has only not confirmed is over, and stands in nobody's way.
connection_manager::connection* connection_manager::stale(const address& from, const contents& m) {
  const auto at = std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
    const connection& c = entry.second;
    return c.at != state::timewait && c.at != state::dreq_sent && c.at != state::req_sent &&
           c.at != state::sidr_req_received && c.at != state::sidr_req_sent && c.peer.gid == from.gid &&
           c.remote_qpn == m.connection.qpn && c.remote_guid == m.connection.ca_guid;
  });
  return at == connections_.end() ? nullptr : &at->second;
}

/// False: it was a request that nobody has taken yet, and is forgotten. Else the new request is refused; the peer may
/// ask again when the connection has ended, which begins here, as on a Linux host (core/cm.c:cm_match_req).
bool connection_manager::end_stale(connection& c, std::uint64_t now_ps) {
  ++count_.stale;
  if ((c.at == state::req_received || c.at == state::mra_req_sent) && forget_request(c.id)) {
    connections_.erase(c.id);
    return false;
  }
  if (c.at == state::established) {
    disconnect(c.id, {}, now_ps);
  } else if (c.passive && (c.at == state::rep_sent || c.at == state::mra_rep_received)) {
    tell(c, event::kind::unreachable, {});
    end(c, now_ps);
  }
  return true;
}

bool connection_manager::serves(std::uint64_t service_id, bool datagrams) const {
  const auto at = services_.find(service_id);
  return at != services_.end() && (at->second == service_kind::datagrams) == datagrams;
}

/// As many requests as may wait are in this state, or in the one behind it.
bool connection_manager::backlog_is_full(state waiting) {
  const auto waits = std::count_if(connections_.begin(), connections_.end(), [waiting](const auto& entry) {
    const state at = entry.second.at;
    return at == waiting || (waiting == state::req_received && at == state::mra_req_sent);
  });
  if (static_cast<std::size_t>(waits) < config_.backlog) return false;
  ++count_.backlog_full;
  return true;
}

void connection_manager::take_req(const address& from, const contents& m, std::uint64_t now_ps) {
  if (repeats(from, m, now_ps)) return;
  if (!serves(m.connection.service_id, false)) {
    ++count_.no_service;
    return refuse(from, m, reason::invalid_service);
  }
  const bool xrc = services_.at(m.connection.service_id) == service_kind::xrc_connections;
  if (xrc ? !m.connection.is_xrc() : m.connection.transport != 0) return refuse(from, m, reason::invalid_transport);
  connection* const forgotten = stale(from, m);
  if (forgotten != nullptr && end_stale(*forgotten, now_ps)) return refuse(from, m, reason::stale);
  connection* c = backlog_is_full(state::req_received) ? nullptr : open(from, state::req_received);
  if (c == nullptr) return refuse(from, m, reason::no_resources);
  c->passive = true;
  c->deadline = now_ps + config_.mra_after_ps;
  c->remote_id = m.local_id;
  c->transaction = m.transaction;
  c->remote_qpn = m.connection.qpn;
  c->remote_guid = m.connection.ca_guid;
  c->service_id = m.connection.service_id;
  c->xrc = xrc;
  c->peer.service_level = m.connection.path.service_level & 7u;  // as the path that the REQ has (core/cm.c)
  c->peer.traffic_class = m.connection.path.traffic_class;
  c->alternate_asked = m.connection.alternate.exists();
  tell(*c, event::kind::request, m);
}

void connection_manager::take_mra(connection& c, const contents& m, std::uint64_t now_ps) {
  const std::uint64_t until = now_ps + timeout_ps(config_.response_timeout) + timeout_ps(m.service_timeout);
  if (m.subject == about::req && c.at == state::req_sent) {
    c.at = state::mra_req_received;
    c.remote_id = m.local_id;
    c.deadline = until;
  } else if (m.subject == about::rep && c.at == state::rep_sent) {
    c.at = state::mra_rep_received;
    c.deadline = until;
  } else {
    ++count_.wrong_state;
  }
}

void connection_manager::take_rej(connection& c, const contents& m, std::uint64_t now_ps) {
  switch (c.at) {
    case state::req_sent:
    case state::mra_req_received:
    case state::rep_sent:
    case state::mra_rep_received:
    case state::req_received:
    case state::mra_req_sent:
    case state::rep_received:
      if (!forget_request(c.id)) tell(c, event::kind::rejected, m);
      end(c, now_ps);
      return;
    case state::dreq_sent:
      tell(c, event::kind::disconnected, m);
      end(c, now_ps);
      return;
    default:
      ++count_.wrong_state;
  }
}

void connection_manager::take_rep(connection& c, const contents& m, std::uint64_t now_ps) {
  static_cast<void>(now_ps);
  if (c.at == state::established && !c.passive) {  // our RTU was lost
    ++count_.duplicates;
    return send_again(c);
  }
  if (c.at == state::rep_received) {
    ++count_.duplicates;
    return;
  }
  if (c.at != state::req_sent && c.at != state::mra_req_received) {
    ++count_.wrong_state;
    return;
  }
  c.remote_id = m.local_id;
  contents told = m;
  if (c.xrc) told.connection.qpn = m.connection.ee_context;
  c.remote_qpn = told.connection.qpn;
  c.remote_guid = m.connection.ca_guid;
  rest(c, state::rep_received);
  tell(c, event::kind::reply, told);
}

void connection_manager::take_rtu(connection& c, const contents& m) {
  if (c.at != state::rep_sent && c.at != state::mra_rep_received) {
    // Data came before it, and the connection may be released by now.
    const bool late = c.at == state::established || c.at == state::dreq_sent || c.at == state::timewait;
    ++(late ? count_.duplicates : count_.wrong_state);
    return;
  }
  establish(c, m);
}

void connection_manager::establish(connection& c, const contents& m) {
  rest(c, state::established);
  tell(c, event::kind::established, m);
}

void connection_manager::take_dreq(const address& from, const contents& m, std::uint64_t now_ps) {
  connection* c = named(from, m);
  // Both numbers may be those of a connection by chance; of another queue pair it is none of this one's, and nobody is
  // answered (IBA volume 1, 12.9.8; core/cm.c:cm_dreq_handler). In whatever state, also when it is over.
  if (c != nullptr && m.remote_qpn != c->local_qpn) {
    ++count_.unknown_id;
    return;
  }
  if (c == nullptr || c->at == state::timewait) {  // it has ended here: the peer may forget it too
    ++(c == nullptr ? count_.unknown_id : count_.duplicates);
    contents answer;
    answer.kind = message::drep;
    answer.transaction = m.transaction;
    answer.local_id = m.remote_id;
    answer.remote_id = m.local_id;
    out_.send_mad(from, encode(answer));
    ++count_.sent;
    return;
  }
  switch (c->at) {
    case state::established:
    case state::rep_sent:
    case state::mra_rep_received:
      c->transaction = m.transaction;
      rest(*c, state::dreq_received);
      tell(*c, event::kind::disconnect_request, m);
      if (c->abandoned) disconnect(c->id, {}, now_ps);
      return;
    case state::dreq_sent: {  // both at once
      c->transaction = m.transaction;
      send(*c, make(*c, message::drep));
      tell(*c, event::kind::disconnected, m);
      end(*c, now_ps);
      return;
    }
    case state::dreq_received:
      ++count_.duplicates;
      return;
    default:
      ++count_.wrong_state;
  }
}

void connection_manager::take_drep(connection& c, const contents& m, std::uint64_t now_ps) {
  if (c.at != state::dreq_sent) {  // in time wait: both sides have asked at once
    ++(c.at == state::timewait ? count_.duplicates : count_.wrong_state);
    return;
  }
  tell(c, event::kind::disconnected, m);
  end(c, now_ps);
}

/// A request to load an alternate path (IBA volume 1, 12.8.1 and 12.6.13). Linux hosts drop it on RoCE ports
/// (core/cm.c:cm_lap_handler), so that their peer gives up after all its retries; an answer says the same at once.
void connection_manager::take_lap(const address& from, const contents& m) {
  connection* c = named(from, m);
  if (c != nullptr && c->at != state::established) {
    ++count_.wrong_state;
    return;
  }
  ++(c == nullptr ? count_.unknown_id : count_.paths_refused);
  contents answer;
  answer.kind = message::apr;
  answer.transaction = m.transaction;
  answer.local_id = m.remote_id;
  answer.remote_id = m.local_id;
  answer.path_status = c == nullptr                   ? path_answer::invalid_id
                       : m.remote_qpn != c->local_qpn ? path_answer::wrong_qpn
                                                      : path_answer::unsupported;
  out_.send_mad(from, encode(answer));
  ++count_.sent;
}

void connection_manager::refuse_service(const address& to, const contents& request, std::uint8_t status) {
  contents answer;
  answer.kind = message::sidr_rep;
  answer.transaction = request.transaction;
  answer.remote_id = request.local_id;
  answer.service.service_id = request.service.service_id;
  answer.service.status = status;
  out_.send_mad(to, encode(answer));
  ++count_.sent;
}

void connection_manager::take_service_request(const address& from, const contents& m) {
  for (const auto& [id, c] : connections_) {
    if (c.at == state::sidr_req_received && c.remote_id == m.local_id && c.peer.gid == from.gid) {
      ++count_.duplicates;
      return;
    }
  }
  if (!serves(m.service.service_id, true)) {
    ++count_.no_service;
    return refuse_service(from, m, sidr_unsupported);
  }
  connection* c = backlog_is_full(state::sidr_req_received) ? nullptr : open(from, state::sidr_req_received);
  if (c == nullptr) return;
  c->passive = true;
  c->remote_id = m.local_id;
  c->transaction = m.transaction;
  c->service_id = m.service.service_id;
  tell(*c, event::kind::service_request, m);
}

void connection_manager::take_service_reply(const address& from, const contents& m) {
  connection* c = find(m.remote_id);
  if (c == nullptr || c->peer.gid != from.gid || c->at != state::sidr_req_sent) {
    ++count_.unknown_id;
    return;
  }
  tell(*c, event::kind::service_reply, m);
  connections_.erase(c->id);
}

}  // namespace rnic::host_driver::cm
