// SPDX-License-Identifier: Apache-2.0
// Management datagrams of anybody: the decoder, a connection manager that two peers and its own program drive through
// any sequence, in the end of which all that is left of it ends, and the numbers of functions that share QP1.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "host_driver/cm/connection_manager.h"
#include "host_driver/cm/messages.h"
#include "host_driver/functions/cm_ids.h"
#include "host_driver/functions/mad_rules.h"
#include "testbenches/fuzz/input.h"
#include "testbenches/fuzz/property.h"

namespace rnic::fuzz {
namespace {

using namespace host_driver::cm;
using host_driver::gid_bytes;

constexpr std::uint64_t service = 0x0000000001061c06, never = ~std::uint64_t{0};
constexpr std::size_t most_connections = 4, kept = 8;

void try_decode(const std::uint8_t* data, std::size_t size) {
  const auto c = decode(data, size);
  if (!c) return;
  const mad bytes = encode(*c);
  const auto again = decode(bytes.data(), bytes.size());
  demand(again.has_value(), "what was understood can be said");
  demand(encode(*again) == bytes, "and says the same again");
  if (const auto header = get_ip_header(c->private_data.data())) {
    std::array<std::uint8_t, ip_header::bytes> text{};
    put_ip_header(*header, text.data());
    const auto same = get_ip_header(text.data());
    demand(same && same->source_port == header->source_port && same->source == header->source &&
               same->destination == header->destination,
           "an address header says the same again");
  }
}

/// A manager with its program, and the last messages that it sent, which peers may answer.
class play final : public mad_output_if {
 public:
  explicit play(input& in) : in_(in), manager_(*this, settings(in)) {}

  void send_mad(const address&, const mad& datagram) override {
    demand(decode(datagram.data(), datagram.size()).has_value(), "the manager's own messages can be understood");
    if (sent_.size() == kept) sent_.pop_front();
    sent_.push_back(datagram);
  }

  void run() {
    while (!in_.empty()) {
      step();
      demand(manager_.connections() <= most_connections, "there are no more connections than allowed");
      if (ids_.size() > kept) ids_.pop_front();
    }
    end();
  }

 private:
  static connection_manager_config settings(input& in) {
    connection_manager_config c;
    c.response_timeout = in.u8();
    c.retries = in.u8() % 16;
    c.most_connections = most_connections;
    c.ca_guid = 1;
    return c;
  }

  address peer() {
    address a;
    a.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, static_cast<std::uint8_t>(2 + in_.below(2))};
    return a;
  }
  connection_id id() { return ids_.empty() ? in_.u8() : ids_[in_.below(static_cast<unsigned>(ids_.size()))]; }
  private_area text() {
    private_area p{};
    const auto bytes = in_.bytes(in_.below(64));
    std::copy(bytes.begin(), bytes.end(), p.begin());
    return p;
  }
  connection_data data() {
    connection_data d;
    d.service_id = service + in_.below(2);
    d.qpn = in_.u32() & 0xffffff;
    d.psn = in_.u32() & 0xffffff;
    d.path.remote = peer().gid;
    d.path.local = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
    d.remote_cm_timeout = d.local_cm_timeout = in_.u8();
    d.max_cm_retries = in_.u8();
    if (in_.bit()) d.alternate = d.path;
    return d;
  }

  /// A message of a peer: bytes as they come, or of a kind, about a connection that there is.
  void hear() {
    const address from = peer();
    if (in_.bit()) {
      const auto bytes = in_.bytes(in_.u16() % 300);
      manager_.receive(from, bytes.data(), bytes.size(), now_);
      return;
    }
    contents c;
    c.kind = static_cast<message>(0x10 + in_.below(11));
    c.local_id = in_.below(8);
    c.remote_id = in_.bit() ? id() : in_.u8();
    c.transaction = in_.u8();
    if (!sent_.empty() && in_.bit()) {  // an answer to something
      const contents last = *decode(sent_[in_.below(static_cast<unsigned>(sent_.size()))].data(), mad_length);
      c.remote_id = last.local_id;
      c.transaction = last.transaction;
    }
    c.connection = data();
    c.connection.ca_guid = in_.below(3);
    c.service.service_id = c.connection.service_id;
    c.service.qpn = c.connection.qpn;
    c.subject = static_cast<about>(in_.below(3));
    c.service_timeout = in_.u8();
    c.why = static_cast<reason>(in_.u8());
    c.remote_qpn = in_.u8();
    c.alternate = c.connection.path;
    c.private_data = text();
    mad bytes = encode(c);
    if (in_.bit()) bytes[in_.u8()] ^= in_.u8();
    const std::size_t length = in_.bit() ? in_.u8() : mad_length;
    manager_.receive(from, bytes.data(), length, now_);
  }

