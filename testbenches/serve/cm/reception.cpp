// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/cm/reception.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "model/wire/ethernet.h"
#include "testbenches/serve/links/real_time.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr std::uint64_t look_every = 10'000 * sim::ps_per_us;  // for those whose time is over

}  // namespace

reception::reception(cm_service& service, std::uint64_t service_id, std::string name, maker make, cm::service_kind kind)
    : service_(service), service_id_(service_id), name_(std::move(name)), make_(std::move(make)) {
  if (!service_.manager().listen(service_id_, kind)) throw std::runtime_error("somebody listens there already");
}

reception::~reception() { close(); }

void reception::close() {
  if (!listening_) return;
  listening_ = false;
  service_.manager().stop_listening(service_id_);
  guests_.clear();  // who was answered is told by the end of its connection
  cm_service::event e;
  while (service_.manager().take_request(e)) {
    if (e.what == cm::event::kind::request)
      service_.manager().reject(e.id, cm::reason::invalid_service, {}, service_.now_ps());
    else
      service_.manager().abandon(e.id, service_.now_ps());
  }
}

void reception::enough() {
  if (last_) close();
}

void reception::say(const gid_bytes& from, const std::string& what) const {
  fmt::print("{}: {} {}\n", name_, wire::to_string(from), what);
  std::fflush(stdout);
}

void reception::answer(const cm_service::event& request) {
  std::string why;
  try {
    guest g{make_(), request.from.gid, service_.now_ps()};
    if (!g.who->connection().begin_accept(request, reads_)) {
      ++count_.gone;
      return;
    }
    guests_.push_back(std::move(g));
    ++count_.answered;
    return;
  } catch (const std::exception& e) {
    why = e.what();
  }
  ++count_.refused;
  service_.manager().reject(request.id, cm::reason::no_resources, {}, service_.now_ps());
  say(request.from.gid, "was refused: " + why);
}

/// Of those who are asked for: confirmed clients of other hosts wait for their turn, and take no places.
std::size_t reception::places_taken(const gid_bytes* of) const {
  return static_cast<std::size_t>(
      std::count_if(guests_.begin(), guests_.end(), [of](const guest& g) { return of == nullptr || g.from == *of; }));
}

void reception::answer_requests(const gid_bytes* of) {
  while (places_taken(of) < most_half_open) {
    const auto e = service_.take_request([of](const cm_service::event& r) { return !of || r.from.gid == *of; });
    if (!e) return;
    answer(*e);
  }
}

std::unique_ptr<arrival> reception::confirmed(const gid_bytes* of) {
  for (auto g = guests_.begin(); g != guests_.end();) {
    const auto at = g++;
    switch (at->who->connection().look()) {
      case rdma_connection::progress::waits:
        break;
      case rdma_connection::progress::gone:
        ++count_.gone;
        say(at->from, "changed its mind before it was served");
        guests_.erase(at);
        break;
      case rdma_connection::progress::confirmed: {
        if (of != nullptr && at->from != *of) break;
        ++count_.confirmed;
        auto who = std::move(at->who);
        guests_.erase(at);
        return who;
      }
    }
  }
  return nullptr;
}

void reception::drop_overdue() {
  bool crowded = guests_.size() >= most_half_open && service_.manager().has_event();
  for (auto g = guests_.begin(); g != guests_.end();) {
    const auto at = g++;
    if (at->who->connection().is_confirmed()) continue;
    const std::uint64_t waited = service_.now_ps() - at->since_ps;
    const bool over = waited >= (crowded ? crowded_ps : confirm_ps);
    crowded = false;  // only the oldest makes room
    if (!over) continue;
    ++count_.unconfirmed;
    at->who->connection().give_up();
    say(at->from, fmt::format("did not confirm its connection within {} s", waited / sim::ps_per_s));
    guests_.erase(at);
  }
}

std::unique_ptr<arrival> reception::next(const gid_bytes* of, std::uint64_t timeout_ps) {
  const std::uint64_t now = service_.now_ps();
  const std::uint64_t deadline = timeout_ps > for_ever - now ? for_ever : now + timeout_ps;
  for (;;) {
    answer_requests(of);
    if (auto who = confirmed(of)) return who;
    const std::uint64_t present = service_.now_ps();
    if (present >= deadline) return nullptr;
    drop_overdue();
    service_.wait_news(std::min(guests_.empty() ? sim::ps_per_s : look_every, deadline - present));
  }
}

std::optional<cm_service::event> reception::next_question(std::uint64_t timeout_ps) {
  return service_.wait_request(timeout_ps);
}

}  // namespace rnic::serve
