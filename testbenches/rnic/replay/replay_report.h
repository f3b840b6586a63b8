// SPDX-License-Identifier: Apache-2.0
// What `rnic replay` tells of a finished replay.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "testbenches/replay/agreement.h"
#include "testbenches/replay/compare.h"
#include "testbenches/replay/latencies.h"
#include "testbenches/replay/plan.h"
#include "testbenches/replay/run.h"
#include "testbenches/rnic/options.h"
#include "testbenches/rnic/results.h"

namespace rnic::program {

/// Everything about a finished replay, and the counts that are asked for. Keeps references to what it is made of.
struct replay_report {
  replay_report(const replay_options& o, const replay::plan& the_plan, const replay::comparison& c,
                const replay::replay_result& r);

  const replay_options& options;
  const replay::plan& p;
  const replay::comparison& compared;
  const replay::replay_result& run;
  /// `matched` has those that were given together with a later one (`covered`).
  std::uint64_t matched = 0, covered = 0, different = 0, missing = 0;
  std::uint64_t extra_answers = 0, extra_requests = 0;  ///< that the real host did not send
  std::uint64_t fatal = 0;                              ///< differences
  std::vector<bool> is_fatal;                           ///< by index of compared.differences()
  std::vector<std::size_t> answer_to;                   ///< by frame of the capture: index into answers() + 1
  std::vector<std::size_t> question_of;                 ///< captured_questions()
  std::map<std::size_t, const replay::difference*> difference_of;  ///< by number of the frame
  std::vector<replay::answer_kind> latencies;
  /// Of each kind of answer the one with the median latency among those that were followed.
  std::map<std::uint8_t, const replay::obtained_frame*> typical;

  /// Whether the answers agree as far as --expect asks.
  bool agrees() const;
};

/// "RC", "UC" or "UD".
const char* service_name(wire::transport t);

struct answer_summaries {
  sample_summary captured, obtained;
};
/// Of one kind, which has at least one answer.
answer_summaries summarise(const replay::answer_kind& k);

void print(const replay_report& r);
nlohmann::json to_json(const replay_report& r);

}  // namespace rnic::program
