// SPDX-License-Identifier: Apache-2.0
// udpong: datagrams to the server, which counts them, or sends them back.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <vector>

#include "model/abi/endian.h"
#include "model/wire/ethernet.h"
#include "testbenches/serve/cm/cm_program.h"
#include "testbenches/serve/rsocket/rsocket_datagrams.h"

namespace rnic::serve {

namespace {

constexpr std::uint32_t udpong_bytes = 1000;
constexpr unsigned udpong_messages = 1000;

// struct message of the tool.
enum class op : std::uint8_t { login = 0, start = 1, data = 2, echo = 3, end = 4 };
constexpr std::size_t op_at = 0, id_at = 1, number_at = 2, count_at = 4, content_at = 8, control_bytes = 16;

// What is not answered is said again: the tool waits a second for the first answers, and one millisecond, which is too
// short for a peer that is emulated, for the others.
constexpr std::uint64_t first_answers_ps = sim::ps_per_s, answers_ps = sim::ps_per_s / 10;
/// A client that is silent for so long after a test makes no other one.
constexpr std::uint64_t farewell_ps = 2 * sim::ps_per_s;

class udpong : private cm_program {
 public:
  udpong(served_host& host, cm_service& service, const cm_application_options& o, std::uint16_t bound)
      : cm_program(host, service, o), socket_(host, o.route, bound) {}
  void run_client(application_result& r);
  void serve(application_result& r);
  void tell_drops() const;

 private:
  using bytes = std::vector<std::uint8_t>;
  bytes make(op what, std::size_t size) const;
  bytes ask(bytes message, std::uint64_t again_ps);
  void exchange(application_result& r);
  void take(const rsocket_datagrams::message& m, application_result& r);

  rsocket_datagrams socket_;
  udp_end server_;
  std::uint8_t id_ = 0, number_ = 0;             // client: of it, of the next question
  std::uint8_t next_id_ = 0;                     // server
  std::map<std::uint8_t, std::uint32_t> count_;  // messages of the clients amid a test
  bool tested_ = false;
};

udpong::bytes udpong::make(op what, std::size_t size) const {
  bytes m(size);
  m[op_at] = static_cast<std::uint8_t>(what);
  m[id_at] = id_;
  for (std::size_t i = content_at; what == op::echo && i < size; ++i) m[i] = static_cast<std::uint8_t>(i + number_);
  return m;
}

/// Until the answer to this question comes.
udpong::bytes udpong::ask(bytes message, std::uint64_t again_ps) {
  const std::uint64_t deadline = service_.now_ps() + o_.route.patience_ps;
  message[number_at] = number_++;
  while (service_.now_ps() < deadline) {
    socket_.send(server_, message);
    for (const std::uint64_t again = service_.now_ps() + again_ps; service_.now_ps() < again;) {
      const auto answer = socket_.receive(again - service_.now_ps());
      if (!answer) break;
      const bool good = answer->from == server_ && answer->data.size() == message.size() &&
                        answer->data[number_at] == message[number_at] && answer->data[op_at] == message[op_at];
      if (good) return answer->data;
    }
  }
  throw peer_failure("the server does not answer");
}

void udpong::exchange(application_result& r) {
  const std::uint32_t bytes_each = size(udpong_bytes);
  const unsigned messages = count(udpong_messages);
  ask(make(op::start, control_bytes), first_answers_ps);
  for (unsigned i = 0; i < messages; ++i, ++r.sent) {
    if (!o_.echo) {
      socket_.send(server_, make(op::data, bytes_each));
      continue;
    }
    const bytes sent = make(op::echo, bytes_each), back = ask(sent, answers_ps);
    for (std::size_t at = content_at; at < sent.size(); ++at) r.wrong_bytes += sent[at] != back[at] ? 1 : 0;
    ++r.received;
  }
  const std::uint32_t counted = abi::load32(ask(make(op::end, control_bytes), answers_ps).data(), count_at);
  if (o_.echo) return;
  // The server has it from the peer that datagrams are lost: that is no failure unless all are.
  r.received = counted;
  if (counted != messages) fmt::print("  udpong: {} of {} messages arrived\n", counted, messages);
  if (counted == 0) throw peer_failure("none of the messages arrived");
}

void udpong::run_client(application_result& r) {
  server_ = {o_.peer, port(udpong_port)};
  socket_.connect(server_);
  id_ = ask(make(op::login, control_bytes), first_answers_ps)[id_at];
  exchange(r);
}

/// As the tool, which takes what it does not know for data.
void udpong::take(const rsocket_datagrams::message& m, application_result& r) {
  bytes answer = m.data;
  if (answer.size() < content_at) return;
  switch (static_cast<op>(answer[op_at])) {
    case op::login:
      fmt::print("  udpong: a client at {}\n", wire::to_string(m.from.address));
      std::fflush(stdout);
      answer[id_at] = next_id_++;
      count_[answer[id_at]] = 0;
      break;
    case op::start:
      count_[answer[id_at]] = 0;
      break;
    case op::echo:
      ++count_[answer[id_at]];
      ++r.received;
      if (socket_.send(m.from, answer)) ++r.sent;
      return;
    case op::end: {
      const auto test = count_.find(answer[id_at]);
      abi::store32(answer.data(), count_at, test == count_.end() ? 0 : test->second);
      tested_ = true;
      break;
    }
    default:
      ++count_[answer[id_at]];
      ++r.received;
      return;
  }
  socket_.send(m.from, answer);
}

/// Clients are served together, until none of them has anything to say any more.
void udpong::serve(application_result& r) {
  constexpr std::uint64_t no_hurry_ps = 3600 * sim::ps_per_s;
  for (;;) {
    const bool nobody = count_.empty();
    const auto m = socket_.receive(nobody ? no_hurry_ps : tested_ ? farewell_ps : o_.route.patience_ps);
    if (m) {
      take(*m, r);
    } else if (tested_) {
      return;
    } else if (!nobody) {
      throw peer_failure("the client does not send any more");
    }
  }
}

void udpong::tell_drops() const {
  const rsocket_counters& c = socket_.count();
  if (c.malformed + c.no_room + c.unknown + c.forgotten == 0) return;
  fmt::print(
      "  udpong: dropped {} datagrams that make no sense, {} without room; {} answers to nobody; {} peers forgotten\n",
      c.malformed, c.no_room, c.unknown, c.forgotten);
  std::fflush(stdout);
}

}  // namespace

void run_udpong(served_host& host, cm_service& service, reception* /*clients*/, const cm_application_options& o,
                application_result& r) {
  udpong program(host, service, o, o.client ? 0 : o.port != 0 ? o.port : udpong_port);
  try {
    if (o.client)
      program.run_client(r);
    else
      program.serve(r);
  } catch (...) {
    program.tell_drops();
    throw;
  }
  program.tell_drops();
}

}  // namespace rnic::serve
