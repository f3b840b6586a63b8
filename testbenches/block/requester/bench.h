// SPDX-License-Identifier: Apache-2.0
// Requester and scheduler between a host memory, a translation and a wire that the test controls.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "model/gid/gid_source.h"
#include "model/icm/icm_map.h"
#include "model/scheduler/scheduler.h"
#include "model/sim/clock_domain.h"
#include "model/sim/timebase.h"
#include "model/transport/read_engine/read_engine.h"
#include "model/transport/requester/ack_timers.h"
#include "model/transport/requester/descriptor_fetch.h"
#include "model/transport/requester/gather.h"
#include "model/transport/requester/requester.h"
#include "model/transport/requester/scatter.h"

namespace bench {

using namespace rnic;

inline constexpr std::uint16_t owning_function = 9;  // function of the QP
inline constexpr std::uint32_t own_uar = scheduler::uar_of(owning_function, 0x80);
inline constexpr std::uint32_t qpn = 0x48, remote_qpn = 0x1234, good_key = 0x12300, bad_key = 0x66600;
inline constexpr std::uint32_t first_psn = 0xfffffe;  // of those whose numbers wrap
inline constexpr std::uint64_t ring = 0x10000, data = 0x20000, qpc_at = 0x200000;

/// Who decides at each edge what the world does, and sees what reaches it: with one, the world is ticked at each edge.
class neighbour_if {
 public:
  virtual ~neighbour_if() = default;
  /// First in each tick of the world.
  virtual void step() = 0;
  /// Nothing is taken from this port, or given to it, in this cycle.
  virtual bool rests(unsigned port) = 0;
  /// A request for memory or an address was taken.
  virtual void asked(unsigned port, std::uint64_t address, std::uint32_t bytes) = 0;
  virtual void sent(const payload::frame& f) = 0;
};

/// Everything around the requester in one block.
struct world : sim::clocked_block {
  enum place_of_contact : unsigned {
    of_descriptors,
    of_contexts,
    of_gather,
    of_scatter,
    of_addresses,
    of_gather_addresses,
    of_scatter_addresses,
    of_cqes,
    of_events,
    of_errors,
    of_tx,
    of_rx,
    of_doorbells,
    of_told
  };
  world(sim::clock_domain& domain, unsigned memory_cycles);
  struct client {
    explicit client(world& w) : request(w), response(w) {}
    sim::fifo_in<pcie::dma_request> request;
    sim::fifo_out<pcie::dma_response> response;
    std::deque<std::pair<sim::cycle_t, pcie::dma_request>> busy;
    std::uint64_t read_bytes = 0;
  };
  client descriptors{*this}, contexts{*this}, gather{*this}, scatter{*this};
  struct translation {
    explicit translation(world& w) : request(w), response(w) {}
    sim::fifo_in<icm::translate_request> request;
    sim::fifo_out<icm::translate_response> response;
  };
  translation addresses{*this}, gather_addresses{*this}, scatter_addresses{*this};
  sim::fifo_in<payload::frame_ptr> tx{*this};
  sim::fifo_out<payload::frame_ptr> rx{*this};
  sim::fifo_in<completion::cqe_request> cqe{*this};
  sim::fifo_in<completion::event_request> event{*this};
  sim::fifo_in<transport::qp_error> error_in{*this};
  sim::fifo_out<transport::qp_error> error_out{*this};
  sim::fifo_out<transport::egress_credit> credit{*this};
  sim::fifo_out<scheduler::send_doorbell> doorbell{*this};

  std::vector<std::uint8_t> memory;
  unsigned memory_cycles;
  bool return_credits = true;
  bool translates = true;      ///< answers the requests for addresses; what the test does itself needs a wake_next()
  bool keep_frames = true;     ///< in `sent`
  bool samples_early = false;  ///< what is read is what was there when the request came, not when it is answered
  std::size_t taken = 0;
  std::vector<std::pair<sim::cycle_t, payload::frame_ptr>> sent;
  std::vector<std::pair<sim::cycle_t, completion::cqe_request>> cqes;
  std::vector<std::uint32_t> errors;
  std::deque<payload::frame_ptr> to_rx;
  std::deque<scheduler::send_doorbell> to_ring;
  std::deque<std::uint32_t> to_error;
  unsigned reads = 0;
  neighbour_if* neighbour = nullptr;

 private:
  void tick() override;
  bool rests(unsigned port) const { return neighbour != nullptr && neighbour->rests(port); }
  void serve(client& c, unsigned port);
  void translate(translation& t, unsigned port);
};

struct setup {
  transport::requester_config requester;
  sim::timebase::options time;
  unsigned memory_cycles = 100;
  std::uint32_t core_khz = 500'000;
  icm::service type = icm::service::rc;
  bool vlan = false, v2 = true;
  std::uint8_t mtu_code = 3, retry_limit = 7, rnr_limit = 7, ack_timeout = 0;
};

struct bench {
  explicit bench(const setup& s = {});

