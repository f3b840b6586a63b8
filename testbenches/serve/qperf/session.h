// SPDX-License-Identifier: Apache-2.0
// One test of qperf, from the request over TCP to the results.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "testbenches/serve/cm/reception.h"
#include "testbenches/serve/host/peer_watch.h"
#include "testbenches/serve/qperf/qperf.h"
#include "testbenches/serve/qperf/words.h"

namespace rnic::serve::qperf {

enum class verb : std::uint8_t { send, write_with_immediate, write, read, compare_swap, fetch_add };
enum class form : std::uint8_t {
  stream,      ///< as many as there is room for
  both_ways,   ///< of both sides
  in_turns,    ///< each side answers the other's message with its own
  one_by_one,  ///< the next one behind the answer
  checked      ///< a stream of atomics whose answers are known
};

struct test_kind {
  const char* name;
  std::uint16_t place;  ///< in the tool's table, as Debian builds it
  verb what;
  form how;
  bool takes_receives() const { return what == verb::send || what == verb::write_with_immediate; }
  bool is_atomic() const { return what == verb::compare_swap || what == verb::fetch_add; }
};
const test_kind* find_test(const std::string& name);
const test_kind* find_test(std::uint16_t place);

/// A queue pair with its memory, from the REQ on.
class lane : public arrival {
 public:
  static constexpr unsigned depth = 1024;
  lane(served_host& host, cm_service& service, const rdma_route& route, std::uint32_t bytes, std::uint8_t content);
  rdma_connection& connection() override { return connection_; }
  host_driver::completion_queue* cq() { return cq_; }
  host_driver::queue_pair* qp() { return qp_; }
  const app_buffer& memory() const { return memory_; }

 private:
  verbs_objects objects_;
  host_driver::completion_queue* cq_ = nullptr;
  host_driver::queue_pair* qp_ = nullptr;
  app_buffer memory_;
  rdma_connection connection_;
};

/// What goes wrong with the peer is a peer_failure.
class session {
 public:
  session(served_host& host, address_exchange& socket, cm_service& service, const qperf_options& o)
      : host_(host), device_(host.device()), socket_(socket), service_(service), o_(o) {}
  ~session() { socket_.close(); }
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  void run(application_result& r);

 private:
  using clock = std::chrono::steady_clock;
  void ask();
  void answer();
  void check_request() const;
  std::uint32_t size() const;
  std::uint8_t first_content() const;
  void tell_places();
  void test();
  void post_one();
  void post_receives(unsigned n);
  void begin();
  bool over() const;
  std::vector<ibv_wc> completions();
  void look_at_peer();
  void wait_for_link(reception& clients);
  void exchange_messages(bool sends, bool receives, unsigned depth);
  void take(const ibv_wc& wc, bool sends, bool receives);
  void in_turns();
  void mark_own();
  void poke();
  bool wait_for_bytes(std::uint8_t value);
  void idle();
  void check_answer();
  void count_wrong(application_result& r) const;
  void tell_results();
  void print(application_result& r) const;
  std::string hear(std::size_t bytes, const char* what);
  void say(const std::string& text, const char* what);
  void synchronize(const std::string& word);

  served_host& host_;
  host_driver::device& device_;
  address_exchange& socket_;
  cm_service& service_;
  const qperf_options& o_;
  const test_kind* kind_ = nullptr;
  request request_;
  node theirs_;
  std::unique_ptr<lane> lane_;
  clock::time_point began_, end_;
  sim::time_ps began_ps_ = 0, took_ps_ = 0;
  std::optional<peer_watch> watch_;  // during the test
  std::uint64_t posted_ = 0, completed_ = 0, received_ = 0, wrong_ = 0;
};

}  // namespace rnic::serve::qperf
