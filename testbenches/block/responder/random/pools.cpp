// SPDX-License-Identifier: Apache-2.0
#include "testbenches/block/responder/random/pools.h"

#include "model/transport/transport_cr.h"

namespace rnic::transport::random_test {

namespace {

/// The parts of the responder are its own, and no function tells how full they are: no hardware would ask. Where an
/// explicit instantiation names a member, the language does not look at its access.
template <class Name, auto Member>
struct opened {
  friend constexpr auto member(Name) { return Member; }
};

// NOLINTBEGIN(bugprone-macro-parentheses): a pointer to a member has none.
// `object.*member(NAME{})` is the member.
#define RNIC_OPENED(NAME, MEMBER)       \
  struct NAME {                         \
    friend constexpr auto member(NAME); \
  };                                    \
  template struct opened<NAME, &MEMBER>
// NOLINTEND(bugprone-macro-parentheses)

RNIC_OPENED(slots_of, responder::slots_);
RNIC_OPENED(backlog_of, responder::backlog_);
RNIC_OPENED(flows_of, responder::flows_);
RNIC_OPENED(writes_of, responder::writes_);
RNIC_OPENED(completions_of, responder::completions_);
RNIC_OPENED(receives_of, responder::receives_);
RNIC_OPENED(places_of, responder::places_);
RNIC_OPENED(withdrawal_of, responder::withdrawal_);
RNIC_OPENED(held_of, responder::held_);
RNIC_OPENED(errors_of, responder::errors_);
RNIC_OPENED(admission_of, responder::admission_);
RNIC_OPENED(control_of, responder::control_);
RNIC_OPENED(waiting_frames_of, flow_table::frames_);
RNIC_OPENED(free_frame_of, flow_table::free_frame_);
RNIC_OPENED(asked_places_of, place_lookup::next_);
RNIC_OPENED(read_places_asked_of, place_lookup::reads_);
RNIC_OPENED(phase_of, key_withdrawal::at_);
RNIC_OPENED(fetching_of, held_reads::fetching_);
RNIC_OPENED(passing_of, held_reads::passing_);
RNIC_OPENED(attention_of, error_state::attention_);
RNIC_OPENED(untold_of, error_state::errors_);
RNIC_OPENED(looks_of, error_state::polls_);
RNIC_OPENED(commands_of, read_port::waiting_);
RNIC_OPENED(read_places_of, read_port::places_);
RNIC_OPENED(all_read_places_of, read_port::all_places_);
RNIC_OPENED(tags_of_contexts, icm::context_cache<icm::responder_context>::tags_);
RNIC_OPENED(tags_of_histories, icm::context_cache<icm::rdma_resources>::tags_);
#undef RNIC_OPENED

template <class Name, class Object>
const auto& look(const Object& o) {
  return o.*member(Name{});
}

bool is_pinned(const icm::context_tags& tags) {
  for (unsigned i = 0; i < tags.size(); ++i)
    if (tags[i].pins != 0) return true;
  return false;
}

std::size_t free_frames(const flow_table& flows) {
  std::size_t n = 0;
  for (std::uint16_t i = look<free_frame_of>(flows); i != no_link; i = look<waiting_frames_of>(flows)[i].next) ++n;
  return n;
}

std::string describe(const responder_flow& f) {
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  return "queue pair " + number(f.qpn) + " has a place (packets " + number(f.slots) + ", READs " + number(f.reads()) +
         ", of these in memory " + number(f.requests.held) + ", ACK " + number(f.ack.pending ? 1 : 0) + ", NAK " +
         number(f.nak.pending ? 1 : 0) + ", answers handed " + number(f.answers.handed) + ", to do " + number(f.todo) +
         ", frame " + number(f.waits.head) + ", waits " + (f.waits.listed ? "in line " : "") +
         (f.waits.grant ? "for the READ engine " : "") + (f.waits.context ? "for its context " : "") +
         (f.waits.receive ? "for a receive " : "") + (f.ctx == nullptr ? "without context" : "") + ")";
}

}  // namespace

std::vector<std::string> what_is_left(half& of, const setup& with) {
  responder& r = of.requests;
  std::vector<std::string> left;
  const auto expect = [&](bool empty, const char* what) {
    if (!empty) left.emplace_back(what);
  };
  const flow_table& flows = look<flows_of>(r);
  for (std::uint16_t i = 0; i < flows.places(); ++i)
    if (flows[i].used) left.push_back(describe(flows[i]));
  const slot_table& slots = look<slots_of>(r);
  expect(slots.empty() && slots.taken_from(0) == slots.size(), "a packet is between check and commit");
  expect(free_frames(flows) == look<waiting_frames_of>(flows).size(), "a frame waits");
  expect(flows.to_do().empty(), "a queue pair is in the list of those that are to be attended to");
  expect(!look<admission_of>(r).waits(), "a queue pair is in the line of those whose frames wait");
  expect(look<backlog_of>(r).empty(), "a request is in host memory");
  const held_reads& held = look<held_of>(r);
  expect(look<fetching_of>(held).empty() && look<passing_of>(held) == no_link, "a request comes from host memory");
  expect(look<commands_of>(r.reads).empty(), "a command for the READ generator waits");
  expect(r.reads.idle() && look<read_places_of>(r.reads) == look<all_read_places_of>(r.reads),
         "a request has a place in the READ generator");
  const place_lookup& places = look<places_of>(r);
  expect(look<asked_places_of>(places) == no_link && look<read_places_asked_of>(places) == 0,
         "a translation is asked for");
  const payload_writes& writes = look<writes_of>(r);
  expect(writes.asked() == writes.done(), "an answer of a payload write is owed");
  expect(static_cast<int>(look<phase_of>(look<withdrawal_of>(r))) == 0, "a key is being withdrawn");
  const error_state& errors = look<errors_of>(r);
  expect(look<attention_of>(errors).empty(), "an error of a queue pair is to be attended to");
  expect(look<untold_of>(errors).empty(), "an error is to be told to the requester's half");
  for (const queue_pair& q : with.queue_pairs) {
    expect(!look<completions_of>(r).holds(q.qpn), "a completion waits");
    expect(!look<receives_of>(r).flushing(q.qpn), "a receive is to be flushed");
  }
  expect(!look<control_of>(r).resetting(), "a reset is under way");
  expect(!is_pinned(look<tags_of_contexts>(r.contexts())), "a context is pinned");
  expect(!is_pinned(look<tags_of_histories>(r.histories())), "a ring of READs and atomics is pinned");
  expect(of.frames.in_use() == 0, "a frame is not back in its pool");
  return left;
}

bool has_place(const half& of, std::uint32_t qpn) { return look<flows_of>(of.requests).find(qpn) != no_link; }

bool attends_to_errors(const half& of) {
  const error_state& errors = look<errors_of>(of.requests);
  return !look<looks_of>(errors).empty() || !look<untold_of>(errors).empty();
}

}  // namespace rnic::transport::random_test
