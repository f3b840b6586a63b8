// SPDX-License-Identifier: Apache-2.0
#include "host_driver/cm/connection_manager.h"

#include <algorithm>

namespace rnic::host_driver::cm {

namespace {

constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr std::uint64_t timeout_unit_ps = 4'096'000;
constexpr std::uint8_t longest_timeout = 31;

std::uint64_t timeout_ps(std::uint8_t code) { return timeout_unit_ps << std::min(code, longest_timeout); }

}  // namespace

const char* to_string(state s) {
  static constexpr const char* names[] = {"idle",          "REQ sent",         "MRA(REQ) received", "REP received",
                                          "REQ received",  "MRA(REQ) sent",    "REP sent",          "MRA(REP) received",
                                          "established",   "DREQ sent",        "DREQ received",     "timewait",
                                          "SIDR_REQ sent", "SIDR_REQ received"};
  return names[static_cast<std::size_t>(s)];
}

connection_manager::connection_manager(mad_output_if& out, const connection_manager_config& cfg)
    : out_(out), config_(cfg), next_id_(std::max(cfg.first_id, 1u)) {}

connection_manager::connection* connection_manager::find(connection_id id) {
  const auto at = connections_.find(id);
  return at == connections_.end() ? nullptr : &at->second;
}

connection_manager::connection* connection_manager::named(const address& from, const contents& c) {
  connection* at = find(c.remote_id);
  if (at == nullptr || at->peer.gid != from.gid) return nullptr;
  // Before the peer has told its number there is none to compare with.
  const bool knows = at->at != state::req_sent && at->at != state::mra_req_received;
  return knows && at->remote_id != c.local_id && !(c.kind == message::rej && c.local_id == 0) ? nullptr : at;
}

connection_manager::connection* connection_manager::open(const address& peer, state at) {
  if (connections_.size() >= config_.most_connections) {
    ++count_.no_room;
    return nullptr;
  }
  while (next_id_ == 0 || connections_.count(next_id_) != 0) ++next_id_;
  connection& c = connections_[next_id_];
  c.id = next_id_++;
  c.at = at;
  c.peer = peer;
  return &c;
}

contents connection_manager::make(const connection& c, message kind, const private_area& private_data) const {
  contents m;
  m.kind = kind;
  m.transaction = c.transaction;
  m.local_id = c.id;
  m.remote_id = c.remote_id;
  m.private_data = private_data;
  return m;
}

void connection_manager::send(connection& c, const contents& m) {
  c.last = encode(m);
  out_.send_mad(c.peer, c.last);
  ++count_.sent;
}

void connection_manager::send_again(connection& c) {
  out_.send_mad(c.peer, c.last);
  ++count_.sent;
}

/// Now in a state that waits for an answer.
void connection_manager::arm(connection& c, state at, std::uint64_t now_ps) {
  c.at = at;
  c.retries_left = config_.retries;
  c.deadline = now_ps + timeout_ps(config_.response_timeout);
}

void connection_manager::rest(connection& c, state at) {
  c.at = at;
  c.deadline = never;
}

void connection_manager::end(connection& c, std::uint64_t now_ps) {
  c.at = state::timewait;
  c.deadline = now_ps + config_.timewait_ps;
}

void connection_manager::tell(const connection& c, event::kind what, const contents& m) {
  if (!c.abandoned) events_.push_back({what, c.id, c.peer, m});
}

// ---------------------------------------------------------------- what the owner does

connection_id connection_manager::connect(const address& to, const connection_data& data,
                                          const private_area& private_data, std::uint64_t now_ps) {
  connection* c = open(to, state::req_sent);
  if (c == nullptr) return 0;
  c->transaction = std::uint64_t{c->id} << 32 | static_cast<std::uint16_t>(message::req);
  c->service_id = data.service_id;
  contents m = make(*c, message::req, private_data);
  m.connection = data;
  m.connection.ca_guid = config_.ca_guid;
  m.connection.local_cm_timeout = m.connection.remote_cm_timeout = config_.response_timeout;
  m.connection.max_cm_retries = std::min<std::uint8_t>(config_.retries, 15);
  send(*c, m);
  arm(*c, state::req_sent, now_ps);
  return c->id;
}

bool connection_manager::accept(connection_id id, const connection_data& data, const private_area& private_data,
                                std::uint64_t now_ps) {
  connection* c = find(id);
  if (c == nullptr || (c->at != state::req_received && c->at != state::mra_req_sent)) return false;
  contents m = make(*c, message::rep, private_data);
  m.connection = data;
  m.connection.ca_guid = config_.ca_guid;
  send(*c, m);
  arm(*c, state::rep_sent, now_ps);
  return true;
}

bool connection_manager::delay(connection_id id, std::uint8_t timeout) {
  connection* c = find(id);
  if (c == nullptr || c->at != state::req_received) return false;
  contents m = make(*c, message::mra);
  m.subject = about::req;
  m.service_timeout = timeout;
  send(*c, m);
  rest(*c, state::mra_req_sent);
  return true;
}

bool connection_manager::confirm(connection_id id, const private_area& private_data) {
  connection* c = find(id);
  if (c == nullptr || c->at != state::rep_received) return false;
  send(*c, make(*c, message::rtu, private_data));
  rest(*c, state::established);
  return true;
}

bool connection_manager::reject(connection_id id, reason why, const private_area& private_data, std::uint64_t now_ps) {
  connection* c = find(id);
  if (c == nullptr) return false;
  contents m = make(*c, message::rej, private_data);
  m.why = why;
  switch (c->at) {
    case state::req_received:
    case state::mra_req_sent:
      m.subject = about::req;
      break;
    case state::rep_received:
      m.subject = about::rep;
      break;
    case state::req_sent:
    case state::mra_req_received:
    case state::rep_sent:
    case state::mra_rep_received:
      m.subject = about::other;
      break;
    default:
      return false;
  }
  send(*c, m);
  end(*c, now_ps);
  return true;
}

bool connection_manager::disconnect(connection_id id, const private_area& private_data, std::uint64_t now_ps) {
  connection* c = find(id);
  if (c == nullptr) return false;
  switch (c->at) {
    case state::dreq_received:
      send(*c, make(*c, message::drep, private_data));
      end(*c, now_ps);
      return true;
    case state::established:
    case state::rep_sent:
    case state::mra_rep_received: {
      contents m = make(*c, message::dreq, private_data);
      m.remote_qpn = c->remote_qpn;
      send(*c, m);
      arm(*c, state::dreq_sent, now_ps);
      return true;
    }
    default:
      return false;
  }
}

connection_id connection_manager::ask_service(const address& to, const service_data& data,
                                              const private_area& private_data, std::uint64_t now_ps) {
  connection* c = open(to, state::sidr_req_sent);
  if (c == nullptr) return 0;
  c->transaction = std::uint64_t{c->id} << 32 | static_cast<std::uint16_t>(message::sidr_req);
  contents m = make(*c, message::sidr_req, private_data);
  m.service = data;
  send(*c, m);
  arm(*c, state::sidr_req_sent, now_ps);
  return c->id;
}

bool connection_manager::answer_service(connection_id id, const service_data& data, const private_area& private_data) {
  connection* c = find(id);
  if (c == nullptr || c->at != state::sidr_req_received) return false;
  contents m = make(*c, message::sidr_rep, private_data);
  m.service = data;
  m.service.service_id = c->service_id;
  send(*c, m);
  connections_.erase(id);
  return true;
}

void connection_manager::abandon(connection_id id, std::uint64_t now_ps) {
  connection* c = find(id);
  if (c == nullptr) return;
  c->abandoned = true;
  events_.erase(std::remove_if(events_.begin(), events_.end(), [id](const event& e) { return e.id == id; }),
                events_.end());
  if (disconnect(id, {}, now_ps) ||
      reject(id, c->at == state::req_sent ? reason::timeout : reason::consumer, {}, now_ps))
    return;
  if (c->at != state::dreq_sent && c->at != state::timewait) connections_.erase(id);
}

event connection_manager::take_event() {
  event e = events_.front();
  events_.pop_front();
  return e;
}

bool connection_manager::take_event_of(connection_id id, event& out) {
  const auto at = std::find_if(events_.begin(), events_.end(), [id](const event& e) { return e.id == id; });
  if (at == events_.end()) return false;
  out = *at;
  events_.erase(at);
  return true;
}

bool connection_manager::take_request(event& out) {
  const auto at = std::find_if(events_.begin(), events_.end(), [](const event& e) {
    return e.what == event::kind::request || e.what == event::kind::service_request;
  });
  if (at == events_.end()) return false;
  out = *at;
  events_.erase(at);
  return true;
}

state connection_manager::state_of(connection_id id) const {
  const auto at = connections_.find(id);
  return at == connections_.end() ? state::idle : at->second.at;
}

// ---------------------------------------------------------------- time

std::uint64_t connection_manager::deadline_ps() const {
  std::uint64_t first = never;
  for (const auto& [id, c] : connections_) first = std::min(first, c.deadline);
  return first;
}

void connection_manager::tick(std::uint64_t now_ps) {
  for (auto at = connections_.begin(); at != connections_.end();) {
    connection& c = at->second;
    ++at;  // the connection may go
    if (c.deadline <= now_ps) expire(c, now_ps);
  }
}

void connection_manager::expire(connection& c, std::uint64_t now_ps) {
  if (c.at != state::timewait && c.retries_left != 0) {
    --c.retries_left;
    ++count_.retries;
    // A peer that had asked for more time has had it.
    if (c.at == state::mra_req_received) c.at = state::req_sent;
    if (c.at == state::mra_rep_received) c.at = state::rep_sent;
    send_again(c);
    c.deadline = now_ps + timeout_ps(config_.response_timeout);
    return;
  }
  const state was = c.at;
  if (was == state::timewait) {
    connections_.erase(c.id);
    return;
  }
  ++count_.timeouts;
  if (was == state::dreq_sent) {
    tell(c, event::kind::disconnected, {});
    end(c, now_ps);
    return;
  }
  tell(c, event::kind::unreachable, {});
  if (was == state::sidr_req_sent) {
    connections_.erase(c.id);
    return;
  }
  reject(c.id, reason::timeout, {}, now_ps);
}

// ---------------------------------------------------------------- what the peer does

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

void connection_manager::dispatch(const address& from, const contents& m, std::uint64_t now_ps) {
  switch (m.kind) {
    case message::req:
      return take_req(from, m, now_ps);
    case message::dreq:
      return take_dreq(from, m, now_ps);
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
    default:
      return take_drep(*c, m, now_ps);
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
bool connection_manager::repeats(const address& from, const contents& m) {
  for (auto& [id, c] : connections_) {
    if (!c.passive || c.remote_id != m.local_id || c.peer.gid != from.gid || c.remote_guid != m.connection.ca_guid ||
        c.remote_qpn != m.connection.qpn || c.at == state::timewait)
      continue;
    ++count_.duplicates;
    if (c.at == state::mra_req_sent || c.at == state::rep_sent) send_again(c);
    return true;
  }
  return false;
}

/// The peer's queue pair is in a connection that it has forgotten.
bool connection_manager::is_stale(const address& from, const contents& m) const {
  return std::any_of(connections_.begin(), connections_.end(), [&](const auto& entry) {
    const connection& c = entry.second;
    return c.at != state::timewait && c.at != state::req_sent && c.at != state::sidr_req_received &&
           c.at != state::sidr_req_sent && c.peer.gid == from.gid && c.remote_qpn == m.connection.qpn &&
           c.remote_guid == m.connection.ca_guid;
  });
}

void connection_manager::take_req(const address& from, const contents& m, std::uint64_t now_ps) {
  static_cast<void>(now_ps);
  if (repeats(from, m)) return;
  if (services_.count(m.connection.service_id) == 0) {
    ++count_.no_service;
    return refuse(from, m, reason::invalid_service);
  }
  if (m.connection.transport != 0) return refuse(from, m, reason::invalid_transport);
  if (is_stale(from, m)) {
    ++count_.stale;
    return refuse(from, m, reason::stale);
  }
  connection* c = open(from, state::req_received);
  if (c == nullptr) return refuse(from, m, reason::no_resources);
  c->passive = true;
  c->remote_id = m.local_id;
  c->transaction = m.transaction;
  c->remote_qpn = m.connection.qpn;
  c->remote_guid = m.connection.ca_guid;
  c->service_id = m.connection.service_id;
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
      tell(c, event::kind::rejected, m);
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
  c.remote_qpn = m.connection.qpn;
  c.remote_guid = m.connection.ca_guid;
  rest(c, state::rep_received);
  tell(c, event::kind::reply, m);
}

void connection_manager::take_rtu(connection& c, const contents& m) {
  if (c.at != state::rep_sent && c.at != state::mra_rep_received) {
    ++(c.at == state::established ? count_.duplicates : count_.wrong_state);
    return;
  }
  rest(c, state::established);
  tell(c, event::kind::established, m);
}

void connection_manager::take_dreq(const address& from, const contents& m, std::uint64_t now_ps) {
  connection* c = named(from, m);
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
  if (c.at != state::dreq_sent) {
    ++count_.wrong_state;
    return;
  }
  tell(c, event::kind::disconnected, m);
  end(c, now_ps);
}

void connection_manager::take_service_request(const address& from, const contents& m) {
  for (const auto& [id, c] : connections_) {
    if (c.at == state::sidr_req_received && c.remote_id == m.local_id && c.peer.gid == from.gid) {
      ++count_.duplicates;
      return;
    }
  }
  if (services_.count(m.service.service_id) == 0) {
    ++count_.no_service;
    constexpr std::uint8_t unsupported = 1;
    contents answer;
    answer.kind = message::sidr_rep;
    answer.transaction = m.transaction;
    answer.remote_id = m.local_id;
    answer.service.service_id = m.service.service_id;
    answer.service.status = unsupported;
    out_.send_mad(from, encode(answer));
    ++count_.sent;
    return;
  }
  connection* c = open(from, state::sidr_req_received);
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
