// SPDX-License-Identifier: Apache-2.0
// rstream: messages to the server, and as many back, in one test or in the tool's list of them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "testbenches/serve/cm/cm_program.h"
#include "testbenches/serve/rsocket/rsocket.h"

namespace rnic::serve {

namespace {

constexpr std::uint32_t rstream_bytes = 1000;
constexpr unsigned rstream_messages = 1000;
constexpr std::size_t sync_bytes = 16;

/// What the tool's run_test() does: `messages` of `bytes` each to the server, then as many back, `rounds` times.
struct stream_test {
  std::string name;
  std::uint32_t bytes = 0;
  unsigned messages = 1, rounds = 1;
};

/// The tool's sizes: 2^6 to 2^22, and what lies half-way to the next one; without -S all four of them.
std::vector<std::uint32_t> sizes(bool all) {
  if (!all) return {1u << 6, 1u << 12, 1u << 16, 1u << 20};
  std::vector<std::uint32_t> list{1u << 6};
  for (unsigned power = 7; power <= 22; ++power) {
    list.push_back(1u << power);
    list.push_back((1u << power) + (1u << (power - 1)));
  }
  return list;
}

/// The tool's size_to_count().
unsigned messages_of(std::uint32_t bytes) {
  if (bytes >= 1u << 20) return 100;
  if (bytes >= 1u << 16) return 1000;
  return bytes >= 1u << 10 ? 10'000 : 100'000;
}

bool is_list(const cm_application_options& o) { return o.size == 0 && o.count == 0; }

std::vector<stream_test> latency_tests(bool all) {
  std::vector<stream_test> list;
  for (const std::uint32_t bytes : sizes(all)) list.push_back({"latency", bytes, 1, messages_of(bytes)});
  return list;
}

std::vector<stream_test> bandwidth_tests(bool all) {
  std::vector<stream_test> list;
  for (const std::uint32_t bytes : sizes(all)) list.push_back({"bandwidth", bytes, messages_of(bytes), 1});
  return list;
}

stream_test custom_test(const cm_application_options& o) {
  return {"custom", o.size != 0 ? o.size : rstream_bytes, o.count != 0 ? o.count : rstream_messages, 1};
}

std::uint32_t longest(const cm_application_options& o) {
  const std::uint32_t bytes = is_list(o) ? sizes(o.all_sizes).back() : custom_test(o).bytes;
  return std::max<std::uint32_t>(bytes, sync_bytes);
}

/// The tool's content counts its bytes, all of them in a direction and over both connections, when both sides verify
/// (-T v). Whether they do is not told. One that does not sends what lies in its buffer: as server the last message
/// that it received, as client what malloc() left at first.
class counted_content {
 public:
  void fill(std::vector<std::uint8_t>& buffer, std::size_t bytes);
  /// Of a message of the peer's: how many bytes are wrong.
  std::uint64_t wrong(const std::vector<std::uint8_t>& buffer, std::size_t bytes, bool client);
  bool verified() const { return verifies_; }

 private:
  std::uint8_t next_out_ = 0, next_in_ = 0, last_out_ = 0;
  unsigned received_ = 0;  // the word before the first message as well
  bool verifies_ = false;
};

void counted_content::fill(std::vector<std::uint8_t>& buffer, std::size_t bytes) {
  last_out_ = next_out_;
  for (std::size_t i = 0; i < bytes; ++i) buffer[i] = next_out_++;
}

std::uint64_t counted_content::wrong(const std::vector<std::uint8_t>& buffer, std::size_t bytes, bool client) {
  std::uint64_t wrong = 0;
  bool echo = client;
  std::uint8_t sent = last_out_;
  for (std::size_t i = 0; i < bytes; ++i) {
    wrong += buffer[i] != next_in_++ ? 1 : 0;
    echo = echo && buffer[i] == sent++;
  }
  if (received_++ == 1) verifies_ = wrong <= bytes / 2;
  if (wrong != 0 && echo) verifies_ = false;
  return verifies_ ? wrong : 0;
}

class rstream : public arrival {
 public:
  rstream(served_host& host, cm_service& service, const cm_application_options& o)
      : service_(service), stream_(host, service, o.route), client_(o.client), buffer_(longest(o)) {}
  rdma_connection& connection() override { return stream_.connection(); }
  /// The tests of this connection, to its end.
  void run(const std::vector<stream_test>& tests, counted_content& content, application_result& r);

