// SPDX-License-Identifier: Apache-2.0
// What a trace says of gauges and of single messages, in literal times: read as JSON.
#include "testbenches/bench/trace/network_trace.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "testbenches/bench/trace/message_note.h"

namespace rnic::bench::test {
namespace {

using texts = std::multiset<std::string>;
constexpr sim::time_ps origin = 100'000;

std::string us(const nlohmann::json& time) { return std::to_string(std::llround(time.get<double>() * 1e6)); }

/// Slices as "process thread: name begin+length details", counters as "process name: time value", arrows as "begin
/// process thread", all of them in picoseconds.
struct read_trace {
  explicit read_trace(const std::string& path) {
    std::ifstream in(path);
    const nlohmann::json all = nlohmann::json::parse(in);
    std::map<nlohmann::json, std::string> processes, threads;
    for (const nlohmann::json& e : all["traceEvents"]) {
      if (e["name"] == "process_name") processes[e["pid"]] = e["args"]["name"];
      if (e["name"] == "thread_name") threads[e["tid"]] = e["args"]["name"];
    }
    for (const nlohmann::json& e : all["traceEvents"]) {
      const std::string process = processes[e["pid"]];
      if (e["ph"] == "C")
        counters.insert(process + " " + e["name"].get<std::string>() + ": " + us(e["ts"]) + " " +
                        e["args"]["value"].dump());
      if (e["ph"] == "M" || e["ph"] == "C") continue;
      const std::string row = process + " " + threads[e["tid"]];
      if (e["ph"] == "X") {
        nlohmann::json details = e["args"];
        const std::string lasts = details["ps"].dump();
        const std::string begin = std::to_string(std::stoll(us(e["ts"])) + details.value("off", 0));
        details.erase("ps");
        details.erase("off");
        slices.insert(row + ": " + e["name"].get<std::string>() + " " + begin + "+" + lasts + " " + details.dump());
      } else
        arrows.push_back(e["ph"].get<std::string>() + e["id"].dump() + " " + row + " " + us(e["ts"]));
    }
  }
  texts slices, counters;
  std::vector<std::string> arrows;
};

class NetworkTrace : public ::testing::Test {
 protected:
  NetworkTrace()
      : path(::testing::TempDir() + "rnic_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
             ".trace.json") {
    system.hosts = {{"a", nullptr, nullptr}, {"b", nullptr, nullptr}};
    system.switches = {"s1"};
    system.statistics = &statistics;
    statistics.add("a.adapter.port1 egress bytes", egress);
    statistics.add("s1.port0 queued bytes", queued);
    config.file = path;
  }
  ~NetworkTrace() override { std::remove(path.c_str()); }

