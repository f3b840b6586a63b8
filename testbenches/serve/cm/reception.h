// SPDX-License-Identifier: Apache-2.0
// Where a server of the connection manager receives its clients: it listens as long as the server lives, and answers
// those who wait before it is their turn.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testbenches/serve/cm/cm_service.h"
#include "testbenches/serve/cm/rdma_connection.h"

namespace rnic::serve {

/// What a server has for one client from its REQ on: a prepared queue pair, and what receives into it.
class arrival {
 public:
  arrival() = default;
  virtual ~arrival() = default;
  arrival(const arrival&) = delete;
  arrival& operator=(const arrival&) = delete;
  virtual rdma_connection& connection() = 0;
};

struct reception_counters {
  std::uint64_t answered = 0;     ///< REQs, by a REP
  std::uint64_t confirmed = 0;    ///< clients that were served
  std::uint64_t unconfirmed = 0;  ///< clients that did not confirm within their time
  std::uint64_t gone = 0;         ///< clients that changed their mind before
  std::uint64_t refused = 0;      ///< clients for which there was nothing, with a REJ
};

/// Half-open connections have a time each, and cost nobody else anything: each has what it needs, and the first that is
/// confirmed is served. Requests that come while a client is served, or beyond most_half_open, wait in the connection
/// manager (connection_manager_config::backlog). Functions that wait are called in an SC_THREAD.
class reception {
 public:
  /// Makes what a client needs, with its connection prepared; what it throws is said, and refuses that client.
  using maker = std::function<std::unique_ptr<arrival>()>;
  static constexpr std::size_t most_half_open = 16;
  static constexpr std::uint64_t confirm_ps = 30 * sim::ps_per_s;  ///< for an RTU
  /// For an RTU when all places are taken and others wait: the oldest makes room then.
  static constexpr std::uint64_t crowded_ps = sim::ps_per_s;

  /// `name`: of the server, in what is printed. A service of datagrams (SIDR) needs no `make`. Throws
  /// std::runtime_error when there is a listener.
  reception(cm_service& service, std::uint64_t service_id, std::string name, maker make,
            host_driver::cm::service_kind kind = host_driver::cm::service_kind::connections);
  ~reception();
  reception(const reception&) = delete;
  reception& operator=(const reception&) = delete;

  /// READs and atomics that the clients' queue pairs take and make at a time.
  void set_reads(unsigned reads) { reads_ = reads; }
  /// The next client that has confirmed; of this host only (`of`), if given. Nothing after `timeout_ps`.
  std::unique_ptr<arrival> next(const host_driver::gid_bytes* of = nullptr,
                                std::uint64_t timeout_ps = ~std::uint64_t{0});
  /// The next SIDR_REQ.
  std::optional<cm_service::event> next_question(std::uint64_t timeout_ps = ~std::uint64_t{0});
  /// The next run is the last one.
  void set_last() { last_ = true; }
  /// The run has its clients. When it is the last one nobody is received any more, and those who wait are told.
  void enough();
  const reception_counters& count() const { return count_; }

 private:
  struct guest {
    std::unique_ptr<arrival> who;
    host_driver::gid_bytes from;
    std::uint64_t since_ps = 0;
  };
  std::size_t places_taken(const host_driver::gid_bytes* of) const;
  void answer_requests(const host_driver::gid_bytes* of);
  void answer(const cm_service::event& request);
  std::unique_ptr<arrival> confirmed(const host_driver::gid_bytes* of);
  void drop_overdue();
  void say(const host_driver::gid_bytes& from, const std::string& what) const;
  void close();

  cm_service& service_;
  std::uint64_t service_id_;
  std::string name_;
  maker make_;
  unsigned reads_ = 1;
  std::list<guest> guests_;  // half-open ones, the oldest first
  bool listening_ = true, last_ = false;
  reception_counters count_;
};

/// The same, as what the maker makes.
template <class T>
std::unique_ptr<T> next_as(reception& clients, const host_driver::gid_bytes* of = nullptr,
                           std::uint64_t timeout_ps = ~std::uint64_t{0}) {
  auto who = clients.next(of, timeout_ps);
  return std::unique_ptr<T>(dynamic_cast<T*>(who.release()));
}

/// The connections of one client: the first one's host makes the others too. peer_failure when it does not; the
/// reception has enough then.
template <class T>
std::vector<std::unique_ptr<T>> clients_of_one_host(reception& clients, unsigned number) {
  std::vector<std::unique_ptr<T>> all;
  all.push_back(next_as<T>(clients));
  const host_driver::gid_bytes host = all.front()->connection().peer_gid();
  while (all.size() < number) {
    auto next = next_as<T>(clients, &host, reception::confirm_ps);
    if (!next)
      throw peer_failure("the client made " + std::to_string(all.size()) + " connections: more are asked for by --qps");
    all.push_back(std::move(next));
  }
  clients.enough();
  return all;
}

}  // namespace rnic::serve
