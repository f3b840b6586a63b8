// SPDX-License-Identifier: Apache-2.0
// The slot of a TLM-2.0 platform: generic payloads on one side, an adapter's PCIe socket on the other.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "model/host/host_memory.h"
#include "model/host/processor_port.h"
#include "model/host/root_complex.h"
#include "model/host/root_complex_socket.h"
#include "model/payload/tlp.h"
#include "model/sim/clock_domain.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"
#include "tlm/payload_sender.h"

namespace rnic::tlm {

/// Root port with the sockets that a platform has. Bind slot() to adapter::pcie_socket().
///
/// `config` (target): configuration space as ECAM has it, address = function << 12 | offset. `memory` (target): what
/// the platform decodes as the window of the adapter's BARs; the address is the one in the BAR, less
/// config::memory_base. `dma` (initiator): what the adapter reads and writes, MSI-X messages among it. `wires`: one
/// pulse for each message to wire_address + 4 * n, which then does not go to `dma`; they must be bound.
///
/// The targets take b_transport and nb_transport (base protocol), any length and byte enables; a transaction becomes
/// packets of a dword (config) or of up to 64 bytes in a line (memory), and takes the time that they take. Writes to
/// `memory` are posted: the call returns when all packets are in the store buffer. Timing annotation is waited for.
/// DMI is refused. transport_dbg reads configuration space and the MSI-X table, of anything else 0 bytes.
///
/// Responses: TLM_ADDRESS_ERROR_RESPONSE for a read that the adapter does not support (data all ones) and beyond
/// configuration space, TLM_GENERIC_ERROR_RESPONSE for one that it aborted or never answered,
/// TLM_BURST_ERROR_RESPONSE without data or when the streaming width is less than the length,
/// TLM_BYTE_ENABLE_ERROR_RESPONSE for byte enables without length. TLM_IGNORE_COMMAND does nothing, and is well.
///
/// `dma` uses b_transport, or nb_transport with four phases (config::non_blocking). The device's packets keep PCIe's
/// order: writes one by one, a read only when all writes before it were answered, up to reads_under_way reads side by
/// side. A read through a target returns when the writes of the adapter were answered that had come before its answer
/// came to the processor, so nobody finds a register changed and memory not. The adapter's credits come back when the
/// platform has answered. Answers other than TLM_OK_RESPONSE become an unsupported request (address error) or a
/// completer abort; of a write they are counted.
class platform_bridge : public sc_core::sc_module,
                        private host::device_traffic_if,
                        private host::processor_port::reader,
                        private host::processor_port::space_waiter {
 public:
  struct config {
    host::root_complex_config root;  ///< link, credits, latencies between processor and link
    std::uint32_t uncore_khz = 1'000'000;
    std::uint64_t memory_base = 0;
    bool non_blocking = false;
    unsigned reads_under_way = 8;              ///< 1 to 64
    unsigned wires = 0;                        ///< 0: all messages go to `dma`
    std::uint64_t wire_address = 0xfee0'0000;  ///< of wire 0
    sim::time_ps wire_pulse_ps = 10'000;       ///< at least 1
  };

  platform_bridge(const sc_core::sc_module_name& name, sim::timebase& base, payload::tlp_pool& packets,
                  sim::span_recorder& spans, sim::statistics& statistics, const config& cfg);
  ~platform_bridge() override;

  tlm_utils::simple_target_socket<platform_bridge, 32> config_space;
  tlm_utils::simple_target_socket<platform_bridge, 64> memory;
  tlm_utils::simple_initiator_socket<platform_bridge, 64> dma;
  sc_core::sc_vector<sc_core::sc_out<bool>> wires;
  payload::pcie_initiator_socket& slot() { return slot_.socket; }

 private:
  using generic_payload = ::tlm::tlm_generic_payload;
  enum class space : std::uint8_t { config, memory };
  struct arrived {
    payload::tlp_ptr packet;
    sim::time_ps at = 0;
  };
  /// A packet that the processor's side waits for.
  struct split_read;

  void config_transport(generic_payload& p, sc_core::sc_time& delay) { access(space::config, p, delay); }
  void memory_transport(generic_payload& p, sc_core::sc_time& delay) { access(space::memory, p, delay); }
  unsigned config_debug(generic_payload& p) { return debug(space::config, p); }
  unsigned memory_debug(generic_payload& p) { return debug(space::memory, p); }
  bool no_dmi(generic_payload&, ::tlm::tlm_dmi&) { return false; }
  ::tlm::tlm_sync_enum dma_backward(generic_payload& p, ::tlm::tlm_phase& phase, sc_core::sc_time& delay);

  void access(space where, generic_payload& p, sc_core::sc_time& delay);
  ::tlm::tlm_response_status piece(space where, generic_payload& p, unsigned at, unsigned bytes);
  unsigned debug(space where, generic_payload& p);
  template <class Start>
  void in_turn(Start start);
  void read_completed(std::uint64_t token, payload::tlp_status status, const std::uint8_t* data,
                      std::uint32_t bytes) override;
  void store_space() override { base_.notify(space_); }

  void request(payload::tlp_ptr packet, sim::time_ps arrival) override;
  void dispatch();
  void read();
  void write(const payload::tlp& packet);
  bool raise(const payload::tlp& packet);
  void move_line(bool asserted);
  void drive_wires();

  config config_;
  sim::timebase& base_;
  payload::tlp_pool& packets_;
  sim::clock_domain uncore_;
  host::host_memory no_memory_;
  host::root_complex root_;
  host::root_complex_socket slot_;
  payload_sender sender_;

  sc_core::sc_event space_;
  std::uint64_t accesses_asked_ = 0, accesses_begun_ = 0;

  std::deque<arrived> arrived_;
  sc_core::sc_event arrival_;
  struct {
    std::deque<payload::tlp_ptr> waiting;  // for whichever reader is free
    unsigned readers_free = 0;
    sc_core::sc_event read_waits, reader_free;
  } reads_;
  struct {
    std::uint64_t arrived = 0, done = 0;
    sc_core::sc_event one_done;
  } writes_;
  struct {
    std::vector<bool> rises;          // by wire: a message has come
    std::vector<sim::time_ps> falls;  // by wire: the end of its pulse, 0: low
    bool held = false;                // the first one is INTA, asserted
    sc_core::sc_event move;
  } wiring_;

  std::uint64_t failed_writes_ = 0, failed_reads_ = 0, poisoned_ = 0, pulses_ = 0;
};

}  // namespace rnic::tlm
