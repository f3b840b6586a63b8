// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/trace_writer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "testbenches/bench/trace/record_queue.h"
#include "testbenches/bench/usage_error.h"

namespace rnic::bench::test {
namespace {

std::string file_for(const std::string& name) { return ::testing::TempDir() + "rnic_trace_writer_" + name; }

std::string text_of(const std::string& file) {  // zlib reads plain files as they are
  std::string text;
  gzFile in = gzopen(file.c_str(), "rb");
  char piece[4096];
  for (int n = gzread(in, piece, sizeof piece); n > 0; n = gzread(in, piece, sizeof piece))
    text.append(piece, static_cast<std::size_t>(n));
  gzclose(in);
  std::remove(file.c_str());
  return text;
}

nlohmann::json written(const std::string& name) {
  const std::string file = file_for(name);
  trace_writer w(file, "a \"title\"");
  w.set_origin(1'000'000);
  const auto host = w.add_process("h1"), other = w.add_process("h2");
  const auto port = w.add_block(host, "adapter.port1"), peer = w.add_block(other, "adapter.port1");
  const auto sent = w.add_kind(port, "mac tx"), nothing = w.add_kind(port, "nothing"), wire = w.add_kind(peer, "wire");
  const auto from = w.slice(sent, 1'000'001, 3'500'000, "\"m\":1");
  w.slice(sent, 2'000'000, 4'000'000, "\"m\":2");
  EXPECT_EQ(w.slice(nothing, 5'000'000, 5'000'000, "\"m\":1").row, 0u);
  w.arrow(from, w.slice(wire, 4'000'000, 123'456'789'012'345, "\"m\":1"));
  w.counter(w.add_gauge(host, "queue bytes"), 2'000'010, 77);
  w.close();
  const std::string text = text_of(file);
  // One event a line.
  std::istringstream lines(text);
  std::string line;
  std::size_t events = 0;
  for (std::getline(lines, line); std::getline(lines, line) && line != "]}"; ++events) {
    if (line.back() == ',') line.pop_back();
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
  EXPECT_EQ(events, w.events());
  return nlohmann::json::parse(text);
}

TEST(TraceWriter, TimesAreNanosecondsAndOverlappingSlicesHaveRows) {
  const nlohmann::json j = written("plain.json");
  EXPECT_EQ(j["otherData"]["title"], "a \"title\"");
  std::vector<nlohmann::json> slices, arrows;
  for (const nlohmann::json& e : j["traceEvents"]) {
    if (e["ph"] == "X") slices.push_back(e);
    if (e["ph"] == "s" || e["ph"] == "f") arrows.push_back(e);
    if (e["ph"] == "C") {
      EXPECT_EQ(e.dump(), R"({"args":{"value":77},"name":"queue bytes","ph":"C","pid":1,"ts":1.00001})");
    }
  }
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0]["ts"].get<double>(), 0.0);
  EXPECT_EQ(slices[0]["dur"].get<double>(), 2.5);
  EXPECT_EQ(slices[0]["args"].dump(), R"({"m":1,"off":1,"ps":2499999})");
  EXPECT_EQ(slices[1]["args"].dump(), R"({"m":2,"ps":2000000})");
  EXPECT_NE(slices[0]["tid"], slices[1]["tid"]);
  EXPECT_EQ(slices[2]["dur"].get<double>(), 123456785.012);
  EXPECT_EQ(slices[2]["args"]["ps"], 123456785012345);
  ASSERT_EQ(arrows.size(), 2u);
  EXPECT_EQ(arrows[0]["id"], arrows[1]["id"]);
  EXPECT_EQ(arrows[0]["ts"], slices[0]["ts"]);
  EXPECT_EQ(arrows[1]["pid"], 2);
}

// As whole nanoseconds they follow one another as they do.
TEST(TraceWriter, SlicesThatFollowOneAnotherDoSoWhenRounded) {
  const std::string file = file_for("rounded.json");
  trace_writer w(file, "");
  const auto kind = w.add_kind(w.add_block(w.add_process("h1"), "b"), "s");
  for (sim::time_ps i = 0; i < 2'000; ++i) w.slice(kind, i * 777, (i + 1) * 777, "\"m\":1");
  w.close();
  sim::time_ps end = 0;
  const nlohmann::json j = nlohmann::json::parse(text_of(file));
  for (const nlohmann::json& e : j["traceEvents"]) {
    if (e["ph"] != "X") continue;
    const auto begin = static_cast<sim::time_ps>(std::llround(e["ts"].get<double>() * 1e6));
    EXPECT_EQ(begin, end);
    EXPECT_EQ(begin % 1'000, 0u);
    EXPECT_EQ(e["args"]["ps"], 777);
    EXPECT_EQ((static_cast<std::int64_t>(begin) + e["args"].value("off", 0)) % 777, 0);
    end = begin + static_cast<sim::time_ps>(std::llround(e["dur"].get<double>() * 1e6));
  }
  EXPECT_EQ(end, 1'554'000u);
}

TEST(TraceWriter, NameThatEndsInGzIsCompressed) {
  nlohmann::json packed = written("packed.json.gz"), plain = written("plain2.json");
  EXPECT_EQ(packed, plain);
}

// More than what is compressed, passed on and written at a time.
TEST(TraceWriter, LongOnesAreWholeCompressedOrNot) {
  std::string texts[2];
  for (const bool packed : {false, true}) {
    const std::string file = file_for(packed ? "long.json.gz" : "long.json");
    trace_writer w(file, "");
    const auto kind = w.add_kind(w.add_block(w.add_process("h1"), "b"), "s");
    for (sim::time_ps i = 0; i < 60'000; ++i) w.slice(kind, i * 7919, (i + 1) * 7919, "\"m\":" + std::to_string(i * i));
    w.close();
    texts[packed ? 1 : 0] = text_of(file);
  }
  EXPECT_GT(texts[0].size(), 10 * record_queue::batch_bytes);
  EXPECT_TRUE(texts[0] == texts[1]);
  EXPECT_EQ(nlohmann::json::parse(texts[0])["traceEvents"].size(), 60'000u + 4) << "and the names of process and row";
}

TEST(TraceWriter, MoreThanTheRowsAreAsynchronous) {
  const std::string file = file_for("async.json");
  trace_writer w(file, "");
  const auto block = w.add_block(w.add_process("h1"), "b");
  const auto kind = w.add_kind(block, "s");
  for (std::size_t i = 0; i <= lanes::most; ++i) w.slice(kind, 1, 100, "\"m\":1");
  w.close();
  std::string phases;
  const nlohmann::json j = nlohmann::json::parse(text_of(file));
  for (const nlohmann::json& e : j["traceEvents"])
    if (e["ph"] != "M" && e["ph"] != "X") phases += e["ph"].get<std::string>();
  EXPECT_EQ(phases, "be");
}

TEST(TraceWriter, NothingIsBeforeTheOrigin) {
  const std::string file = file_for("origin.json");
  trace_writer w(file, "");
  w.set_origin(1'000'000);
  const auto host = w.add_process("h1"), other = w.add_process("h2");
  const auto block = w.add_block(host, "b"), peer = w.add_block(other, "b");
  EXPECT_EQ(w.slice(w.add_kind(block, "before"), 999'999, 2'000'000, "\"m\":1").row, 0u);
  const auto at = w.slice(w.add_kind(block, "at"), 1'000'000, 2'000'000, "\"m\":1");
  EXPECT_NE(at.row, 0u);
  const auto there = w.slice(w.add_kind(peer, "there"), 1'500'000, 2'000'000, "\"m\":1");
  w.arrow(at, there);
  w.arrow(there, at);
  w.counter(w.add_gauge(host, "c"), 0, 3);
  w.close();
  std::vector<nlohmann::json> ids, counters;
  const nlohmann::json j = nlohmann::json::parse(text_of(file));
  for (const nlohmann::json& e : j["traceEvents"]) {
    if (e["ph"] == "s" || e["ph"] == "f") ids.push_back(e["id"]);
    if (e["ph"] == "C") counters.push_back(e["ts"]);
  }
  EXPECT_EQ(ids, (std::vector<nlohmann::json>{1, 1, 2, 2})) << "each arrow has a number of its own";
  EXPECT_EQ(counters, (std::vector<nlohmann::json>{0}));
}

// Of a name 512 bytes are taken, which may be six characters of JSON each.
TEST(TraceWriter, NamesOfWhateverBytesAreJson) {
  const std::string file = file_for("names.json");
  const std::string control(600, '\x01'), quotes(600, '"'), cut = std::string(511, 'x') + "\xc3\xa9",
                                                            wrong(600, '\xff');
  trace_writer w(file, control);
  for (const std::string& name : {control, quotes, cut, wrong}) {
    const auto process = w.add_process(name);
    const auto kind = w.add_kind(w.add_block(process, name), name);
    const std::string details = "\"d\":\"" + std::string(trace_writer::most_details - 6, 'x') + "\"";
    for (std::size_t i = 0; i <= lanes::most; ++i) w.slice(kind, 1, ~sim::time_ps{0}, details);
    w.counter(w.add_gauge(process, name), ~sim::time_ps{0}, ~std::uint64_t{0});
  }
  w.close();
  const nlohmann::json j = nlohmann::json::parse(text_of(file));
  EXPECT_EQ(j["traceEvents"].size(), w.events());
  EXPECT_EQ(j["traceEvents"][0]["args"]["name"], control.substr(0, 512));
}

TEST(TraceWriter, FileThatCannotBeWrittenIsTheUsersMistake) {
  EXPECT_THROW(trace_writer("/no/such/folder/trace.json", ""), usage_error);
  trace_writer w("/dev/full", "");
  w.add_process("h1");
  EXPECT_THROW(w.close(), usage_error);
}

}  // namespace
}  // namespace rnic::bench::test
