// What mprun does about signals once nothing runs any more that they could be meant for. The supervisor of a job or a
// program calls it before it waits for the reader of its last words.
#pragma once

namespace mprun {

/// Discards signals that were to stop the job or the program, as nothing is left to stop. From now on such a signal
/// ends mprun, and SIGUSR1 and SIGUSR2 do nothing.
void obey_signals();

}  // namespace mprun
