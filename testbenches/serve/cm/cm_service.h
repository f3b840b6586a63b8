// SPDX-License-Identifier: Apache-2.0
// The connection manager of a served host: QP1, and software that is always there to answer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <systemc>

#include "host_driver/cm/cma.h"
#include "host_driver/cm/connection_manager.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/host/served_host.h"

namespace rnic::serve {

inline constexpr std::uint8_t kernel_hop_limit = 64;  ///< of connections and their MADs, as Linux has it

/// One's end of a connection of the service.
class connection_end_if {
 public:
  /// Its queue pair is in error from now on. In an SC_THREAD.
  virtual void stop() = 0;

 protected:
  ~connection_end_if() = default;
};

/// Runs a connection manager over QP1 of port 1, in a process of its own. Applications call its functions in their
/// SC_THREAD.
class cm_service : private host_driver::cm::mad_output_if {
 public:
  using connection_id = host_driver::cm::connection_id;
  using event = host_driver::cm::event;

  /// In an SC_THREAD. Throws std::runtime_error when the device has no QP1 to give.
  /// `only`: connections are made and answered in this RoCE version and no other; without it as rdma_cm does, whose
  /// defaults (cma) say in which version connections begin.
  cm_service(served_host& host, std::optional<ibv_gid_type> only);
  ~cm_service() override;

  host_driver::cm::connection_manager& manager() { return *manager_; }
  std::uint64_t now_ps() const { return sc_core::sc_time_stamp().value(); }
  /// The next event of this connection, or nothing after `timeout_ps`.
  std::optional<event> wait_of(connection_id id, std::uint64_t timeout_ps);
  /// The next REQ or SIDR_REQ that `wanted` says yes to.
  std::optional<event> wait_request(std::uint64_t timeout_ps, const std::function<bool(const event&)>& wanted = {});
  /// The same, when it is there already.
  std::optional<event> take_request(const std::function<bool(const event&)>& wanted);
  /// Until there is an event, of any connection, or `timeout_ps` have passed.
  void wait_news(std::uint64_t timeout_ps);
  /// The next event of any connection.
  std::optional<event> wait_any(std::uint64_t timeout_ps);
  /// Refuses what nobody has taken, and forgets events.
  void clear();
  /// As long as it exists: ends that leave() stops. retire() waits until it has, in an SC_THREAD.
  void enter(connection_end_if& end) { ends_.insert(&end); }
  void retire(connection_end_if& end);
  /// Ends all connections and refuses all requests, from any process: queue pairs stop, then the peers are told.
  /// left(): they have answered.
  void leave();
  bool left() const { return !leaving_ && !manager_->has_peers() && outbox_.empty() && sending_ == 0; }
  /// Both, but waits for the answers no longer than `at_most_ps`.
  void leave(std::uint64_t at_most_ps);
  /// Sender's address, and the row of our GID table that a datagram was sent to, from the 40 bytes in front of it.
  bool find_own(const std::uint8_t* area, host_driver::cm::address& from) const;
  std::uint64_t not_for_us() const { return not_for_us_; }
  std::uint64_t wrong_version() const { return wrong_version_; }
  /// Words for a peer that has used another RoCE version than this host's; nothing for others.
  std::string other_version(const host_driver::gid_bytes& peer) const;

 private:
  struct outgoing {
    host_driver::cm::address to;
    host_driver::cm::mad datagram;
  };
  static constexpr unsigned receives = 128, sends = 64;
  static constexpr std::uint32_t receive_bytes = 40 + host_driver::mad_bytes;

  void send_mad(const host_driver::cm::address& to, const host_driver::cm::mad& datagram) override;
  void run();
  void take(const ibv_wc& wc, const host_driver::mac_address& source);
  void end_connections();
  void take_device_events();
  void take_other_version(const host_driver::cm::address& from, const std::uint8_t* datagram);
  std::optional<int> own_row_like(int other) const;
  void post_one();
  template <class Take>
  std::optional<event> wait_for(Take take, std::uint64_t timeout_ps);

  host_driver::device& device_;
  std::optional<ibv_gid_type> version_;
  host_driver::cm::cma choices_;
  verbs_objects objects_;
  host_driver::completion_queue* receive_cq_ = nullptr;
  host_driver::completion_queue* send_cq_ = nullptr;
  host_driver::queue_pair* qp_ = nullptr;
  app_buffer receive_buffer_, send_buffer_;
  unsigned next_send_ = 0, sending_ = 0;
  std::deque<outgoing> outbox_;  // bounded: what does not fit is dropped, as in a network
  std::unique_ptr<host_driver::cm::connection_manager> manager_;
  sc_core::sc_event something_happened_{sc_core::sc_gen_unique_name("cm_event")};
  sc_core::sc_event ended_{sc_core::sc_gen_unique_name("cm_ended")};
  sc_core::sc_event stopped_{sc_core::sc_gen_unique_name("cm_stopped")};
  std::set<connection_end_if*> ends_;
  const connection_end_if* stopping_ = nullptr;
  bool stop_ = false, running_ = false, leaving_ = false;
  std::uint64_t not_for_us_ = 0, outbox_full_ = 0, wrong_version_ = 0;
  std::set<host_driver::gid_bytes> of_other_version_;  // bounded: peers that were told of
};

}  // namespace rnic::serve
