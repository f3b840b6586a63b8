// SPDX-License-Identifier: Apache-2.0
// rstream: a stream of messages to the server, and as many back.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "testbenches/serve/cm_program.h"
#include "testbenches/serve/rsocket.h"

namespace rnic::serve {

namespace {

constexpr std::uint32_t rstream_bytes = 1000;
constexpr unsigned rstream_messages = 1000;
constexpr std::size_t sync_bytes = 16;

/// The tool's content counts its bytes, all of them in a direction, when both sides verify (-T v). Whether they do is
/// not told: the content is looked at when it is so in the first message.
class rstream : public arrival {
 public:
  rstream(served_host& host, cm_service& service, const cm_application_options& o)
      : stream_(host, service, o.route),
        o_(o),
        buffer_(std::max<std::size_t>(o.size != 0 ? o.size : rstream_bytes, sync_bytes)) {}
  rdma_connection& connection() override { return stream_.connection(); }
  void run(application_result& r);

 private:
  void send(std::size_t bytes);
  void receive(std::size_t bytes, application_result& r);

  rsocket_stream stream_;
  cm_application_options o_;
  std::vector<std::uint8_t> buffer_;
  std::uint8_t next_out_ = 0, next_in_ = 0;
  unsigned received_ = 0;  // the word before the first message as well
  bool verifies_ = false;
};

void rstream::send(std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) buffer_[i] = next_out_++;
  stream_.send(buffer_.data(), bytes);
}

void rstream::receive(std::size_t bytes, application_result& r) {
  stream_.receive(buffer_.data(), bytes);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < bytes; ++i) wrong += buffer_[i] != next_in_++ ? 1 : 0;
  // The first message tells: of those 16 bytes a tool that does not verify sends ours back.
  if (received_++ == 1) verifies_ = wrong <= bytes / 2;
  if (verifies_) r.wrong_bytes += wrong;
}

void rstream::run(application_result& r) {
  const std::uint32_t size = o_.size != 0 ? o_.size : rstream_bytes;
  const unsigned count = o_.count != 0 ? o_.count : rstream_messages;
  stream_.open();
  if (o_.client) send(sync_bytes);
  receive(sync_bytes, r);
  if (!o_.client) send(sync_bytes);
  for (const bool sends : {o_.client, !o_.client}) {
    for (unsigned i = 0; i < count; ++i) {
      if (sends)
        send(size);
      else
        receive(size, r);
      ++(sends ? r.sent : r.received);
    }
  }
  if (verifies_) fmt::print("  rstream: the content was looked at\n");
  stream_.shut_down();
}

}  // namespace

std::unique_ptr<arrival> rstream_guest(served_host& host, cm_service& service, const cm_application_options& o) {
  return std::make_unique<rstream>(host, service, o);
}

void run_rstream(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                 application_result& r) {
  if (!o.client) {
    const auto client = next_as<rstream>(*clients);
    clients->enough();
    return client->run(r);
  }
  rstream s(host, service, o);
  s.connection().connect(o.peer, o.port != 0 ? o.port : rstream_port);
  s.run(r);
}

}  // namespace rnic::serve
