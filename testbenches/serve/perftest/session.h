// SPDX-License-Identifier: Apache-2.0
// What all perftest tests have: queue pairs with memory, which meet those of the peer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "testbenches/serve/cm/cm_program.h"
#include "testbenches/serve/host/peer_watch.h"
#include "testbenches/serve/perftest/exchange.h"
#include "testbenches/serve/perftest/perftest.h"

namespace rnic::serve::perftest {

/// Where messages lie in a buffer: short ones in turns through a page, each at the start of a cache line.
struct places {
  std::uint32_t stride = 64, count = 1;

  places() = default;
  places(std::uint32_t size, const exchange::agreement& a, bool in_turns);
  std::uint64_t offset(std::uint64_t message) const { return message % count * stride; }
};

/// A connection.
struct lane {
  host_driver::queue_pair* qp = nullptr;
  host_driver::address_handle* ah = nullptr;
  destination own, peer;
  app_buffer out, in;                           ///< of our requests; of the peer's, which it knows
  std::unique_ptr<rdma_connection> connection;  ///< when the connection manager makes it
  std::uint64_t posted = 0, completed = 0, received = 0, receives = 0;
};

class session {
 public:
  session(served_host& host, address_exchange& socket, cm_service* service, reception* clients,
          const perftest_options& o);
  virtual ~session() { socket_.close(); }
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  void run(application_result& r);

 protected:
  static constexpr std::uint64_t receive_bit = std::uint64_t{1} << 63;  ///< in identifiers of receives

  /// The test, from connected queue pairs to the exchange's end.
  virtual void test(application_result& r) = 0;
  bool client() const { return o_.client; }
  /// The tools tell their first queue pair once more where it is of no use to anybody.
  bool told_once_more() const { return o_.latency || o_.verb == perftest_verb::send; }
  bool asks() const { return client() || o_.both_directions; }
  bool answers() const { return !client() || o_.both_directions; }
  void tell_all();
  void tell(bool at_work = false) { exchange_->tell(lanes_.front().own, at_work); }
  void end() { exchange_->end(lanes_.front().own); }
  /// Sizes of messages, one test after the other.
  std::vector<std::uint32_t> sizes() const;
  /// Begins with messages of this size.
  void set_size(std::uint32_t bytes);
  /// Request number lane.posted of this test's kind.
  ibv_send_wr request(const lane& l) const;
  void post_request(lane& l);
  lane& lane_of(const ibv_wc& wc);
  /// Some successful completions: at least one, or none at the end of a timed test.
  std::vector<ibv_wc> completions();
  /// Begins to measure.
  void start();
  sim::time_ps took() const { return now() - start_; }
  bool timed() const { return o_.seconds != 0; }
  /// A timed test has come to its end; both sides find that on their own, by real time.
  bool over() const { return timed() && std::chrono::steady_clock::now() >= end_; }
  /// How long to wait for the peer at a time; then its watch looks.
  sim::time_ps look_ps() const { return timed() ? sim::ps_per_us * 1000 : peer_watch::look_every_ps; }
  /// Gives up what is still under way at the end of a timed test.
  void give_up();
  /// Checksums of what has come into our memory; none of a timed test.
  void report_memory(application_result& r, bool of_requests) const;
  void print_bandwidth(std::uint64_t messages, sim::time_ps took) const;
  void print_latency(std::vector<sim::time_ps> times) const;
  report bandwidth(std::uint64_t messages, sim::time_ps took) const;
  sim::time_ps now() const { return sc_core::sc_time_stamp().value(); }

  served_host& host_;
  host_driver::device& device_;
  address_exchange& socket_;
  cm_service* service_;
  reception* clients_;
  const perftest_options& o_;
  std::optional<exchange> exchange_;  ///< as soon as the peer is there
  std::optional<peer_watch> watch_;   ///< as soon as its queue pairs are
  exchange::agreement agreed_;
  std::uint32_t size_;
  std::uint64_t iterations_;
  sim::time_ps start_ = 0;
  std::chrono::steady_clock::time_point end_;  ///< of a timed test
  unsigned depth_;
  ibv_device_attr limits_{};
  places places_;
  std::uint32_t buffer_bytes_ = 0;  ///< room for any size's messages
  verbs_objects objects_;
  host_driver::completion_queue* cq_ = nullptr;
  std::vector<lane> lanes_;

 private:
  std::unique_ptr<conversation> talk_over_tcp();
  std::unique_ptr<conversation> talk_over_cm();
  void meet();
  void agree();
  void connect_by_cm();
  cm_service::event request_of_client(cm_service::connection_id not_before);
  void part();
  void make_lane(lane& l);
  void fill(lane& l) const;
  void connect(lane& l);
  int peers_access() const;
  std::uint32_t reads_taken() const;

  rdma_route route_;
  host_driver::gid_bytes peer_gid_{};  // of a client that came over the connection manager
  mutable bool headed_ = false;        // the table of results has its first line
};

}  // namespace rnic::serve::perftest
