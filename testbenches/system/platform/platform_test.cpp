// SPDX-License-Identifier: Apache-2.0
// Any TLM-2.0 platform takes the adapter: two loosely timed ones bring theirs up and send each other messages.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "firmware/bus/network_card.h"
#include "host_driver/device.h"
#include "host_driver/hosts/connection.h"
#include "testbenches/system/platform/lt_platform.h"
#include "tlm/platform_bridge.h"

namespace rnic::platform_test {
namespace {

/// What adapters of one simulation share.
struct common {
  sim::timebase base;
  sim::span_recorder spans;
  sim::statistics statistics;
  payload::frame_pool frames;
  payload::tlp_pool packets;
  adapter::environment env{base, spans, statistics, frames, packets};
};

// What the README shows: a computer of the user's own, and an adapter in its slot.
struct computer : sc_core::sc_module {
  computer(const sc_core::sc_module_name& name, common& c, const tlm::platform_bridge::config& bridging,
           unsigned number, const host_driver::config& driver = host_driver::config::small())
      : sc_core::sc_module(name),
        platform("platform"),
        bridge("bridge", c.base, c.packets, c.spans, c.statistics, bridging),
        card("card", c.env, adapter::profile("connectx3pro_40g"), number),
        device(platform.processor, driver) {
    platform.bus.to_config.bind(bridge.config_space);  // ECAM
    platform.bus.to_window.bind(bridge.memory);        // the window of the BARs
    bridge.dma.bind(platform.bus.from_device);         // DMA and MSI-X
    bridge.slot().bind(card.pcie_socket());
  }
  lt_platform platform;
  tlm::platform_bridge bridge;
  firmware::network_card card;
  host_driver::device device;
};

class Platform : public ::testing::TestWithParam<bool> {
 protected:
  void build() {
    tlm::platform_bridge::config bridging;
    bridging.non_blocking = GetParam();
    a = std::make_unique<computer>("a", shared, bridging, 1);
    b = std::make_unique<computer>("b", shared, bridging, 2);
    a->card.port_socket(0).bind(b->card.port_socket(0));  // a cable; the second ports have none
  }
  void run(const std::function<void()>& program) {
    std::exception_ptr failure;
    bool ended = false;
    sc_core::sc_spawn([&] {
      try {
        program();
      } catch (...) {
        failure = std::current_exception();
      }
      ended = true;
      sc_core::sc_pause();
    });
    shared.base.run_ahead_until(~sim::time_ps{0});
    sc_core::sc_start();
    if (failure) std::rethrow_exception(failure);
    EXPECT_TRUE(ended) << "the simulation came to rest";
  }
  void open() {
    for (computer* const c : {a.get(), b.get()}) {
      c->platform.processor.enumerate();
      hosts::require(c->device.open(), "open device");
    }
  }
  common shared;
  std::unique_ptr<computer> a, b;
};

/// A connected queue pair of each, and buffers.
struct ends {
  ends(computer& first, computer& second, std::size_t bytes) {
    hosts::connection_options options;
    computer* const both[] = {&first, &second};
    for (unsigned i = 0; i < 2; ++i) {
      at[i].device = &both[i]->device;
      at[i].bus = &both[i]->platform.processor;
      hosts::set_address(at[i], options, i + 1);
      cq[i] = at[i].device->create_cq(64);
      qp[i] = hosts::make_qp(at[i], options, *cq[i], *cq[i]);
      memory[i] = hosts::make_buffer(at[i], bytes);
    }
    hosts::connect(at[0], options, *qp[0], at[1], qp[1]->qp_num, 100, 200);
    hosts::connect(at[1], options, *qp[1], at[0], qp[0]->qp_num, 200, 100);
  }
  void post(ibv_wr_opcode verb, std::uint32_t bytes) {
    ibv_sge from{memory[0].address(), bytes, memory[0].region->lkey};
    ibv_sge to{memory[1].address(), bytes, memory[1].region->lkey};
    if (verb == IBV_WR_SEND) {
      ibv_recv_wr receive{};
      ibv_recv_wr* bad = nullptr;
      receive.sg_list = &to;
      receive.num_sge = 1;
      hosts::require(at[1].device->post_recv(qp[1], &receive, &bad), "post_recv");
    }
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    wr.opcode = verb;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = to.addr;
    wr.wr.rdma.rkey = memory[1].region->rkey;
    hosts::require(at[0].device->post_send(qp[0], &wr, &bad), "post_send");
  }
  ibv_wc_status completion(unsigned end) {
    ibv_wc wc{};
    return at[end].device->wait_cq(cq[end], 1, &wc, 1'000'000'000) == 1 ? wc.status : IBV_WC_GENERAL_ERR;
  }
  hosts::endpoint at[2];
  host_driver::completion_queue* cq[2];
  host_driver::queue_pair* qp[2];
  hosts::buffer memory[2];
};

TEST_P(Platform, SendsMessagesToAnother) {
  build();
  run([&] {
    open();
    constexpr std::uint32_t bytes = 20'000;
    ends e(*a, *b, bytes);
    std::uint8_t seed = 1;
    for (const ibv_wr_opcode verb : {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ}) {
      const unsigned source = verb == IBV_WR_RDMA_READ ? 1 : 0;
      for (std::uint32_t i = 0; i < bytes; ++i)
        e.memory[source].at()[i] = seed = static_cast<std::uint8_t>(seed * 5 + 3 + i % 7);
      std::memset(e.memory[1 - source].at(), 0, bytes);
      e.post(verb, bytes);
      EXPECT_EQ(e.completion(0), IBV_WC_SUCCESS) << verb;
      if (verb == IBV_WR_SEND) {
        EXPECT_EQ(e.completion(1), IBV_WC_SUCCESS);
      }
      sc_core::wait(sc_core::sc_time(20, sc_core::SC_US));  // acknowledged is not yet visible
      EXPECT_EQ(std::memcmp(e.memory[0].at(), e.memory[1].at(), bytes), 0) << verb;
    }
  });
  EXPECT_GT(a->platform.memory.reads, 100U);
  EXPECT_GT(b->platform.memory.writes, 20'000U / 256);
  EXPECT_GT(a->platform.interrupts.messages, 0U);  // commands of the driver end with one
  for (const char* const count : {"a.bridge.failed_reads", "a.bridge.failed_writes", "b.bridge.failed_reads",
                                  "b.bridge.failed_writes", "a.card.adapter.requester.retransmissions"})
    EXPECT_EQ(shared.statistics.value(count), 0U) << count;
}

/// Interrupts as wires: nothing of them comes over the bus, and the driver does not notice.
TEST_P(Platform, InterruptsMayBeWires) {
  constexpr unsigned vectors = 3;
  tlm::platform_bridge::config bridging;
  bridging.non_blocking = GetParam();
  bridging.wires = vectors;
  bridging.wire_address = map::interrupts;
  a = std::make_unique<computer>("a", shared, bridging, 1);
  b = std::make_unique<computer>("b", shared, bridging, 2);
  a->card.port_socket(0).bind(b->card.port_socket(0));
  sc_core::sc_vector<sc_core::sc_signal<bool>> wires("wires", 2 * vectors);
  std::vector<sim::time_ps> lengths;
  unsigned pulses = 0;
  for (unsigned i = 0; i < 2 * vectors; ++i) {
    computer& c = i < vectors ? *a : *b;
    c.bridge.wires[i % vectors].bind(wires[i]);
    sc_core::sc_spawn([&, i] {
      for (;;) {
        sc_core::wait(wires[i].posedge_event());
        const std::uint64_t rose = sc_core::sc_time_stamp().value();
        ++pulses;
        (i < vectors ? *a : *b).platform.interrupts.wire(i % vectors);
        sc_core::wait(wires[i].negedge_event());
        lengths.push_back(sc_core::sc_time_stamp().value() - rose);
      }
    });
  }
  run([&] {
    open();
    ends e(*a, *b, 4096);
    e.post(IBV_WR_RDMA_WRITE, 4096);
    EXPECT_EQ(e.completion(0), IBV_WC_SUCCESS);
  });
  EXPECT_EQ(a->platform.interrupts.messages + b->platform.interrupts.messages, 0U);
  EXPECT_GT(pulses, 2U);
  EXPECT_EQ(shared.statistics.value("a.bridge.pulses") + shared.statistics.value("b.bridge.pulses"), pulses);
  ASSERT_FALSE(lengths.empty());
  EXPECT_EQ(lengths.front(), bridging.wire_pulse_ps);
}

/// A driver without MSI-X: the first wire is INTA, up until the driver takes it back.
TEST_P(Platform, TheLineMayBeAWire) {
  tlm::platform_bridge::config bridging;
  bridging.non_blocking = GetParam();
  bridging.wires = 1;
  bridging.wire_address = map::interrupts;
  host_driver::config driver = host_driver::config::small();
  driver.use_msix = false;
  a = std::make_unique<computer>("a", shared, bridging, 1, driver);
  b = std::make_unique<computer>("b", shared, bridging, 2, driver);
  a->card.port_socket(0).bind(b->card.port_socket(0));
  sc_core::sc_vector<sc_core::sc_signal<bool>> wires("wires", 2);
  unsigned rises = 0, falls = 0;
  for (unsigned i = 0; i < 2; ++i) {
    computer& c = i == 0 ? *a : *b;
    c.bridge.wires[0].bind(wires[i]);
    sc_core::sc_spawn([&, i] {
      for (;;) {
        sc_core::wait(wires[i].posedge_event());
        ++rises;
        (i == 0 ? *a : *b).platform.interrupts.wire(0);
        sc_core::wait(wires[i].negedge_event());
        ++falls;
      }
    });
  }
  run([&] {
    open();
    ends e(*a, *b, 4096);
    e.post(IBV_WR_RDMA_WRITE, 4096);
    EXPECT_EQ(e.completion(0), IBV_WC_SUCCESS);
    a->platform.processor.spend_ps(10'000'000);
  });
  EXPECT_GT(rises, 20U) << "one for each command";
  EXPECT_EQ(falls, rises);
  EXPECT_EQ(a->platform.interrupts.messages + b->platform.interrupts.messages, 0U);
}

/// What the adapter has written is in memory when a register says that it is: the driver polls a register for the end
/// of a command, and reads the command's answer from memory.
TEST_P(Platform, SlowMemoryIsWrittenBeforeARegisterSaysSo) {
  build();
  for (computer* const c : {a.get(), b.get()}) c->platform.memory.write_time = sc_core::sc_time(3, sc_core::SC_US);
  run([&] {
    open();
    ends e(*a, *b, 4096);
    e.post(IBV_WR_RDMA_WRITE, 4096);
    EXPECT_EQ(e.completion(0), IBV_WC_SUCCESS);
  });
  EXPECT_EQ(shared.statistics.value("a.bridge.failed_writes"), 0U);
}

TEST_P(Platform, MemoryThatIsNotThereEndsAsOnABus) {
  build();
  run([&] {
    open();
    ends e(*a, *b, 4096);
    // Behind the driver's back the memory controller loses what the adapter needs.
    a->platform.memory.bytes.resize(e.memory[0].memory.bus_address - map::memory);
    e.post(IBV_WR_RDMA_WRITE, 4096);
    EXPECT_NE(e.completion(0), IBV_WC_SUCCESS);
  });
  EXPECT_GT(shared.statistics.value("a.bridge.failed_reads"), 0U);
}

INSTANTIATE_TEST_SUITE_P(Blocking, Platform, ::testing::Values(false), [](const auto&) { return "b_transport"; });
INSTANTIATE_TEST_SUITE_P(NonBlocking, Platform, ::testing::Values(true), [](const auto&) { return "nb_transport"; });

// ---------------------------------------------------------------- the sockets by themselves

/// One adapter, and sockets of the SystemC distribution at those of its bridge.
struct lonely : sc_core::sc_module {
  explicit lonely(const sc_core::sc_module_name& name, tlm::platform_bridge::config bridging = {})
      : sc_core::sc_module(name),
        config("config"),
        memory("memory"),
        bus("bus"),
        bridge("bridge", shared.base, shared.packets, shared.spans, shared.statistics, bridging),
        card("card", shared.env, adapter::profile("connectx3pro_40g"), 1),
        peer("peer", shared.env, adapter::profile("connectx3pro_40g"), 2),
        peer_bridge("peer_bridge", shared.base, shared.packets, shared.spans, shared.statistics, {}) {
    config.bind(bridge.config_space);
    memory.bind(bridge.memory);
    unused_config.bind(peer_bridge.config_space);
    unused_memory.bind(peer_bridge.memory);
    peer_bridge.dma.bind(unused_bus);
    bridge.dma.bind(bus);
    bus.register_b_transport(this, &lonely::dma);
    unused_bus.register_b_transport(this, &lonely::dma);
    memory.register_nb_transport_bw(this, &lonely::backward);
    bridge.slot().bind(card.pcie_socket());
    peer_bridge.slot().bind(peer.pcie_socket());
    card.port_socket(0).bind(peer.port_socket(0));
  }
  void dma(::tlm::tlm_generic_payload& p, sc_core::sc_time&) {
    if (p.is_write()) {
      written.emplace_back(p.get_address(),
                           std::vector<std::uint8_t>(p.get_data_ptr(), p.get_data_ptr() + p.get_data_length()));
    }
    p.set_response_status(::tlm::TLM_OK_RESPONSE);
  }
  ::tlm::tlm_sync_enum backward(::tlm::tlm_generic_payload&, ::tlm::tlm_phase& phase, sc_core::sc_time& delay) {
    phases.emplace_back(phase);
    if (phase == ::tlm::BEGIN_RESP) {
      response_at = sc_core::sc_time_stamp() + delay;
      phase = ::tlm::END_RESP;
      response.notify(delay);
      return ::tlm::TLM_COMPLETED;
    }
    return ::tlm::TLM_ACCEPTED;
  }
  template <class Socket>
  ::tlm::tlm_response_status access(Socket& socket, ::tlm::tlm_command command, std::uint64_t address, void* data,
                                    unsigned bytes, const std::vector<std::uint8_t>& enables = {},
                                    unsigned streaming = ~0u) {
    ::tlm::tlm_generic_payload p;
    p.set_command(command);
    p.set_address(address);
    p.set_data_ptr(static_cast<unsigned char*>(data));
    p.set_data_length(bytes);
    p.set_streaming_width(streaming == ~0u ? bytes : streaming);
    std::vector<std::uint8_t> copy = enables;
    if (!copy.empty()) p.set_byte_enable_ptr(copy.data());
    p.set_byte_enable_length(static_cast<unsigned>(copy.size()));
    sc_core::sc_time delay(7, sc_core::SC_NS);  // a quantum that the initiator is ahead
    socket->b_transport(p, delay);
    EXPECT_EQ(delay, sc_core::SC_ZERO_TIME);
    EXPECT_FALSE(p.is_dmi_allowed());
    return p.get_response_status();
  }
  std::uint32_t config_word(std::uint64_t offset) {
    std::uint32_t word = 0;
    EXPECT_EQ(access(config, ::tlm::TLM_READ_COMMAND, offset, &word, 4), ::tlm::TLM_OK_RESPONSE);
    return word;
  }
  void set_config(std::uint64_t offset, std::uint32_t word) {
    EXPECT_EQ(access(config, ::tlm::TLM_WRITE_COMMAND, offset, &word, 4), ::tlm::TLM_OK_RESPONSE);
  }
  void enable() {
    set_config(0x10, 0x1000'0000);
    set_config(0x14, 0);
    set_config(0x18, 0x2000'0000);
    set_config(0x1c, 0);
    set_config(0x04, 6);
  }
  void run(const std::function<void()>& program) {
    bool ended = false;
    sc_core::sc_spawn([&] {
      program();
      ended = true;
      sc_core::sc_pause();
    });
    shared.base.run_ahead_until(~sim::time_ps{0});
    sc_core::sc_start();
    EXPECT_TRUE(ended);
  }

  common shared;
  tlm_utils::simple_initiator_socket<lonely, 32> config, unused_config{"unused_config"};
  tlm_utils::simple_initiator_socket<lonely, 64> memory, unused_memory{"unused_memory"};
  tlm_utils::simple_target_socket<lonely, 64> bus, unused_bus{"unused_bus"};
  tlm::platform_bridge bridge;
  firmware::network_card card, peer;
  tlm::platform_bridge peer_bridge;
  std::vector<std::pair<std::uint64_t, std::vector<std::uint8_t>>> written;
  std::vector<::tlm::tlm_phase> phases;
  sc_core::sc_event response;
  sc_core::sc_time response_at;
};

constexpr std::uint64_t msix_table = 0x1000'0000 + 0x7c000;

TEST(BridgeSockets, ConfigurationSpaceIsReadAndWritten) {
  lonely l("l");
  l.run([&] {
    EXPECT_EQ(l.config_word(0), 0x1007'15b3U);
    std::uint8_t bytes[4] = {};
    EXPECT_EQ(l.access(l.config, ::tlm::TLM_READ_COMMAND, 1, bytes, 3), ::tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(bytes[0], 0x15);
    EXPECT_EQ(bytes[1], 0x07);
    EXPECT_EQ(bytes[2], 0x10);
    l.enable();
    EXPECT_EQ(l.config_word(0x10) & ~15u, 0x1000'0000U);
    EXPECT_EQ(l.config_word(4) & 0xffff, 6U);
    // A burst over dwords, with one byte of the second left as it is.
    const std::uint64_t bars = 0x10;
    std::uint8_t two[8] = {0, 0, 0x40, 0x30, 0xff, 0, 0, 0};
    EXPECT_EQ(l.access(l.config, ::tlm::TLM_WRITE_COMMAND, bars, two, 8, {0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff}),
              ::tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(l.config_word(0x10) & ~15u, 0x3040'0000U);
    EXPECT_EQ(l.config_word(0x14), 0U);
    std::uint32_t absent = 0;
    EXPECT_EQ(l.access(l.config, ::tlm::TLM_READ_COMMAND, 5 << 12, &absent, 4), ::tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(absent, 0xffff'ffffU);
    EXPECT_EQ(l.access(l.config, ::tlm::TLM_READ_COMMAND, 1u << 20, &absent, 4), ::tlm::TLM_ADDRESS_ERROR_RESPONSE);
  });
}

TEST(BridgeSockets, ErrorsAreThoseOfTheStandard) {
  lonely l("l");
  l.run([&] {
    std::uint32_t word = 0x1234;
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_READ_COMMAND, 0x1000'0000, &word, 4), ::tlm::TLM_ADDRESS_ERROR_RESPONSE)
        << "memory space is not enabled";
    l.enable();
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_READ_COMMAND, 0x5000'0000, &word, 4), ::tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(word, 0xffff'ffffU);
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_READ_COMMAND, msix_table, &word, 0), ::tlm::TLM_BURST_ERROR_RESPONSE);
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_READ_COMMAND, msix_table, nullptr, 4), ::tlm::TLM_BURST_ERROR_RESPONSE);
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_READ_COMMAND, msix_table, &word, 4, {}, 2),
              ::tlm::TLM_BURST_ERROR_RESPONSE);
    word = 7;
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_IGNORE_COMMAND, msix_table, &word, 4), ::tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(word, 7U);
    ::tlm::tlm_generic_payload p;
    p.set_command(::tlm::TLM_READ_COMMAND);
    p.set_address(msix_table);
    p.set_data_ptr(reinterpret_cast<unsigned char*>(&word));
    p.set_data_length(4);
    p.set_streaming_width(4);
    std::uint8_t enable = 0xff;
    p.set_byte_enable_ptr(&enable);
    p.set_byte_enable_length(0);
    sc_core::sc_time delay;
    l.memory->b_transport(p, delay);
    EXPECT_EQ(p.get_response_status(), ::tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    ::tlm::tlm_dmi dmi;
    EXPECT_FALSE(l.memory->get_direct_mem_ptr(p, dmi));
    EXPECT_FALSE(l.config->get_direct_mem_ptr(p, dmi));
  });
}

TEST(BridgeSockets, RegistersAreReadAndWrittenInAnyLength) {
  lonely l("l");
  l.run([&] {
    l.enable();
    // The MSI-X table: 16 bytes an entry, of which each may be written. 80 bytes: two lines.
    std::vector<std::uint8_t> entries(80), back(80);
    for (unsigned i = 0; i < entries.size(); ++i)
      entries[i] = i % 16 < 12 ? static_cast<std::uint8_t>(3 * i & 0xfc) : i % 16 == 12 ? 1 : 0;
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_WRITE_COMMAND, msix_table, entries.data(), 80), ::tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_READ_COMMAND, msix_table, back.data(), 80), ::tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(back, entries);
    std::uint32_t half = 0xaabb'ccdd;
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_WRITE_COMMAND, msix_table + 8, &half, 4, {0xff, 0, 0, 0xff}),
              ::tlm::TLM_OK_RESPONSE);
    std::uint32_t word = 0;
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_READ_COMMAND, msix_table + 8, &word, 4), ::tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(word, 0xaa00'00ddU |
                        (static_cast<std::uint32_t>(entries[10]) << 16 | static_cast<std::uint32_t>(entries[9]) << 8));
    std::uint32_t sparse = 0x5555'5555;
    EXPECT_EQ(l.access(l.memory, ::tlm::TLM_READ_COMMAND, msix_table + 8, &sparse, 4, {0, 0xff}),
              ::tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(sparse, (word & 0xff00'ff00U) | 0x0055'0055U);
  });
}

TEST(BridgeSockets, DebugTransportSeesWithoutTime) {
  lonely l("l");
  l.run([&] {
    l.enable();
    std::uint32_t entry[4] = {0xfee0'0000, 0, 0x77, 1};
    l.access(l.memory, ::tlm::TLM_WRITE_COMMAND, msix_table, entry, 16);
    sc_core::wait(sc_core::sc_time(5, sc_core::SC_US));
    const std::uint64_t reads = l.shared.statistics.value("l.card.adapter.pcie.config_reads");
    const sc_core::sc_time before = sc_core::sc_time_stamp();
    std::uint32_t word[4] = {};
    ::tlm::tlm_generic_payload p;
    p.set_command(::tlm::TLM_READ_COMMAND);
    p.set_address(0);
    p.set_data_ptr(reinterpret_cast<unsigned char*>(word));
    p.set_data_length(4);
    p.set_streaming_width(4);
    EXPECT_EQ(l.config->transport_dbg(p), 4U);
    EXPECT_EQ(word[0], 0x1007'15b3U);
    p.set_address(msix_table);
    p.set_data_length(16);
    EXPECT_EQ(l.memory->transport_dbg(p), 16U);
    EXPECT_EQ(std::memcmp(word, entry, 16), 0);
    p.set_data_length(4);
    p.set_address(0x1008'0680);  // the command register: reading it may be an event
    EXPECT_EQ(l.memory->transport_dbg(p), 0U);
    p.set_address(0x7000'0000);
    EXPECT_EQ(l.memory->transport_dbg(p), 0U);
    p.set_address(0);
    p.set_command(::tlm::TLM_WRITE_COMMAND);
    EXPECT_EQ(l.config->transport_dbg(p), 0U);
    EXPECT_EQ(sc_core::sc_time_stamp(), before);
    EXPECT_EQ(l.shared.statistics.value("l.card.adapter.pcie.config_reads"), reads);
  });
}

/// A payload with a memory manager, as nb_transport wants it.
struct managed : ::tlm::tlm_generic_payload, ::tlm::tlm_mm_interface {
  managed() { set_mm(this); }
  void free(::tlm::tlm_generic_payload*) override { freed = true; }
  bool freed = false;
};

TEST(BridgeSockets, RegistersThroughFourPhases) {
  lonely l("l");
  l.run([&] {
    l.enable();
    std::uint32_t word = 0x1234'5678;
    for (const ::tlm::tlm_command command : {::tlm::TLM_WRITE_COMMAND, ::tlm::TLM_READ_COMMAND}) {
      managed p;
      p.acquire();
      p.set_command(command);
      p.set_address(msix_table + 8);
      p.set_data_ptr(reinterpret_cast<unsigned char*>(&word));
      p.set_data_length(4);
      p.set_streaming_width(4);
      l.phases.clear();
      ::tlm::tlm_phase phase = ::tlm::BEGIN_REQ;
      sc_core::sc_time delay;
      const sc_core::sc_time begin = sc_core::sc_time_stamp();
      const ::tlm::tlm_sync_enum result = l.memory->nb_transport_fw(p, phase, delay);
      ASSERT_NE(result, ::tlm::TLM_COMPLETED);
      sc_core::wait(l.response);
      EXPECT_EQ(p.get_response_status(), ::tlm::TLM_OK_RESPONSE);
      ASSERT_FALSE(l.phases.empty());
      EXPECT_EQ(l.phases.back(), ::tlm::BEGIN_RESP);
      if (command == ::tlm::TLM_READ_COMMAND) {
        EXPECT_EQ(word, 0x1234'5678U);
        EXPECT_GT(l.response_at - begin, sc_core::sc_time(200, sc_core::SC_NS)) << "over the link and back";
      } else {
        word = 0;
      }
      sc_core::wait(sc_core::sc_time(1, sc_core::SC_US));
      p.release();
      EXPECT_TRUE(p.freed);
    }
  });
}

}  // namespace
}  // namespace rnic::platform_test
