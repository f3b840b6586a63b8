// SPDX-License-Identifier: Apache-2.0
// What every application of a served host needs: verbs objects that end with it, and words for what went wrong.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "host_driver/device.h"
#include "model/sim/types.h"

namespace rnic::serve {

/// What went wrong with the peer, not with us.
class peer_failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How a run of an application ended.
struct application_result {
  bool ok = false;
  std::string error;  ///< a line, when not ok
  std::string local, remote;
  std::uint64_t sent = 0, received = 0;  ///< messages
  std::uint64_t wrong_bytes = 0;         ///< received ones that are not what the tools send
  sim::time_ps took_ps = 0;              ///< simulated, from the first message posted to the last completion

  // script
  std::uint64_t commands = 0, refused = 0;  ///< lines of the client, and those among them that were refused

  // perftest
  /// Memory of a queue pair that messages came into, or, where none could, that they came from.
  struct checksum {
    std::uint32_t qpn = 0, peer_qpn = 0;
    std::uint32_t crc32 = 0;  ///< of the messages that are there at the end, one after the other
  };
  /// Message n lies at (n modulo count) * stride.
  struct layout {
    std::uint32_t stride = 0, count = 0;
  };
  std::uint32_t message_bytes = 0;
  layout places;
  std::vector<checksum> memory;
  std::optional<std::uint64_t> counted;  ///< sum of the counters that the peer's atomics found at zero
};

/// A verbs object, or std::runtime_error with the name of the call that did not make it.
template <class T>
T* made(T* object, const char* what) {
  if (object == nullptr) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  return object;
}

/// Registered memory of an application.
struct app_buffer {
  host_driver::bus_if::dma_memory memory{};
  host_driver::memory_region* region = nullptr;
  std::uint8_t* at(std::size_t offset = 0) const { return memory.pointer + offset; }
  ibv_sge sge(std::uint32_t bytes, std::uint64_t offset = 0) const {
    return {region->iova + offset, bytes, region->lkey};
  }
};

/// Most memory that one client's run registers.
inline constexpr std::uint64_t most_client_bytes = std::uint64_t{512} << 20;

/// Verbs objects in one protection domain, destroyed with it in the right order. In an SC_THREAD. Every function throws
/// std::runtime_error when the device does not give what is asked for, or buffers would be more than most_client_bytes.
class verbs_objects {
 public:
  explicit verbs_objects(host_driver::device& device) : device_(device), pd_(made(device.alloc_pd(), "alloc_pd")) {}
  ~verbs_objects();
  verbs_objects(const verbs_objects&) = delete;
  verbs_objects& operator=(const verbs_objects&) = delete;

  host_driver::device& device() { return device_; }
  host_driver::protection_domain* pd() { return pd_; }
  host_driver::completion_queue* cq(unsigned entries);
  host_driver::shared_receive_queue* srq(unsigned requests);
  host_driver::queue_pair* qp(ibv_qp_init_attr init);
  // XRC: a shared receive queue in a domain of its own, which completes to `cq`; queue pairs for it, and for the
  // peer's.
  host_driver::xrc_domain* xrc_domain();
  host_driver::shared_receive_queue* xrc_srq(host_driver::xrc_domain* domain, host_driver::completion_queue* cq,
                                             unsigned requests);
  host_driver::queue_pair* xrc_receiver(host_driver::xrc_domain* domain);
  host_driver::queue_pair* xrc_sender(host_driver::completion_queue* cq, unsigned requests);
  /// All bytes `content`.
  app_buffer buffer(std::size_t bytes, int access = IBV_ACCESS_LOCAL_WRITE, std::uint8_t content = 0);
  host_driver::address_handle* ah(const ibv_ah_attr& path, const host_driver::mac_address& mac);

 private:
  host_driver::device& device_;
  host_driver::protection_domain* pd_;
  std::vector<host_driver::completion_queue*> cqs_;
  std::vector<host_driver::shared_receive_queue*> srqs_;
  std::vector<host_driver::queue_pair*> qps_;
  std::vector<host_driver::address_handle*> ahs_;
  std::vector<host_driver::xrc_domain*> xrc_domains_;
  std::vector<app_buffer> buffers_;
  std::uint64_t buffer_bytes_ = 0;
};

/// Posts one request; throws std::runtime_error.
void post(host_driver::device& device, host_driver::queue_pair* qp, ibv_send_wr wr, ibv_sge sge);
void post_receive(host_driver::device& device, host_driver::queue_pair* qp, std::uint64_t id, ibv_sge sge);

/// What went wrong with a request, in words. `timeout_is_ours`: --timeout was asked how long to wait.
std::string failure_words(const ibv_wc& wc, bool timeout_is_ours);
/// Throws peer_failure with them when the request did not succeed.
void require_success(const ibv_wc& wc, bool timeout_is_ours = true);
/// One successful completion within `patience_ps`; peer_failure when there is none or it is an error.
ibv_wc next_completion(host_driver::device& device, host_driver::completion_queue* cq, std::uint64_t patience_ps);

// As in the examples of rdma-core and in perftest.
inline constexpr std::uint32_t datagram_qkey = 0x11111111, grh_bytes = 40;
/// What is to be said next is waited for that long.
inline constexpr sim::time_ps exchange_ps = 20 * sim::ps_per_s;
/// How often a program that waits for messages looks whether its peer wishes to end.
inline constexpr sim::time_ps look_for_end_ps = 2000 * sim::ps_per_us;
/// Numbers of work requests, as in the examples of rdma-core.
inline constexpr std::uint64_t id_receive = 1, id_send = 2;
/// A peer that missed our last acknowledgement asks again: the queue pair stays until it had the time to.
inline constexpr sim::time_ps linger_ps = 300'000 * sim::ps_per_us;

/// Where a queue pair leads.
struct qp_route {
  ibv_qp_type type = IBV_QPT_RC;
  unsigned mtu = 1024;  ///< bytes
  std::uint32_t own_psn = 0, peer_psn = 0, peer_qpn = 0;
  unsigned ack_timeout = 14;                 ///< 4.096 us * 2^n
  unsigned reads_taken = 1, reads_made = 1;  ///< READs and atomics under way: the peer's, ours
  ibv_ah_attr path{};
  host_driver::mac_address mac{};
};
/// The transitions to INIT (`access`: what the peer may do), RTR and RTS, with the time-outs of the real tools. UD
/// needs nothing of a route but own_psn. Throw std::runtime_error.
void to_init(host_driver::device& device, host_driver::queue_pair* qp, ibv_qp_type type, int access = 0);
void to_ready_to_receive(host_driver::device& device, host_driver::queue_pair* qp, const qp_route& route);
void to_ready_to_send(host_driver::device& device, host_driver::queue_pair* qp, const qp_route& route);
/// A starting PSN that depends on nothing but these.
std::uint32_t starting_psn(std::uint64_t seed, const host_driver::mac_address& mac, std::uint32_t qpn);

/// Path over Ethernet to a neighbour: what the examples of rdma-core ask for.
ibv_ah_attr path_to(const host_driver::gid_bytes& gid, int gid_index, unsigned service_level,
                    std::uint8_t hop_limit = 1, std::uint8_t traffic_class = 0);

}  // namespace rnic::serve
