// SPDX-License-Identifier: Apache-2.0
// The communication manager: establishes and releases connections with messages over QP1.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "host_driver/cm/messages.h"
#include "host_driver/gid_rules.h"

namespace rnic::host_driver::cm {

/// Where a datagram goes to or came from: a GID of a neighbour with its link-layer address, and the row of our own GID.
struct address {
  gid_bytes gid{};
  mac_address mac{};
  int gid_index = 0;
  std::uint8_t service_level = 0, traffic_class = 0;
};

/// Sends datagrams to QP1 of other hosts. Never waits.
class mad_output_if {
 public:
  virtual ~mad_output_if() = default;
  virtual void send_mad(const address& to, const mad& datagram) = 0;
};

/// States of IBA volume 1, 12.9.7; those of a listener and of SIDR are apart.
enum class state : std::uint8_t {
  idle,
  req_sent,
  mra_req_received,
  rep_received,
  req_received,
  mra_req_sent,
  rep_sent,
  mra_rep_received,
  established,
  dreq_sent,
  dreq_received,
  timewait,
  sidr_req_sent,
  sidr_req_received
};
const char* to_string(state s);

using connection_id = std::uint32_t;

struct event {
  enum class kind : std::uint8_t {
    request,             ///< REQ for a service that is listened to; `id` is new: accept() or reject() it
    reply,               ///< REP to our REQ: confirm() or reject()
    established,         ///< RTU to our REP
    rejected,            ///< the peer said no: `why`
    unreachable,         ///< no answer within all retries
    disconnect_request,  ///< DREQ: answer it with disconnect()
    disconnected,        ///< DREP to our DREQ, or no answer to it
    service_request,     ///< SIDR_REQ; `id` is new: answer_service() it
    service_reply        ///< SIDR_REP; `id` is gone
  };
  kind what = kind::request;
  connection_id id = 0;
  address from;
  contents message;
};

/// What a service is asked with: REQ of a reliable connection or of one over XRC, or SIDR_REQ.
enum class service_kind : std::uint8_t { connections, xrc_connections, datagrams };

struct connection_manager_config {
  /// Time to an answer, 4.096 us * 2^n, and how often a message is sent again (core/cma.c).
  std::uint8_t response_timeout = 20;
  std::uint8_t retries = 15;
  std::uint64_t timewait_ps = 1'000'000'000'000ull / 4;  ///< how long an ended connection still answers
  std::size_t most_connections = 1024;                   ///< beyond: REJ, no resources; SIDR requests are dropped
  std::size_t backlog = 64;  ///< requests that may wait for accept(), as many of SIDR; beyond: the same
  /// A REQ that waits is answered by an MRA: 4.096 us * 2^n more (core/cma.c: CMA_CM_MRA_SETTING). A client that then
  /// neither asks again nor gives up for that time and two to an answer is taken for gone.
  std::uint8_t service_timeout = 24;
  std::uint64_t mra_after_ps = 1'000'000'000'000ull / 2;  ///< so long it waits without
  std::uint64_t ca_guid = 0;
  std::uint32_t first_id = 1;
};

struct connection_manager_counters {
  std::uint64_t received = 0, sent = 0, malformed = 0, unknown_id = 0, wrong_state = 0, duplicates = 0, stale = 0,
                no_service = 0, no_room = 0, not_admitted = 0, backlog_full = 0, by_data = 0, other_version = 0,
                retries = 0, timeouts = 0, paths_refused = 0;
};

/// Both sides of any number of connections (IBA volume 1, chapter 12; states 12.9; adapter data plane part D). Software
/// without time of its own: its owner says what time it is, and calls back when something is due. Datagrams come from
/// anybody, so nothing in them is believed: what does not fit the state of a connection with this peer is counted and
/// dropped, or refused as the standard says. Alternate paths are refused: automatic path migration is none of RoCE's.
class connection_manager {
 public:
  connection_manager(mad_output_if& out, const connection_manager_config& cfg);

  /// REQs of this kind, or SIDR_REQs, for this service become events from now on. False: there is a listener.
  bool listen(std::uint64_t service_id, service_kind kind = service_kind::connections) {
    return services_.emplace(service_id, kind).second;
  }
  void stop_listening(std::uint64_t service_id) { services_.erase(service_id); }

  // What the owner does. False: not in the state for it. Over XRC (`data` of connect() says so) a queue pair is
  // connection_data::qpn here too, and what such messages leave out is not sent (core/cm.c:cm_format_req,
  // cm_format_rep).
  connection_id connect(const address& to, const connection_data& data, const private_area& private_data,
                        std::uint64_t now_ps);
  bool accept(connection_id id, const connection_data& data, const private_area& private_data, std::uint64_t now_ps);
  /// More time for what follows a REQ (MRA): 4.096 us * 2^timeout.
  bool delay(connection_id id, std::uint8_t timeout);
  bool confirm(connection_id id, const private_area& private_data);
  /// A packet has come to the queue pair of an accepted connection: as good as an RTU, which was lost or is late
  /// (communication established, IBA volume 1, 12.9.6). False: it waits for none.
  bool data_came(std::uint32_t local_qpn);
  /// Some accepted connection waits for its RTU.
  bool awaits_confirmation() const;
  bool reject(connection_id id, reason why, const private_area& private_data, std::uint64_t now_ps);
  /// DREQ, or DREP when the peer has asked.
  bool disconnect(connection_id id, const private_area& private_data, std::uint64_t now_ps);
  connection_id ask_service(const address& to, const service_data& data, const private_area& private_data,
                            std::uint64_t now_ps);
  bool answer_service(connection_id id, const service_data& data, const private_area& private_data);
  /// Forgets a connection in whatever state; the peer of one that is under way is told. No events of it follow.
  void abandon(connection_id id, std::uint64_t now_ps);
  /// Listens no more, and abandons all connections.
  void abandon_all(std::uint64_t now_ps);