  /// Something that the program does.
  void act() {
    switch (in_.below(10)) {
      case 0:
        remember(manager_.connect(peer(), data(), text(), now_));
        return;
      case 1:
        manager_.accept(id(), data(), text(), now_);
        return;
      case 2:
        manager_.delay(id(), in_.u8());
        return;
      case 3:
        manager_.confirm(id(), text());
        return;
      case 4:
        manager_.reject(id(), static_cast<reason>(in_.u8()), text(), now_);
        return;
      case 5:
        manager_.disconnect(id(), text(), now_);
        return;
      case 6:
        remember(manager_.ask_service(peer(), {service + in_.below(2), 0xffff, 0, 0, 0}, text(), now_));
        return;
      case 7:
        manager_.answer_service(id(), {service, 0xffff, in_.u8(), 0x77, 1}, text());
        return;
      case 8:
        manager_.abandon(id(), now_);
        return;
      default:
        in_.bit() ? manager_.stop_listening(service) : void(manager_.listen(service));
    }
  }

  void step() {
    switch (in_.below(8)) {
      case 0:
        now_ += std::uint64_t{in_.u16()} << in_.below(32);
        manager_.tick(now_);
        return;
      case 1:
        if (manager_.deadline_ps() != never) now_ = std::max(now_, manager_.deadline_ps());
        manager_.tick(now_);
        return;
      case 2:
      case 3:
      case 4:
        hear();
        break;
      default:
        act();
    }
    while (manager_.has_event()) remember(manager_.take_event().id);
  }
  void remember(connection_id id) { ids_.push_back(id); }

  /// Without any peer everything comes to its end in a bounded number of steps, and nothing is said any more then.
  void end() {
    manager_.stop_listening(service);
    manager_.stop_listening(service + 1);
    constexpr unsigned most_steps = 16 * 20 * most_connections;
    for (unsigned i = 0; manager_.deadline_ps() != never; ++i) {
      demand(i < most_steps, "without answers a connection is given up");
      now_ = std::max(now_, manager_.deadline_ps());
      manager_.tick(now_);
      demand(manager_.deadline_ps() > now_, "what was due is done");
    }
    while (manager_.has_event()) remember(manager_.take_event().id);
    for (connection_id i = 0; i < 1u << 16 && manager_.connections() != 0; ++i) manager_.abandon(i, now_);
    for (unsigned i = 0; manager_.deadline_ps() != never; ++i) {
      demand(i < most_steps, "an abandoned connection ends");
      now_ = std::max(now_, manager_.deadline_ps());
      manager_.tick(now_);
    }
    demand(manager_.connections() == 0, "no connection is left");
  }

  input& in_;
  connection_manager manager_;
  std::deque<mad> sent_;
  std::deque<connection_id> ids_;
  std::uint64_t now_ = 1000;
};

/// Messages of three functions to the wire and back: each function's numbers are its own, and are so again when they
/// come back.
void try_share(input in) {
  using verdict = host_driver::cm_ids::verdict;
  namespace rules = host_driver::mad_rules;
  constexpr std::size_t most_of_function = 4, functions = 3;
  constexpr std::uint64_t keep = 1000;
  host_driver::cm_ids ids(keep, most_of_function);
  std::map<std::uint32_t, std::pair<unsigned, std::uint32_t>> owner;  // of the numbers on the wire, the last one
  for (std::uint64_t now = 0; !in.empty(); now += in.u8()) {
    const unsigned function = 1 + in.below(functions);
    contents c;
    c.kind = static_cast<message>(0x10 + in.below(11));
    c.local_id = in.below(8);
    c.remote_id = owner.empty() || in.bit() ? in.u8() : std::next(owner.begin(), in.u8() % owner.size())->first;
    mad m = encode(c);
    if (in.bit()) m[in.u8()] ^= in.u8();
    if (rules::fault_of(m.data()) != rules::fault::none) continue;
    const mad before = m;
    const contents said = *decode(m.data(), m.size());
    const bool leaves = in.bit();
    const verdict v = leaves ? ids.leave(function, m.data(), now) : ids.arrive(function, m.data(), now);
    demand(ids.size() <= functions * most_of_function, "there are no more numbers than allowed");
    if (v != verdict::passes) {
      demand(m == before, "what does not pass is as it was");
      continue;
    }
    const contents got = *decode(m.data(), m.size());
    if (leaves && said.kind != message::sidr_rep) owner[got.local_id] = {function, said.local_id};
    if (!leaves && got.remote_id != said.remote_id)
      demand(owner.at(said.remote_id) == std::pair(function, got.remote_id), "a number is of who has it");
  }
}

}  // namespace
}  // namespace rnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnic::fuzz;
  try_decode(data, size);
  try_share(input(data, size));
  input in(data, size);
  play(in).run();
  return 0;
}
