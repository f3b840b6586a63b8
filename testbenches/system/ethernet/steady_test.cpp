// SPDX-License-Identifier: Apache-2.0
// Plain frames in steady state allocate nothing, beside RoCE as well; sleeping and the order of blocks cannot be seen.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "testbenches/system/ethernet/station.h"
#include "testbenches/system/verbs/pair.h"

namespace {
std::uint64_t allocations = 0;

void* allocate(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace rnic::system_test {
namespace {

TEST(EthernetSteadyState, AllocatesNothing) {
  hosts::two_nodes system(station_system());
  run_stations(system, [&] {
    station a(system.a()), b(system.b());
    b.steer(frames_destination);
    std::copy(frames::tcp4_raw.begin(), frames::tcp4_raw.end(), a.send_buffer().at());
    const hosts::buffer& from = a.send_buffer();
    const hosts::buffer to = hosts::make_buffer(b.at(), 65536);
    const auto exchange = [&](unsigned frames_count) {
      for (unsigned i = 0; i < frames_count; ++i) {
        ibv_sge receive{to.address(i % 32 * 2048), 2048, to.region->lkey};
        ibv_recv_wr recv{}, *bad_recv = nullptr;
        recv.sg_list = &receive;
        recv.num_sge = 1;
        hosts::require(b.dev().post_recv(b.qp(), &recv, &bad_recv), "post_recv");
        ibv_sge sge{from.address(), static_cast<std::uint32_t>(frames::tcp4.size()), from.region->lkey};
        ibv_send_wr wr{}, *bad = nullptr;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM | host_driver::send_insert_ctag;
        hosts::require(a.dev().post_send(a.qp(), &wr, &bad), "post_send");
        ibv_wc wc{};
        if (b.dev().wait_cq(b.qp()->recv_cq, 1, &wc, 100 * station_us) != 1 || wc.status != IBV_WC_SUCCESS)
          throw std::runtime_error("frame lost");
        if (a.dev().wait_cq(a.qp()->send_cq, 1, &wc, 100 * station_us) != 1 || wc.status != IBV_WC_SUCCESS)
          throw std::runtime_error("not sent");
      }
    };
    exchange(600);
    const std::uint64_t before = allocations;
    EXPECT_GT(before, 1000u) << "the count does not count";
    exchange(600);
    EXPECT_EQ(allocations - before, 0u);
  });
}

/// Everything at once: RoCE both ways, plain frames of all kinds both ways, rings that run dry, groups, spreading.
/// Times of arrival and all counters are the result.
std::string all_at_once(const sim::timebase::options& timing) {
  hosts::two_nodes_config config = station_system();
  config.timing = timing;
  if (const char* capture = std::getenv("RNIC_CAPTURE")) config.capture = capture;
  hosts::two_nodes system(config);
  std::string result;
  run_stations(system, [&] {
    const link l = make_link(system, {});
    const hosts::buffer near = hosts::make_buffer(l.a.at, 65536), far = hosts::make_buffer(l.b.at, 65536);
    station a(system.a()), b(system.b()), c(system.b());
    b.steer(frames_destination);
    b.steer(broadcast);
    c.steer_all(IBV_FLOW_ATTR_ALL_DEFAULT);
    a.steer({2, 0, 0, 0, 0x0a, 1});
    for (station* s : {&a, &b, &c}) s->post_receives(16);
    b.dev().filter_vlans(1, {100});
    send_options csum;
    csum.flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
    const auto note = [&](const char* who) { result += who + std::to_string(system.now_ps()) + "\n"; };
    for (unsigned round = 0; round < 6; ++round) {
      for (unsigned i = 0; i < 4; ++i) post_write(l.a, near, far, 9000, i);
      for (unsigned i = 0; i < 4; ++i) post_write(l.b, far, near, 64 + i, i, 32768);
      a.send(frames::udp4_raw, csum);
      a.send(frames::tcp4_raw, csum);
      a.send(frames::udp4_ctag200);
      a.send(frames::arp);
      a.send_segmented(frames::lso4_header, frames::lso_body, 100 + 61 * round, {});
      b.send(with_destination(frames::tcp6, {2, 0, 0, 0, 0x0a, 1}));
      b.send(with_destination(frames::udp6, {1, 0, 0x5e, 0, 0, 1}));
      for (unsigned i = 0; i < 4; ++i) l.a.wait_send();
      note("writes ");
      for (unsigned i = 0; i < 4; ++i) l.b.wait_send();
      for (unsigned i = 0; i < 5; ++i) a.wait_sent();
      note("frames ");
      for (unsigned i = 0; i < 2; ++i) b.wait_sent();
      a.at().bus->spend_ps(15 * station_us);
      ibv_wc wc[64];
      for (station* s : {&a, &b, &c}) {
        const int n = s->dev().poll_cq(s->qp()->recv_cq, 64, wc);
        result += std::to_string(n) + " received\n";
        s->post_receives(static_cast<unsigned>(std::max(0, n)));
      }
      note("round ");
    }
  });
  for (const auto& [name, value] : system.statistics().all()) result += name + " " + std::to_string(*value) + "\n";
  return result;
}

/// A process has one kernel: the script compares what several runs print.
TEST(EthernetStanding, AllAtOnce) {
  sim::timebase::options timing;
  const char* variant = std::getenv("RNIC_VARIANT");
  const std::string name = variant != nullptr ? variant : "";
  timing.always_tick = name == "always_tick" || name == "all";
  timing.run_ahead = name != "no_run_ahead" && name != "all";
  if (name == "shuffled") timing.shuffle_seed = 7;
  if (name == "all") timing.shuffle_seed = 123456789;
  const std::string result = all_at_once(timing);
  EXPECT_NE(result.find("round "), std::string::npos);
  std::printf("begin of result\n%send of result\n", result.c_str());
}

}  // namespace
}  // namespace rnic::system_test
