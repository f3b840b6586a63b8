// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/replay/replay_report.h"

#include <algorithm>

#include "testbenches/replay/questions.h"

namespace rnic::program {

using namespace replay;

namespace {

std::map<std::uint8_t, const obtained_frame*> typical_answers(const comparison& c) {
  std::map<std::uint8_t, std::vector<const obtained_frame*>> by_opcode;
  for (const obtained_frame& a : c.answers())
    if (a.followed) by_opcode[a.opcode].push_back(&a);
  std::map<std::uint8_t, const obtained_frame*> typical;
  for (auto& [opcode, all] : by_opcode) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
    std::nth_element(all.begin(), middle, all.end(), [](const auto* a, const auto* b) {
      return a->latency != b->latency ? a->latency < b->latency : a->first_bit < b->first_bit;
    });
    typical[opcode] = *middle;
  }
  return typical;
}

}  // namespace

replay_report::replay_report(const replay_options& o, const plan& the_plan, const comparison& c, const replay_result& r)
    : options(o),
      p(the_plan),
      compared(c),
      run(r),
      answer_to(the_plan.frames.size(), 0),
      question_of(captured_questions(the_plan)),
      latencies(compare_latencies(the_plan, c, question_of)),
      typical(typical_answers(c)) {
  using state = expectation::state;
  for (const expectation& e : c.expectations()) {
    matched += e.now == state::matched || e.now == state::covered ? 1 : 0;
    covered += e.now == state::covered ? 1 : 0;
    different += e.now == state::different ? 1 : 0;
    missing += e.now == state::open ? 1 : 0;
  }
  for (std::size_t i = 0; i < c.answers().size(); ++i) {
    const std::size_t q = c.answers()[i].question;
    // Of the packets of a READ's answer the last one is followed: with it the question is answered.
    if (q != 0 && (answer_to[q - 1] == 0 || (c.answers()[i].followed && !c.answers()[answer_to[q - 1] - 1].followed)))
      answer_to[q - 1] = i + 1;
  }
  const agreement judge(c, the_plan);
  for (const difference& d : c.differences()) {
    if (d.frame != 0) difference_of.emplace(d.frame, &d);
    extra_answers += d.kind == difference_kind::extra_answer ? 1 : 0;
    extra_requests += d.kind == difference_kind::extra_request ? 1 : 0;
    is_fatal.push_back(judge.is_fatal(d));
    fatal += is_fatal.back() ? 1 : 0;
  }
}

bool replay_report::agrees() const {
  if (options.expect == "none") return true;
  return options.expect == "fatal" ? fatal == 0 : compared.differences().empty();
}

answer_summaries summarise(const answer_kind& k) {
  std::vector<sim::time_ps> captured, obtained;
  for (const answer_times& t : k.times) {
    captured.push_back(t.captured);
    obtained.push_back(t.obtained);
  }
  return {summarise(captured), summarise(obtained)};
}

const char* service_name(wire::transport t) {
  if (t == wire::transport::xrc) return "XRC";
  return t == wire::transport::uc ? "UC" : t == wire::transport::ud ? "UD" : "RC";
}

}  // namespace rnic::program
