// SPDX-License-Identifier: Apache-2.0
// Mixed messages of all sizes over many queue pairs in both directions, every byte of which is checked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host_driver/hosts/connection.h"
#include "host_driver/hosts/pair_if.h"
#include "host_driver/workloads/verb.h"
#include "testbenches/bench/soak_atomics.h"
#include "testbenches/bench/soak_content.h"

namespace rnic::bench {

/// The verbs that a soak knows, in the order of their bits in soak_config::verbs: all but the masked ones, which are
/// for kernel users.
const std::vector<workloads::verb>& soak_verbs();

struct soak_config {
  std::uint64_t messages = 10'000;  ///< over all queue pairs and both directions
  unsigned qps = 64;                ///< connections; each end sends on each
  unsigned depth = 16;              ///< messages under way per connection and direction
  std::uint32_t largest = 65'536;   ///< bytes; sizes are spread evenly over their logarithms, 0 is one of them
  std::uint32_t verbs = ~0u;        ///< mask of soak_verbs()
  unsigned late_receives = 16;      ///< one of so many receives is posted too late, 0: none
  std::uint64_t seed = 1;
  unsigned priorities = 1;  ///< 1..8: connections take so many in turn, from that of connection_options on
};

struct soak_result {
  std::uint64_t posted = 0;              ///< messages
  std::uint64_t completed = 0;           ///< with success at the sender, and received where the verb has a receiver
  std::uint64_t errors = 0;              ///< completions in error, of either end; flushed ones are not counted
  std::uint64_t flushed = 0;             ///< completions that an error before them has flushed
  std::uint64_t lost = 0;                ///< completed with success at the sender, never received
  std::uint64_t duplicated = 0;          ///< received again, or memory written again after the message was over
  std::uint64_t corrupted = 0;           ///< wrong bytes, length or immediate, or bytes beside the message
  std::uint64_t reordered = 0;           ///< completed or received out of their order
  std::uint64_t hung = 0;                ///< neither completed nor failed when every timer must have expired
  std::uint64_t acknowledged_early = 0;  ///< WRITEs whose bytes were still on their way to memory: no fault
  std::uint64_t bytes = 0;               ///< of completed messages
  sim::time_ps elapsed = 0;              ///< simulated, from the first message to the last completion
  std::vector<std::uint64_t> by_verb;    ///< posted
  std::vector<std::string> findings;     ///< what was wrong, the first hundred, a line each
  bool clean() const {
    return errors + flushed + lost + duplicated + corrupted + reordered + hung == 0 && completed == posted;
  }
};

/// One program drives both hosts. Each flow (connection and direction) has a ring of memory in both hosts; a message
/// has the same place in both, with guard bytes around it. Bytes are compared at the completion that says that they
/// are there, guards too; then the place lies fallow, and when it is used again it must not have been written. Atomics
/// change words of their own (soak_atomics) and return into the message's place.
class soak {
 public:
  soak(hosts::pair_if& system, const hosts::connection_options& connection, const soak_config& config);

  /// The programs of the two hosts, of which both ends meet.
  void program_a();
  void program_b();
  const soak_result& result() const { return result_; }

  /// Called at times with the number of messages that are over.
  std::function<void(std::uint64_t)> on_progress;

  /// No message may take longer from the last sign of life of its flow.
  sim::time_ps patience() const;

 private:
  struct message {
    std::uint64_t number = 0;
    unsigned verb = 0;
    std::uint32_t size = 0, place = 0, span = 0, begin = 0;  // bytes; in the ring; payload in the place
    bool sent = false, received = false, failed = false;
    soak_atomics::operation atomic;
  };
  struct flow {
    unsigned from = 0;  // host that posts
    unsigned index = 0;
    host_driver::queue_pair* qp[2] = {};                       // by host
    std::uint64_t ring = 0;                                    // offset in the buffers
    std::uint64_t target = 0, posted = 0, sent = 0, over = 0;  // messages; the oldest of `under_way` is number `over`
    std::uint64_t receive_scan = 0;  // no message before this one waits for its receive's completion
    std::uint64_t receives = 0;      // next message whose receive may have to be posted
    sim::time_ps receive_at = 0;     // when the next receive is posted that came late
    sim::time_ps sign_of_life = 0;
    bool dead = false;
    bool hung = false;
    place_ring places{0};
    std::vector<message> under_way;  // by number modulo depth
    soak_random random{0};
  };

  void set_up(unsigned host);
  void connect_all();
  hosts::endpoint& end(unsigned host) { return host == 0 ? system_.a() : system_.b(); }
  std::uint8_t* at(const flow& f, const message& m, unsigned host) const { return memory_[host].at(f.ring + m.place); }
  unsigned source_of(const flow& f, const message& m) const { return verbs_[m.verb]->reads ? 1 - f.from : f.from; }
  std::uint64_t key_of(const flow& f, std::uint64_t number) const { return content_key(config_.seed, f.index, number); }
  message& slot(flow& f, std::uint64_t number) { return f.under_way[number % config_.depth]; }

  void run();
  bool fill(flow& f);
  bool draw(flow& f, message& m);
  std::uint32_t draw_size(flow& f);
  void post(flow& f, message& m);
  void post_receives(flow& f, bool late);
  bool take_completions(unsigned host);
  void take_sent(flow& f, const ibv_wc& wc);
  void take_received(flow& f, const ibv_wc& wc);
  void check_content(flow& f, message& m, const char* when);
  void check_original(flow& f, const message& m);
  std::uint64_t bytes_written(unsigned host) const;
  bool is_plain_write(const message& m) const { return verbs_[m.verb]->opcode == IBV_WR_RDMA_WRITE; }
  void check_received(flow& f, message& m, const ibv_wc& wc);
  void find_stranger(flow& f, const message& m, std::size_t wrong);
  void retire(flow& f);
  void die(flow& f);
  static bool finished(const flow& f) { return f.dead ? f.sent == f.posted : f.over == f.target; }
  bool all_finished() const;
  void look_for_hangs();
  void report_hang(flow& f);
  void last_look();
  void wait_a_little();
  void find(std::uint64_t& counter, const flow& f, const message& m, const std::string& what);
  void note(const std::string& text);

  hosts::pair_if& system_;
  hosts::connection_options connection_;
  soak_config config_;
  std::vector<const workloads::verb*> verbs_;
  std::uint32_t ring_bytes_;
  hosts::buffer memory_[2];
  host_driver::completion_queue* cq_[2] = {};
  std::vector<flow> flows_;
  soak_atomics atomics_;
  soak_result result_;
  bool ending_ = false;  // what has not come by now will not come
  sim::time_ps slice_ = 0, next_look_ = 0, start_ = 0;
};

}  // namespace rnic::bench
