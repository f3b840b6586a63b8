// SPDX-License-Identifier: Apache-2.0
// The DMA engine: requests of the adapter's blocks to memory packets and back. A part of the endpoint block.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/payload/tlp.h"
#include "model/pcie/config_space.h"
#include "model/pcie/dma_if.h"
#include "model/pcie/msix_table.h"
#include "model/pcie/transmit_path.h"
#include "model/sim/arbiter.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/parameter.h"
#include "model/sim/ring.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::pcie {

struct dma_config {
  sim::parameter<unsigned> tags{32, {1, 256, "reads", "calibration 5: tags"}};  ///< read packets in flight
  /// Requests of one client that are not answered yet.
  sim::parameter<unsigned> reads_per_client{16, {1, 64, "requests", "design"}};
  /// A write's packets end at multiples of the maximum payload, so that one that begins elsewhere has a packet more.
  sim::parameter<bool> aligned_packets{false, "design: not known of this adapter; measuring cards have them"};
  /// Read data goes on from the reassembly buffer over the adapter's datapath when it is complete (calibration 5:
  /// gather is store-and-forward; with the link it makes the 0.29 ns a byte of C02).
  std::uint32_t fill_bytes_per_cycle = 16;
  /// Of a longer read, what comes before has gone on while the rest arrived.
  sim::parameter<std::uint32_t> fill_limit_bytes{4096, {64, 1u << 20, "bytes", "design"}};
  /// From a read request to the end of its data.
  sim::parameter<std::uint64_t> completion_timeout_ps{
      10'000'000'000, {sim::many, 64'000'000'000'000ull, "ps", "PCI Express Base 2.8: 50 us to 64 s"}};

  void list(sim::fields& are) {
    are("tags", tags);
    are("reads_per_client", reads_per_client);
    are("aligned_packets", aligned_packets);
    are("fill_limit_bytes", fill_limit_bytes);
    are("completion_timeout_ps", completion_timeout_ps);
  }
};

/// Fair among clients; splits at maximum payload, maximum read request and 4 KiB; at most one request is started and
/// one packet is sent in a cycle. Packets of one write are not mixed with those of another; no read is started while a
/// write has packets to send, so none overtakes a write that was started before it.
///
/// A write's further packets, and completions that are not the last of their request, hang on nothing that could come
/// between: they are reckoned with the first one, at the edges at which they go and come, and need no tick. So those of
/// a write that has begun are sent even when the function loses the bus meanwhile.
class dma_engine {
 public:
  /// One client's ports, to be bound to the channels of a dma_port.
  struct client_port {
    explicit client_port(sim::clocked_block& owner) : request(owner), response(owner) {}
    sim::fifo_in<dma_request> request;
    sim::fifo_out<dma_response> response;
  };

  dma_engine(sim::clocked_block& owner, const dma_config& c, unsigned clients, transmit_path& path,
             payload::tlp_pool& pool, config_space& space, msix_table& vectors, sim::span_recorder& spans);

  client_port& client(unsigned i) { return clients_[i].port; }
  sim::fifo_in<msix_request>& msix() { return msix_; }
  void set_requester(std::uint16_t id) { requester_ = id; }

  /// A completion has arrived.
  void complete(const payload::tlp& t);
  /// A completion is on its way that comes at the first edge not before `arrival`; where it may come later, `alone` is
  /// false. True: it is not the last one of its request and as it should be; its data has been put away, and it need
  /// not come. Of others complete() must follow.
  bool complete_ahead(const payload::tlp& t, bool alone, sim::time_ps arrival);
  /// Answers to clients, and time-outs. The owner's tick calls this, may send something itself, and calls start();
  void give_answers();
  /// the start of one request; then issue() unless it used the transmitter itself.
  void start();
  /// Sends at most one packet.
  void issue();
  /// Whether requests may go out at all (beside bus mastering, which software controls).
  void enable(bool on);
  bool enabled() const { return enabled_; }
  /// Bus mastering or enable() was taken away: what was started and not sent is given up.
  void stop_started();
  /// Masks, enables or pending bits have changed.
  void msix_changed() { msix_recheck_ = true; }
  /// While true nothing may be sent that must not pass posted writes.
  bool write_under_way() const { return write_active_ || owner_.now() < clear_at_; }
  /// First edge at which none is under way; never while that is not known.
  sim::cycle_t clear_at() const { return write_active_ ? sim::never : clear_at_; }
  void announce(const std::string& prefix, sim::statistics& stats);
  unsigned tags_in_use() const { return config_.tags - static_cast<unsigned>(free_tags_.size()); }

