// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/qperf/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "host_driver/hosts/connection.h"
#include "model/wire/ethernet.h"

namespace rnic::serve::qperf {

using namespace host_driver;

namespace {

constexpr std::uint32_t stream_bytes = 65536, turn_bytes = 1;  // what the tool takes
constexpr unsigned most_seconds = 3600, word_timeout_s = 30;
// Over RoCE, who has asked over TCP; while others wait, who give up after 5 s (their -t), less.
constexpr sim::time_ps connect_ps = 10 * sim::ps_per_s, crowded_connect_ps = 2 * sim::ps_per_s;
/// Content that the tool's messages, which are zeros, replace.
constexpr std::uint8_t untouched = 0xee;

constexpr test_kind kinds[] = {{"rc_bi_bw", 12, verb::send, form::both_ways},
                               {"rc_bw", 13, verb::send, form::stream},
                               {"rc_compare_swap_mr", 14, verb::compare_swap, form::stream},
                               {"rc_fetch_add_mr", 15, verb::fetch_add, form::stream},
                               {"rc_lat", 16, verb::send, form::in_turns},
                               {"rc_rdma_read_bw", 17, verb::read, form::stream},
                               {"rc_rdma_read_lat", 18, verb::read, form::one_by_one},
                               {"rc_rdma_write_bw", 19, verb::write_with_immediate, form::stream},
                               {"rc_rdma_write_lat", 20, verb::write_with_immediate, form::in_turns},
                               {"rc_rdma_write_poll_lat", 21, verb::write, form::in_turns},
                               {"ver_rc_compare_swap", 31, verb::compare_swap, form::checked},
                               {"ver_rc_fetch_add", 32, verb::fetch_add, form::checked}};

}  // namespace

const test_kind* find_test(const std::string& name) {
  const auto at = std::find_if(std::begin(kinds), std::end(kinds), [&](const test_kind& k) { return name == k.name; });
  return at == std::end(kinds) ? nullptr : at;
}

const test_kind* find_test(std::uint16_t place) {
  const auto at =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const test_kind& k) { return place == k.place; });
  return at == std::end(kinds) ? nullptr : at;
}

lane::lane(served_host& host, cm_service& service, const rdma_route& route, std::uint32_t bytes, std::uint8_t content)
    : objects_(host.device()), connection_(host, service, route) {
  cq_ = objects_.cq(2 * depth);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = init.cap.max_recv_wr = depth;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  qp_ = objects_.qp(init);
  memory_ = objects_.buffer(
      bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
      content);
  connection_.prepare(qp_);
}

// ---------------------------------------------------------------- the conversation over TCP

std::string session::hear(std::size_t bytes, const char* what) {
  const auto text = socket_.receive(bytes, exchange_ps);
  if (!text) throw peer_failure(fmt::format("the peer has ended the conversation before {}", what));
  return *text;
}

void session::say(const std::string& text, const char* what) {
  if (!socket_.send(text)) throw peer_failure(fmt::format("the peer has ended the conversation before {}", what));
}

void session::synchronize(const std::string& word) {
  say(word, word.c_str());
  if (hear(word.size(), word.c_str()) != word)
    throw peer_failure(fmt::format("what the peer says for \"{}\" makes no sense", word));
}

std::uint32_t session::size() const {
  const bool rate_of_atomics = kind_->is_atomic() && kind_->how == form::stream;
  return rate_of_atomics ? sizeof(std::uint64_t) : std::max(request_.message_bytes, 1u);
}

/// Our own messages are zeros, as the tool's; where only the peer's come in, they are seen to.
std::uint8_t session::first_content() const {
  const bool comes_in =
      kind_->what == verb::read ? o_.client : kind_->takes_receives() && kind_->how == form::stream && !o_.client;
  return comes_in ? untouched : std::uint8_t{0};
}

void session::check_request() const {
  if (request_.major != version_major || request_.minor != version_minor)
    throw peer_failure(fmt::format("the client is qperf {}.{}, not {}.{}", request_.major, request_.minor,
                                   version_major, version_minor));
  if (kind_ == nullptr)
    throw peer_failure(
        fmt::format("the client asks for test {}, which is not one of a reliable connection", request_.test));
  if (!request_.manager)
    throw peer_failure(
        fmt::format("the client asks for {} without the connection manager (its option -cm 1): over "
                    "Ethernet it has no path",
                    kind_->name));
  if (request_.message_bytes > qperf_longest)
    throw peer_failure(fmt::format("the client asks for messages of {} bytes: up to {} are served",
                                   request_.message_bytes, qperf_longest));
  const bool counts = request_.messages != 0 && kind_->takes_receives() && kind_->how == form::stream;
  if (request_.seconds > most_seconds || (request_.seconds == 0 && !counts))
    throw peer_failure(
        fmt::format("the client asks for {} seconds: 1 to {} are served", request_.seconds, most_seconds));
}

void session::answer() {
  if (!socket_.accept()) throw peer_failure("no client could be accepted");
  request_ = request::parse(hear(request::bytes, "its request"));
  kind_ = find_test(request_.test);
  check_request();
  reception clients(service_, cm::service_id(cm::port_space::tcp, o_.port), std::string("qperf ") + kind_->name,
                    [this] { return std::make_unique<lane>(host_, service_, o_.route, size(), first_content()); });
  say(number_text(o_.port), "its connection");
  wait_for_link(clients);
}

