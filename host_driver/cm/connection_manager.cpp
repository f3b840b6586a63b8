// SPDX-License-Identifier: Apache-2.0
#include "host_driver/cm/connection_manager.h"

#include <algorithm>
#include <vector>

namespace rnic::host_driver::cm {

namespace {

constexpr std::uint64_t never = ~std::uint64_t{0};

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
  if (c.kind == message::rej && c.remote_id == 0) {  // of a client that gives up before it has heard our number
    const auto asked = std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
      return entry.second.passive && entry.second.remote_id == c.local_id && entry.second.peer.gid == from.gid;
    });
    return asked == connections_.end() ? nullptr : &asked->second;
  }
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
  c->local_qpn = data.qpn;
  c->xrc = data.is_xrc();
  contents m = make(*c, message::req, private_data);
  m.connection = data;
  if (c->xrc) {  // what a queue pair that only sends has nothing of, or decides for itself
    m.connection.responder_resources = m.connection.retry_count = m.connection.rnr_retry_count = 0;
    m.connection.shared_receive_queue = false;
  }
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
  if (c->alternate_asked) m.connection.alternate_taken = failover::unsupported;
  if (c->xrc) {
    m.connection.ee_context = data.qpn;
    m.connection.qpn = m.connection.initiator_depth = 0;
    m.connection.shared_receive_queue = true;
  }
  c->local_qpn = data.qpn;
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

bool connection_manager::data_came(std::uint32_t local_qpn) {
  const auto at = std::find_if(connections_.begin(), connections_.end(), [local_qpn](const auto& entry) {
    const connection& c = entry.second;
    return c.local_qpn == local_qpn && (c.at == state::rep_sent || c.at == state::mra_rep_received);
  });
  if (at == connections_.end()) return false;
  ++count_.by_data;
  establish(at->second, {});
  return true;
}

bool connection_manager::awaits_confirmation() const {
  return std::any_of(connections_.begin(), connections_.end(), [](const auto& entry) {
    return entry.second.at == state::rep_sent || entry.second.at == state::mra_rep_received;
  });
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
  // Who has not confirmed has nothing to release.
  const bool half_open = c->at == state::rep_sent || c->at == state::mra_rep_received;
  if ((!half_open && disconnect(id, {}, now_ps)) ||
      reject(id, c->at == state::req_sent ? reason::timeout : reason::consumer, {}, now_ps))
    return;
  if (c->at != state::dreq_sent && c->at != state::timewait) connections_.erase(id);
}

void connection_manager::abandon_all(std::uint64_t now_ps) {
  services_.clear();
  std::vector<connection_id> all;
  for (const auto& [id, c] : connections_) all.push_back(id);
  for (const connection_id id : all) abandon(id, now_ps);
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

bool connection_manager::take_request(event& out, const std::function<bool(const event&)>& wanted) {
  const auto at = std::find_if(events_.begin(), events_.end(), [&wanted](const event& e) {
    return (e.what == event::kind::request || e.what == event::kind::service_request) && (!wanted || wanted(e));
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

bool connection_manager::has_peers() const {
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const auto& entry) { return entry.second.at != state::timewait; });
}

/// The owner has not seen this request yet, and shall not.
bool connection_manager::forget_request(connection_id id) {
  event ignored;
  return take_request(ignored, [id](const event& e) { return e.id == id; });
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

/// Its REQ waits for accept().
void connection_manager::await_owner(connection& c, std::uint64_t now_ps) {
  c.at = state::mra_req_sent;
  c.deadline = now_ps + timeout_ps(config_.service_timeout) + 2 * timeout_ps(config_.response_timeout);
}

void connection_manager::expire(connection& c, std::uint64_t now_ps) {
  if (c.at == state::req_received) {
    delay(c.id, config_.service_timeout);
    return await_owner(c, now_ps);
  }
  if (c.at == state::mra_req_sent) {
    ++count_.timeouts;
    if (!forget_request(c.id)) tell(c, event::kind::unreachable, {});
    reject(c.id, reason::timeout, {}, now_ps);
    return;
  }
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

}  // namespace rnic::host_driver::cm