  sim::gauge egress, queued;
  sim::statistics statistics;
  watched_system system;
  trace_config config;
  std::string path;
};

TEST_F(NetworkTrace, CountersAreThoseOfTheWindowAndBeginWithWhatThereWas) {
  config.from = 1'000;
  config.until = 10'000;
  network_trace t(system, config);
  egress.tell(3, 90'000);
  queued.tell(5, 95'000);  // and stays so
  t.begin(origin);
  egress.tell(4, origin + 500);
  t.under_way(1, 1, origin + 1'000);
  egress.tell(6, origin + 5'000);
  t.under_way(0, 2, origin + 9'999);
  egress.tell(7, origin + 10'000);
  t.under_way(1, 0, origin + 10'001);
  const trace_counts counts = t.finish();
  const read_trace r(path);
  EXPECT_EQ(r.counters,
            (texts{"a adapter.port1 egress bytes: 1000 4", "a adapter.port1 egress bytes: 5000 6",
                   "s1 port0 queued bytes: 1000 5", "a messages under way: 9999 2", "b messages under way: 1000 1"}));
  EXPECT_EQ(counts.messages, 0u);
  EXPECT_EQ(counts.events, 8 + r.counters.size()) << "names and places of four processes";
}

sim::followed_request write_of_64_bytes(std::uint64_t number) {
  sim::followed_request r;
  r.key = {0, 500, 3};
  r.number = number;
  r.what = message_note{64, 0, 0}.packed();
  r.polled = true;
  return r;
}

// The slices of the way are without gaps, also across the cable, to which no arrow leads.
TEST_F(NetworkTrace, AMessageIsASliceForEachStage) {
  constexpr sim::wait none = sim::wait::none;
  network_trace t(system, config);
  t.begin(origin);
  t.add_flow(0, "rpc", 0);
  sim::followed_request r = write_of_64_bytes(1);
  r.path = {origin + 1'000,
            {{"a.root_complex", "post", sim::wait::software, origin + 1'060},
             {"a.adapter.port1", "mac tx", none, origin + 1'070},
             {"cable", "light", none, origin + 1'090},
             {"b.adapter.port1", "wire", none, origin + 1'100},
             {"a.processor", "poll", none, origin + 1'140}}};
  r.beside = {origin + 1'100, {{"b.root_complex", "memory write", none, origin + 1'180}}};
  r.beside_answer = {origin + 1'090, {{"a.adapter.requester", "complete", none, origin + 1'200}}};
  t.take(r, 0);
  t.finish();
  const read_trace got(path);
  const std::string verb = message_note::unpacked(r.what).verb_name();
  EXPECT_EQ(
      got.slices,
      (texts{"a messages of rpc: " + verb +
                 R"( 1000+140 {"bytes":64,"index":3,"latency_ps":140,"m":1,"qpn":500,"verb":")" + verb + "\"}",
             R"(a root_complex: post 1000+60 {"m":1,"waits":"software"})", R"(a adapter.port1: mac tx 1060+10 {"m":1})",
             R"(cables cable: light 1070+20 {"m":1})", R"(b adapter.port1: wire 1090+10 {"m":1})",
             R"(a processor: poll 1100+40 {"m":1})", R"(b root_complex: memory write 1100+80 {"beside":true,"m":1})",
             R"(a adapter.requester: complete 1090+110 {"beside":true,"m":1})"}));
  EXPECT_EQ(got.arrows, (std::vector<std::string>{"s1 a adapter.port1 1000", "f1 b adapter.port1 1000",
                                                  "s2 b adapter.port1 1000", "f2 a processor 1000"}));
}

TEST_F(NetworkTrace, FailuresAndWhatDoesNotEndAreSaid) {
  network_trace t(system, config);
  t.begin(origin);
  t.add_flow(0, "rpc", 1);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    sim::followed_request r = write_of_64_bytes(number);
    r.path = {origin, {{"b.root_complex", "post", sim::wait::none, origin + 60}}};
    if (number == 2) r.status = IBV_WC_RETRY_EXC_ERR;
    if (number == 3) r.polled = false;
    t.take(r, 0);
  }
  const trace_counts counts = t.finish();
  EXPECT_EQ(counts.messages, 3u);
  EXPECT_EQ(counts.unfinished, 1u);
  std::string failed, unfinished;
  for (const std::string& s : read_trace(path).slices) {
    if (s.find("retry_exceeded") != std::string::npos) failed += s.substr(s.find("\"m\":"), 5);
    if (s.find("unfinished") != std::string::npos) unfinished += s.substr(s.find("\"m\":"), 5);
  }
  EXPECT_EQ(failed, "\"m\":2");
  EXPECT_EQ(unfinished, "\"m\":3");
}

// An operation of verbs.h, or of this driver, is the verb that programs name it by.
TEST(MessageNote, IsOfTheWholeRequest) {
  ibv_sge parts[2] = {};
  parts[0].length = 64;
  parts[1].length = 36;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.sg_list = parts;
  wr.num_sge = 2;
  EXPECT_EQ(message_note::of(wr, 7).bytes, 100u);
  EXPECT_EQ(message_note::of(wr, 7).flow, 7u);
  EXPECT_STREQ(message_note::of(wr, 7).verb_name(), "write");
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  EXPECT_STREQ(message_note::of(wr, 7).verb_name(), "fadd");
  wr.opcode = IBV_WR_LOCAL_INV;
  EXPECT_STREQ(message_note::of(wr, 7).verb_name(), "other");
  const host_driver::driver_wr adds(host_driver::driver_opcode::masked_fetch_add),
      swaps(host_driver::driver_opcode::masked_compare_swap);
  EXPECT_STREQ(message_note::of(adds, 7).verb_name(), "masked_fadd");
  EXPECT_STREQ(message_note::of(swaps, 7).verb_name(), "masked_cas");
}

}  // namespace
}  // namespace rnic::bench::test
