#include "testbenches/rnic/options.h"
namespace rnic::program {
int run_replay(const replay_options&) { throw usage_error("x"); }
}