 private:
  void test(const stream_test& t, counted_content& content, application_result& r);
  void send(std::size_t bytes, counted_content& content);
  void receive(std::size_t bytes, counted_content& content, application_result& r);

  cm_service& service_;
  rsocket_stream stream_;
  bool client_;
  std::vector<std::uint8_t> buffer_;
};

void rstream::send(std::size_t bytes, counted_content& content) {
  content.fill(buffer_, bytes);
  stream_.send(buffer_.data(), bytes);
}

void rstream::receive(std::size_t bytes, counted_content& content, application_result& r) {
  stream_.receive(buffer_.data(), bytes);
  r.wrong_bytes += content.wrong(buffer_, bytes, client_);
}

void rstream::test(const stream_test& t, counted_content& content, application_result& r) {
  if (client_) send(sync_bytes, content);
  receive(sync_bytes, content, r);
  if (!client_) send(sync_bytes, content);
  const sim::time_ps began = service_.now_ps();
  for (unsigned round = 0; round < t.rounds; ++round) {
    for (const bool sends : {client_, !client_}) {
      for (unsigned i = 0; i < t.messages; ++i) {
        if (sends)
          send(t.bytes, content);
        else
          receive(t.bytes, content, r);
        ++(sends ? r.sent : r.received);
      }
    }
  }
  const double us = static_cast<double>(std::max<sim::time_ps>(service_.now_ps() - began, 1)) * 1e-6;
  const double messages = 2.0 * t.rounds * t.messages;
  fmt::print(" {:<10} {:>9} {:>9} {:>9} {:>11.4f} {:>12.2f}\n", t.name, t.bytes, t.messages, t.rounds,
             messages * t.bytes * 8e-3 / us, us / messages);
  std::fflush(stdout);
}

void rstream::run(const std::vector<stream_test>& tests, counted_content& content, application_result& r) {
  stream_.open();
  for (const stream_test& t : tests) test(t, content, r);
  stream_.shut_down();
}

/// The one connection of a client whose tests these are, or the next one. As the tool: one for each list.
void run_connection(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                    host_driver::gid_bytes* of, const std::vector<stream_test>& tests, counted_content& content,
                    application_result& r) {
  if (o.client) {
    rstream s(host, service, o);
    s.connection().connect(o.peer, o.port != 0 ? o.port : rstream_port);
    return s.run(tests, content, r);
  }
  const bool second = *of != host_driver::gid_bytes{};
  const auto s = second ? next_as<rstream>(*clients, of, next_connection_ps) : next_as<rstream>(*clients);
  if (s == nullptr) throw peer_failure("the client did not connect for the second list of tests: has it -S or -C?");
  *of = s->connection().peer_gid();
  if (second || !is_list(o)) clients->enough();
  s->run(tests, content, r);
}

}  // namespace

std::unique_ptr<arrival> rstream_guest(served_host& host, cm_service& service, const cm_application_options& o) {
  return std::make_unique<rstream>(host, service, o);
}

void run_rstream(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                 application_result& r) {
  counted_content content;
  host_driver::gid_bytes of{};
  std::vector<std::vector<stream_test>> lists{{custom_test(o)}};
  if (is_list(o)) lists = {latency_tests(o.all_sizes), bandwidth_tests(o.all_sizes)};
  fmt::print(" {:<10} {:>9} {:>9} {:>9} {:>11} {:>12}\n", "test", "bytes", "messages", "rounds", "Gb/s",
             "us a message");
  for (const auto& tests : lists) run_connection(host, service, clients, o, &of, tests, content, r);
  if (content.verified()) fmt::print("  rstream: the content was looked at\n");
}

}  // namespace rnic::serve