  sim::timebase base;
  sim::clock_domain core;
  sim::span_recorder spans;
  sim::statistics stats;
  payload::frame_pool frames;
  icm::icm_map map;
  std::array<gid::gid_table, 2> gids;
  std::array<gid::gid_source, 2> sources{gid::gid_source({}, gids[0]), gid::gid_source({}, gids[1])};
  scheduler::scheduler sched;
  transport::requester_memories memories;
  transport::requester dut;
  transport::descriptor_fetch descriptor_fetch;
  transport::gather gather;
  transport::scatter scatter;
  transport::ack_timers ack_timers;
  transport::read_engine read_engine;
  world w;
  sim::fifo<scheduler::send_doorbell> ring_q{"ring", core, 16};
  sim::fifo<scheduler::grant> grants{"grants", core, 8};
  sim::fifo<scheduler::report> reports{"reports", core, 8};
  sim::fifo<payload::frame_ptr> tx{"tx", core, 64}, rx{"rx", core, 4};
  sim::fifo<pcie::dma_request> dma_q{"dma_q", core, 8}, ctx_q{"ctx_q", core, 8}, gather_q{"gather_q", core, 8},
      scatter_q{"scatter_q", core, 8};
  sim::fifo<pcie::dma_response> dma_r{"dma_r", core, 8}, ctx_r{"ctx_r", core, 8}, gather_r{"gather_r", core, 8},
      scatter_r{"scatter_r", core, 8};
  sim::fifo<icm::translate_request> tr_q{"tr_q", core, 4}, gather_tr_q{"gather_tr_q", core, 4},
      scatter_tr_q{"scatter_tr_q", core, 4};
  sim::fifo<icm::translate_response> tr_r{"tr_r", core, 4}, gather_tr_r{"gather_tr_r", core, 4},
      scatter_tr_r{"scatter_tr_r", core, 4};
  sim::fifo<transport::descriptor_job> fetches{"fetches", core, 2};
  sim::fifo<transport::descriptor_result> fetched{"fetched", core, 16};
  sim::fifo<transport::gather_job> packets{"packets", core, 2};
  sim::fifo<transport::gather_piece> pieces{"pieces", core, 2 * transport::gather_job::most_pieces};
  sim::fifo<transport::gather_verdict> verdicts{"verdicts", core, 2};
  sim::fifo<transport::gather_left> left{"left", core, 64};
  sim::fifo<transport::gather_event> gather_events{"gather_events", core, 2};
  sim::fifo<transport::gather_address> known{"known", core, 8};
  sim::fifo<transport::read_engine_request> read_requests{"read_requests", core, 2};
  sim::fifo<transport::read_engine_grant> read_grants{"read_grants", core, 2};
  sim::fifo<transport::read_engine_request> response_requests{"response_requests", core, 2};
  sim::fifo<transport::read_engine_grant> response_grants{"response_grants", core, 2};
  sim::fifo<transport::scatter_job> scatter_jobs{"scatter_jobs", core, 2};
  sim::fifo<transport::scatter_done> scatter_reports{"scatter_reports", core, 2};
  sim::fifo<transport::timer_command> timer_commands{"timer_commands", core, 2};
  sim::fifo<transport::timer_expiration> expirations{"expirations", core, 2};
  sim::fifo<completion::cqe_request> cqe{"cqe", core, 4};
  sim::fifo<completion::event_request> event{"event", core, 4};
  sim::fifo<transport::qp_error> error_out{"error_out", core, 4}, error_in{"error_in", core, 4};
  sim::fifo<transport::egress_credit> credit{"credit", core, 4};

  icm::requester_context context;  ///< what is written to ICM by make_qp()
  std::uint32_t posted = 0;
  static constexpr unsigned log_sq = 4;

  void make_qp(std::uint32_t number);
  icm::requester_context stored(std::uint32_t number) const;
  /// Writes a WQE of words at the next index (owner bit added) and returns its index.
  std::uint32_t post(std::vector<std::uint32_t> words);
  std::uint32_t post_send(std::uint32_t length, std::uint64_t at = data, std::uint32_t key = good_key);
  std::uint32_t post_write(std::uint32_t length, bool signalled = true);
  std::uint32_t post_read(std::uint32_t length, std::uint64_t at = data);
  void ring_doorbell(std::uint32_t uar = 0x80);
  /// An answer of the peer to queue pair `to`; `original`: of an atomic.
  void respond(wire::operation op, std::uint32_t psn, std::uint8_t syndrome,
               const std::vector<std::uint8_t>& payload = {}, std::uint32_t to = qpn, std::uint64_t original = 0);
  void ack(std::uint32_t psn) { respond(wire::operation::acknowledge, psn, 0x1f); }
  void run_ns(std::uint64_t ns);
  /// Until `count` frames have been sent; false when they are not after 20 us.
  bool run_until_sent(std::size_t count);
  /// Headers of sent frame i, read from its bytes.
  wire::packet sent(std::size_t i) const;
  std::vector<std::uint8_t> payload(std::size_t i) const;
};

}  // namespace bench