  /// A datagram that came to QP1.
  void receive(const address& from, const std::uint8_t* datagram, std::size_t length, std::uint64_t now_ps);
  /// One that came in a RoCE version that this host is not set to: requests are refused (`from` with a GID of its own
  /// version), a refusal of a request is taken, everything else is dropped.
  void refuse_version(const address& from, const std::uint8_t* datagram, std::size_t length, std::uint64_t now_ps);
  /// If it is a REQ or SIDR_REQ: refuses it as a host whose rdma_cm has no address for it (cm/cma.h). False: it is
  /// another message, and is to be received.
  bool refuse_request(const address& from, const std::uint8_t* datagram, std::size_t length);
  /// Sends again and gives up what is due.
  void tick(std::uint64_t now_ps);
  /// The next moment at which tick() has something to do; ~0: none.
  std::uint64_t deadline_ps() const;

  bool has_event() const { return !events_.empty(); }
  event take_event();
  /// The oldest event of this connection; false when there is none.
  bool take_event_of(connection_id id, event& out);
  /// The oldest REQ or SIDR_REQ (`wanted`: that it says yes to).
  bool take_request(event& out, const std::function<bool(const event&)>& wanted = {});
  /// Some connection is under way, up, or its end not answered yet.
  bool has_peers() const;
  state state_of(connection_id id) const;
  const connection_manager_counters& count() const { return count_; }
  std::size_t connections() const { return connections_.size(); }
  /// No connection has had this number, or one above, but after numbers began again.
  connection_id next_id() const { return next_id_; }

 private:
  struct connection {
    connection_id id = 0;
    state at = state::idle;
    std::uint32_t remote_id = 0;
    std::uint64_t transaction = 0;
    address peer;
    bool passive = false, abandoned = false, xrc = false;
    bool alternate_asked = false;  // its REQ had an alternate path
    std::uint32_t local_qpn = 0, remote_qpn = 0;
    std::uint64_t remote_guid = 0;
    std::uint64_t service_id = 0;
    mad last{};  ///< sent again: when nothing answers, or when its answer is asked for again
    std::uint64_t deadline = ~std::uint64_t{0};
    unsigned retries_left = 0;
  };

  connection* find(connection_id id);
  /// The connection that a message names, when it is with this peer.
  connection* named(const address& from, const contents& c);
  connection* open(const address& peer, state at);
  void send(connection& c, const contents& m);
  void send_again(connection& c);
  void arm(connection& c, state at, std::uint64_t now_ps);
  void rest(connection& c, state at);
  void end(connection& c, std::uint64_t now_ps);
  void tell(const connection& c, event::kind what, const contents& message);
  contents make(const connection& c, message kind, const private_area& private_data = {}) const;
  void refuse(const address& to, const contents& req, reason why);
  void expire(connection& c, std::uint64_t now_ps);
  bool serves(std::uint64_t service_id, bool datagrams) const;
  bool backlog_is_full(state waiting);
  bool forget_request(connection_id id);
  void await_owner(connection& c, std::uint64_t now_ps);

  void take_req(const address& from, const contents& m, std::uint64_t now_ps);
  bool repeats(const address& from, const contents& m, std::uint64_t now_ps);
  connection* stale(const address& from, const contents& m);
  bool end_stale(connection& c, std::uint64_t now_ps);
  void take_mra(connection& c, const contents& m, std::uint64_t now_ps);
  void take_rej(connection& c, const contents& m, std::uint64_t now_ps);
  void take_rep(connection& c, const contents& m, std::uint64_t now_ps);
  void take_rtu(connection& c, const contents& m);
  void establish(connection& c, const contents& m);
  void take_dreq(const address& from, const contents& m, std::uint64_t now_ps);
  void take_drep(connection& c, const contents& m, std::uint64_t now_ps);
  void take_lap(const address& from, const contents& m);
  void refuse_service(const address& to, const contents& request, std::uint8_t status);
  void take_service_request(const address& from, const contents& m);
  void take_service_reply(const address& from, const contents& m);
  void dispatch(const address& from, const contents& m, std::uint64_t now_ps);

  mad_output_if& out_;
  connection_manager_config config_;
  std::map<std::uint64_t, service_kind> services_;
  std::map<connection_id, connection> connections_;
  std::deque<event> events_;
  connection_id next_id_;
  connection_manager_counters count_;
};

}  // namespace rnic::host_driver::cm
