// SPDX-License-Identifier: Apache-2.0
#include "testbenches/system/conformance/rig.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <systemc>

#include "model/abi/command_set.h"
#include "model/abi/endian.h"

namespace rnic::conformance {

namespace {

constexpr std::uint32_t player_khz = 1'000'000;
constexpr std::array<std::uint8_t, 6> peer_mac{0x02, 0x50, 0x45, 0x45, 0x52, 0x01};

std::unique_ptr<rig>& the_rig() {
  static std::unique_ptr<rig> one;
  return one;
}

hosts::node_config& the_config() {
  static hosts::node_config c = hosts::make_node_config("connectx3pro_40g");
  return c;
}

/// The simulation ends before the program does: the kernel's own statics go first otherwise.
class ending : public testing::Environment {
  void TearDown() override { rig::finish(); }
};
const testing::Environment* const registered = testing::AddGlobalTestEnvironment(new ending);

sim::timebase::options timing() {
  sim::timebase::options o;
  const char* const tick = std::getenv("RNIC_CONFORMANCE_TICK");
  o.always_tick = tick != nullptr && *tick == '1';
  return o;
}

wire::encapsulation chosen_network() {
  const char* const name = std::getenv("RNIC_CONFORMANCE_NETWORK");
  if (name == nullptr || std::strcmp(name, "roce_v2_ipv4") == 0) return wire::encapsulation::roce_v2_ipv4;
  if (std::strcmp(name, "roce_v2_ipv6") == 0) return wire::encapsulation::roce_v2_ipv6;
  if (std::strcmp(name, "roce_v1") == 0) return wire::encapsulation::roce_v1;
  throw std::invalid_argument("RNIC_CONFORMANCE_NETWORK");
}

/// Firmware's diagnostic counters by their places (adapter control plane 10.3).
struct diagnostic {
  std::uint32_t offset;
  const char* name;
};
constexpr diagnostic diagnostics[] = {
    {0x00, "diag.rq_num_lle"},  {0x04, "diag.sq_num_lle"},  {0x08, "diag.rq_num_lqpoe"}, {0x0c, "diag.sq_num_lqpoe"},
    {0x18, "diag.rq_num_lpe"},  {0x1c, "diag.sq_num_lpe"},  {0x20, "diag.rq_num_wrfe"},  {0x24, "diag.sq_num_wrfe"},
    {0x2c, "diag.sq_num_mwbe"}, {0x34, "diag.sq_num_bre"},  {0x44, "diag.sq_num_rire"},  {0x48, "diag.rq_num_rire"},
    {0x4c, "diag.sq_num_rae"},  {0x50, "diag.rq_num_rae"},  {0x54, "diag.sq_num_roe"},   {0x5c, "diag.sq_num_tree"},
    {0x64, "diag.sq_num_rree"}, {0x68, "diag.rq_num_rnr"},  {0x6c, "diag.sq_num_rnr"},   {0x100, "diag.rq_num_oos"},
    {0x104, "diag.sq_num_oos"}, {0x130, "diag.rq_num_dup"}, {0x134, "diag.sq_num_to"},   {0x118, "diag.rq_num_udsdprd"},
};

/// Counters of what was refused, dropped, repeated or lost, beside the diagnostics, which count the errors. Traffic,
/// waiting and the caches' hits are none of them.
bool tells_of_faults(const std::string& name) {
  static const char* const parts[] = {
      // wire
      "drop_fcs", "drop_runt", "drop_too_long", "drop_overflow", "drop_control", "drop_link_down", "drop_tx_link_down",
      "link_losses", "parser1.drop.", "parser2.drop.", "drop.bad_icrc", "steering.drop.",
      // responder
      "responder.drop.", "responder.naks", "responder.rnr", "responder.duplicates", "responder.out_of_sequence",
      "responder.error.", "responder.np_cnp_lost", "cnp_sender.np_cnp_lost",
      // requester
      "requester.retransmissions", "requester.timeouts", "requester.naks", "requester.rnr_naks", "scheduler.wrong_uar",
      "requester.no_context", "requester.bad_grant", "requester.stray_responses", "requester.duplicate_responses",
      "requester.ghost_responses", "requester.not_a_response", "requester.foreign_responses",
      "requester.dropped_halted", "requester.ethernet_blocked", "requester.np_cnp_lost",
      // software's side
      "scheduler.dropped_descriptors", "scheduler.bad_qpn", "doorbell.bad_", "blueflame_partial", "blueflame_disabled",
      "blueflame_bad", "command.overrun", "command.bad_access", "registers.unclaimed",
      // memory and completions
      "failed_fills", "lost_writes", "cqe_invalid", "cq_overflow", "eqe_invalid", "eq_overflow", "event_unmapped",
      "event_lost", "bad_doorbell", "completion.discarded",
      // PCI Express
      "dma.refused_requests", "dma.unexpected_completions", "dma.completion_timeouts", "dma.failed_reads",
      "unsupported_", "poisoned", "receiver_overflows", "malformed", "root_complex.unexpected_completions",
      "root_complex.completion_timeouts", "refused_operations"};
  for (const char* part : parts)
    if (name.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

/// The thread in which the rows run.
struct rig::program {
  sc_core::sc_event go{"go"}, frame{"frame"};
  std::function<void()> body;
  std::exception_ptr failure;
  bool done = false;
};

rig& rig::instance() {
  if (!the_rig()) the_rig().reset(new rig);
  return *the_rig();
}

void rig::finish() { the_rig().reset(); }

void rig::configure(const std::function<void(hosts::node_config&)>& change) { change(the_config()); }

rig::rig() : base_(timing()), program_(std::make_unique<program>()), network_(chosen_network()) {
  const adapter::environment env{base_, spans_, statistics_, frames_, packets_};
  node_ = std::make_unique<hosts::node>("held", env, the_config(), 0);
  clock_ = std::make_unique<sim::clock_domain>("player_clock", base_, sim::clock_period::from_khz(player_khz));
  player_ = std::make_unique<bench::cable_player>("player", *clock_, frames_, spans_, 40'000);
  player_->set_listener(this);
  cable_ = std::make_unique<fabric::cable>(node_->connector(), *player_);
  if (const char* const folder = std::getenv("RNIC_CONFORMANCE_OUT")) {
    folder_ = folder;
    capture_ = std::make_unique<tlm::capture_writer>(folder_ + "/frames.pcap", tlm::capture_writer::config{true});
    cable_->add_observer(*capture_);
  }
  at_.device = &node_->device();
  at_.bus = &node_->bus();
  peer_.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
  if (options().ip == 6) peer_.gid = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  peer_.mac = peer_mac;
  sc_core::sc_spawn(
      [this] {
        for (;;) {
          try {
            program_->body();
          } catch (...) {
            program_->failure = std::current_exception();
          }
          program_->done = true;
          sc_core::sc_pause();
          sc_core::wait(program_->go);
        }
      },
      "program");
  run([this] { open(); });
}

rig::~rig() {
  if (capture_) capture_->close();
  if (folder_.empty()) return;
  std::ofstream out(folder_ + "/rows.json");
  for (const std::string& line : notes_) out << line << '\n';
}

void rig::open() {
  hosts::require(node_->start(), "open device");
  hosts::set_address(at_, options(), 1);
  events();  // the port came up
}

hosts::connection_options rig::options() const {
  hosts::connection_options o;
  o.mtu = 256;
  o.ip = network_ == wire::encapsulation::roce_v2_ipv6 ? 6 : 4;
  if (network_ == wire::encapsulation::roce_v1) o.roce = host_driver::roce_types::v1;
  o.send_depth = 16;
  o.receive_depth = 16;
  o.send_sges = 4;
  o.receive_sges = 4;
  o.ack_timeout = 0;  // no timer: rows that are about it say so
  o.rnr_timer = 1;    // 10 us
  return o;
}

void rig::run(const std::function<void()>& body) {
  program_->body = body;
  program_->done = false;
  program_->go.notify(sc_core::SC_ZERO_TIME);
  base_.run_ahead_until(~sim::time_ps{0});
  sc_core::sc_start();
  if (program_->failure) std::rethrow_exception(std::exchange(program_->failure, nullptr));
  if (!program_->done) throw std::runtime_error("the simulation came to rest before the row had ended");
}

void rig::inject(const std::vector<std::uint8_t>& frame) { player_->send(0, frame, false); }

void rig::received(const payload::frame& f, sim::time_ps) {
  heard_frame h;
  if (wire::decode(f.data(), f.length, h.packet) != wire::decode_error::none) return;
  const std::uint8_t* const from = f.data() + h.packet.payload_offset;
  h.payload.assign(from, from + h.packet.payload_length);
  heard_.push_back(std::move(h));
  base_.notify(program_->frame, base_.now_ps());
}

bool rig::hear(heard_frame& out, std::uint64_t timeout_ps) {
  const std::uint64_t until = base_.now_ps() + timeout_ps;
  while (heard_.empty() && base_.now_ps() < until)
    sc_core::wait(sc_core::sc_time::from_value(until - base_.now_ps()), program_->frame);
  if (heard_.empty()) return false;
  out = std::move(heard_.front());
  heard_.pop_front();
  return true;
}

fault_counts rig::faults() {
  static const std::string prefix = "held.adapter.";
  fault_counts all;
  for (const auto& [name, value] : statistics_.all())
    if (tells_of_faults(name)) all[name.substr(prefix.size())] = *value;
  host_driver::command_channel::mailbox box(dev().commands());
  hosts::require(dev().commands().read(box, abi::opcode::diag_rprt, 0, 2), "diag_rprt");
  for (const diagnostic& d : diagnostics) all[d.name] = abi::load32(box.data(), d.offset);
  return all;
}

std::vector<ibv_async_event> rig::events() {
  std::vector<ibv_async_event> all;
  for (ibv_async_event e{}; dev().get_async_event(&e, 1 * us);) all.push_back(e);
  return all;
}

void rig::note(const std::string& json) {
  if (!folder_.empty()) notes_.push_back(json);
}

}  // namespace rnic::conformance
