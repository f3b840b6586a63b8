// SPDX-License-Identifier: Apache-2.0
// Answers to the peer. ACKs may be coalesced, answers of repeated requests may be given up for those of later ones: it
// is held what each says, that every READ and atomic has all of its answer, and that the last ACK or NAK that is owed
// leaves.
#include <algorithm>
#include <set>

#include "testbenches/block/responder/random/check.h"
#include "testbenches/block/responder/random/reference_codes.h"

namespace rnic::transport::random_test {

namespace {

class answer_checker {
 public:
  answer_checker(const system& s, const queue_pair& q, const expectation& must, std::vector<std::string>& out)
      : s_(s), q_(q), must_(must), out_(out), answered_(q.first_psn - 1) {}

  void run() {
    for (const answer& a : s_.ports.answers) {
      if (a.peer != q_.peer()) continue;
      const wire::operation op = wire::operation_of(a.opcode);
      if (op == wire::operation::atomic_acknowledge)
        atomic(a);
      else if (op != wire::operation::acknowledge)
        read(a);
      else if ((a.syndrome & kind_of_syndrome) == kind_ack)
        acknowledgement(a);
      else
        refusal(a);
    }
    all_there();
  }

 private:
  void say(const answer& a, const std::string& what) {
    out_.push_back(name_of(q_) + "answer to PSN " + hex(a.psn.value()) + " " + what);
  }
  void say(const std::string& what) { out_.push_back(name_of(q_) + what); }
  void answered_to(wire::psn_t psn) {
    if (psn.after(answered_)) answered_ = psn;
  }
  static bool later(std::uint32_t a, std::uint32_t b) { return wire::psn_t(a).after(wire::psn_t(b)); }
  /// An answer to a repetition may say the MSN of what was executed meanwhile.
  bool fits(std::uint32_t msn, std::uint32_t first) const {
    return must_.repeats ? !later(first, msn) && !later(msn, must_.msn) : msn == first;
  }

  void acknowledgement(const answer& a) {
    const auto accepted = must_.msn_of.find(a.psn.value());
    if (accepted == must_.msn_of.end())
      say(a, "is an ACK, but that was not accepted");
    else if (!fits(a.msn, accepted->second))
      say(a, "has MSN " + hex(a.msn) + ", expected " + hex(accepted->second));
    answered_to(a.psn);
  }

  void refusal(const answer& a) {
    const auto same = [&](const expectation::nak& n) {
      return n.syndrome == a.syndrome && n.psn == a.psn && fits(a.msn, n.msn);
    };
    const auto n = std::find_if(must_.naks.begin(), must_.naks.end(), same);
    if (n == must_.naks.end())
      say(a, "is a NAK with syndrome " + hex(a.syndrome) + " and MSN " + hex(a.msn) + ", which is not expected");
    else if (n->fatal)
      ++fatal_;
    answered_to(a.psn - 1);
    const auto& last = must_.last_nak;
    if (last && last->syndrome == a.syndrome && last->psn == a.psn) last_nak_seen_ = true;
  }

  void atomic(const answer& a) {
    for (const expectation::atomic& x : must_.atomics)
      if (x.psn == a.psn) {
        if (a.original != x.original) say(a, "has " + hex(a.original) + ", expected " + hex(x.original));
        return data(a);
      }
    say(a, "is of an atomic, and there was none");
  }

  void read(const answer& a) {
    for (const expectation::read& x : must_.reads) {
      const std::uint32_t packet = a.psn.since(x.psn);
      if (packet >= x.packets) continue;
      const std::uint32_t offset = std::min(packet * q_.mtu, x.length), length = std::min(q_.mtu, x.length - offset);
      const auto from = s_.memory.bytes.begin() + static_cast<std::ptrdiff_t>(x.bus + offset);
      if (a.payload.size() != length)
        say(a, "has " + std::to_string(a.payload.size()) + " bytes, expected " + std::to_string(length));
      else if (!std::equal(a.payload.begin(), a.payload.end(), from))
        say(a, "has other bytes than memory");
      return data(a);
    }
    say(a, "is of a READ, and there was none");
  }
  void data(const answer& a) {
    answered_to(a.psn);
    data_.insert(a.psn.value());
  }

  void all_there() {
    for (const expectation::read& x : must_.reads)
      for (std::uint32_t i = 0; i < x.packets; ++i)
        if (data_.count((x.psn + i).value()) == 0)
          return say("response to READ " + hex(x.psn.value()) + " lacks packet " + std::to_string(i) + " of " +
                     std::to_string(x.packets));
    for (const expectation::atomic& x : must_.atomics)
      if (data_.count(x.psn.value()) == 0) return say("atomic " + hex(x.psn.value()) + " is not answered");
    const auto fatal = std::count_if(must_.naks.begin(), must_.naks.end(), [](const auto& n) { return n.fatal; });
    if (fatal_ != fatal) say(std::to_string(fatal_) + " NAKs that end it, expected " + std::to_string(fatal));
    if (must_.acknowledged && must_.acknowledged->after(answered_))
      say("PSN " + hex(must_.acknowledged->value()) + " has asked for an ACK, the last one is of " +
          hex(answered_.value()));
    if (must_.last_nak && !last_nak_seen_)
      say("NAK of PSN " + hex(must_.last_nak->psn.value()) + " with syndrome " + hex(must_.last_nak->syndrome) +
          " is missing");
  }

  const system& s_;
  const queue_pair& q_;
  const expectation& must_;
  std::vector<std::string>& out_;
  wire::psn_t answered_;  // the last that is
  std::set<std::uint32_t> data_;
  std::ptrdiff_t fatal_ = 0;
  bool last_nak_seen_ = false;
};

}  // namespace

void check_answers(const system& s, const queue_pair& q, const expectation& must, std::vector<std::string>& out) {
  answer_checker(s, q, must, out).run();
}

}  // namespace rnic::transport::random_test
