// SPDX-License-Identifier: Apache-2.0
// `rnic serve --app script`: a host whose programs are commands of a client, one JSON object a line.
#pragma once

#include "testbenches/serve/cm/cm_service.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/host/served_host.h"
#include "testbenches/serve/script/line_channel.h"

namespace rnic::serve::script {

/// Serves the next client of the channel to its end, and destroys what it has left. `gid_index`: that commands take
/// when they name none. In an SC_THREAD. The run is `ok` when every object of the client could be destroyed; what
/// its commands got wrong is told to the client and counted.
application_result run_script(served_host& host, cm_service& service, line_channel& channel, int gid_index);

}  // namespace rnic::serve::script