 private:
  struct answer {
    dma_response response;
    sim::cycle_t ready = 0;
  };
  struct client_state {
    client_state(sim::clocked_block& owner, unsigned reads) : port(owner), to_issue(reads), answers(reads) {}
    client_port port;
    sim::ring<std::uint32_t> to_issue;  // reads with packets to send
    sim::ring<answer> answers;
    unsigned in_flight = 0;  // requests that will be answered
  };
  struct read_state {
    std::uint64_t tag = 0;
    std::uint64_t address = 0;  // of the next packet
    std::uint8_t* destination = nullptr;
    std::uint32_t length = 0;
    std::uint32_t issued = 0;
    unsigned packets = 0;  // in flight
    std::uint16_t client = 0;
    std::uint16_t function = 0;
    dma_status status = dma_status::ok;
    sim::span_id span = 0;
  };
  struct tag_state {
    bool active = false;
    std::uint32_t read = 0;
    std::uint32_t offset = 0;     // in the request's data
    std::uint32_t remaining = 0;  // bytes not arrived
    sim::cycle_t deadline = 0;
    std::uint32_t coming = 0;  // completions that complete_ahead() left to complete()
  };

  void put_away(tag_state& tag, const payload::tlp& t);
  void answer_clients();
  void check_timeouts();
  void start_request(unsigned client);
  void refuse(unsigned client, dma_request& r);
  void start_read(unsigned client, const dma_request& r);
  void start_write(unsigned client);
  void start_msix();
  bool interrupt_allowed(unsigned vector) const;
  bool may_master(std::uint16_t function) const;
  bool may_begin(const dma_request& r) const;
  void issue_read(unsigned client);
  void issue_write();
  void issue_ahead();
  void end_write(sim::cycle_t at, sim::time_ps left);
  payload::tlp_ptr next_of_write(std::uint32_t n);
  void give_answer(unsigned client, std::uint64_t tag, dma_status status, sim::cycle_t ready);
  void fail_read(std::uint32_t index, dma_status status);
  void finish_read_if_done(std::uint32_t index);
  std::uint64_t waiting() const;
  void request_opened(unsigned client);
  void request_closed(unsigned client);
  std::uint32_t write_packet_bytes() const;
  std::uint16_t requester_of(std::uint16_t function) const {
    return static_cast<std::uint16_t>(requester_ + function);  // VF offset and stride are 1
  }

  sim::clocked_block& owner_;
  dma_config config_;
  transmit_path& path_;
  payload::tlp_pool& pool_;
  config_space& space_;
  msix_table& vectors_;
  sim::span_recorder& spans_;
  std::vector<client_state> clients_;
  std::uint64_t interrupts_bit_;  // of asking_: behind those of the clients
  sim::fifo_in<msix_request> msix_;
  std::uint16_t requester_ = 0;

  sim::round_robin start_order_;
  sim::round_robin issue_order_;
  std::vector<read_state> reads_;
  std::vector<std::uint32_t> free_reads_;
  std::vector<tag_state> tags_;
  std::vector<std::uint16_t> free_tags_;
  std::uint64_t asking_ = 0;       // clients with something in their request channel, and the interrupts' channel
  std::uint64_t full_ = 0;         // clients with as many requests under way as they may have
  std::uint64_t issue_mask_ = 0;   // clients with read packets to send
  std::uint64_t answer_mask_ = 0;  // clients with answers to give
  bool write_active_ = false;
  dma_request write_;
  unsigned write_client_ = 0;
  std::uint32_t written_ = 0;
  sim::cycle_t clear_at_ = 0;  // issue_ahead(): first edge behind its last packet
  sim::wait write_wait_ = sim::wait::none;
  bool prefer_write_ = false;
  bool msix_recheck_ = false;
  bool enabled_ = true;
  sim::cycle_t fill_free_ = 0;
  sim::cycle_t timeout_cycles_;
  sim::cycle_t check_at_ = sim::never;

  std::uint64_t read_requests_ = 0, write_requests_ = 0, read_bytes_ = 0, write_bytes_ = 0, read_packets_ = 0;
  std::uint64_t write_packets_ = 0, interrupts_ = 0, interrupts_pended_ = 0, interrupts_dropped_ = 0, refused_ = 0;
  std::uint64_t unexpected_ = 0, timeouts_ = 0, failed_reads_ = 0, tags_used_up_ = 0;
};

}  // namespace rnic::pcie
