// SPDX-License-Identifier: Apache-2.0
// The code of the TOML library, with the assertions of toml_text.h.
#define TOML_IMPLEMENTATION
#include "model/sim/toml_text.h"