/// The tool serves one client at a time as well, but waits for this one for ever, and for the others their own time.
void session::wait_for_link(reception& clients) {
  const sim::time_ps began = service_.now_ps();
  for (;;) {
    lane_ = next_as<lane>(clients, nullptr, peer_watch::look_every_ps);
    if (lane_ != nullptr) return;
    if (socket_.peer_closed()) throw peer_failure("the client has left: it does not connect over RoCE");
    const bool others = socket_.others_wait();
    if (service_.now_ps() - began >= (others ? crowded_connect_ps : connect_ps))
      throw peer_failure(fmt::format("the client does not connect over RoCE, for {} s{}",
                                     (service_.now_ps() - began) / sim::ps_per_s, others ? " while others wait" : ""));
  }
}

void session::ask() {
  kind_ = find_test(o_.test);
  request_.test = kind_->place;
  request_.manager = true;
  request_.timeout_s = word_timeout_s;
  request_.messages = o_.messages;
  request_.seconds = o_.messages != 0 ? 0 : o_.seconds;
  const bool in_turns = kind_->how == form::in_turns || kind_->how == form::one_by_one;
  if (!kind_->is_atomic() || kind_->how == form::checked)
    request_.message_bytes = o_.size != 0 ? o_.size : in_turns ? turn_bytes : stream_bytes;
  if (!socket_.connect(o_.server, o_.port, exchange_ps))
    throw peer_failure(fmt::format("nobody answers at {}:{}", o_.server, o_.port));
  say(request_.text(), "our request");
  const std::uint32_t port = parse_number(hear(4, "its port"));
  if (port == 0 || port > 0xffff) throw peer_failure(fmt::format("the server names {} as its port", port));
  lane_ = std::make_unique<lane>(host_, service_, o_.route, size(), first_content());
  // The tool tells its port before it listens there.
  lane_->connection().connect_patiently(o_.peer, static_cast<std::uint16_t>(port), 1, exchange_ps);
}

void session::tell_places() {
  node own;
  own.address = lane_->memory().region->iova;
  own.rkey = lane_->memory().region->rkey;
  say(own.text(), "the places of memory");
  theirs_ = node::parse(hear(node::bytes, "the place of its memory"));
}

void session::tell_results() {
  if (o_.client) {
    const statistics s = statistics::parse(hear(statistics::bytes, "its results"));
    fmt::print("  the server sent {} messages and received {} in {} ms\n", s.sent.messages, s.received.messages,
               s.took_ms);
    say(after_test, "its end");
    return;
  }
  statistics s;
  s.took_ms = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(end_ - began_).count());
  s.sent = {completed_ * size(), completed_, 0};
  s.received = {received_ * size(), received_, 0};
  say(s.text(), "our results");
  const std::string word = after_test;
  if (hear(word.size(), "the end") != word) throw peer_failure("what the client says at the end makes no sense");
}

// ---------------------------------------------------------------- the run

void session::count_wrong(application_result& r) const {
  r.wrong_bytes = wrong_;
  if (first_content() != untouched || received_ == 0) return;
  const std::uint8_t* begin = lane_->memory().at();
  r.wrong_bytes +=
      static_cast<std::uint64_t>(std::count_if(begin, begin + size(), [](std::uint8_t byte) { return byte != 0; }));
}

void session::print(application_result& r) const {
  const double seconds = static_cast<double>(took_ps_) * 1e-12;
  const std::uint64_t all = std::max(completed_, received_);
  if (kind_->how == form::in_turns || kind_->how == form::one_by_one)
    fmt::print(
        "  {}: {:.2f} us each way\n", kind_->name,
        seconds * 1e6 / static_cast<double>(std::max<std::uint64_t>(all, 1)) / (kind_->how == form::in_turns ? 2 : 1));
  else
    fmt::print("  {}: {:.2f} MB/s, {:.0f} messages/s\n", kind_->name,
               static_cast<double>(all * size()) / seconds * 1e-6, static_cast<double>(all) / seconds);
  std::fflush(stdout);
  r.sent = completed_;
  r.received = received_;
}

void session::run(application_result& r) {
  if (o_.client)
    ask();
  else
    answer();
  tell_places();
  r.local = fmt::format("QPN 0x{:06x}", lane_->qp()->qp_num);
  r.remote = wire::to_string(lane_->connection().peer_gid());
  if (kind_->takes_receives()) post_receives(kind_->how == form::in_turns ? 1 : lane::depth);
  if (kind_->what == verb::write) mark_own();
  synchronize(before_test);
  test();
  tell_results();
  print(r);
  count_wrong(r);
  r.took_ps = took_ps_;
  if (o_.client)
    lane_->connection().disconnect();
  else
    lane_->connection().wait_released();
}

}  // namespace rnic::serve::qperf

namespace rnic::serve {

bool is_qperf_test(const std::string& name) { return qperf::find_test(name) != nullptr; }

application_result run_qperf(served_host& host, address_exchange& socket, cm_service& service,
                             const qperf_options& options) {
  application_result r;
  try {
    qperf::session(host, socket, service, options).run(r);
    r.ok = r.wrong_bytes == 0;
    if (!r.ok) r.error = fmt::format("{} bytes are not what the tool sends", r.wrong_bytes);
  } catch (const peer_failure& e) {
    r.error = e.what();
  }
  return r;
}

}  // namespace rnic::serve
