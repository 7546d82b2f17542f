// What mprun does about signals once nothing runs any more that they could be meant for. Called by the supervisor of a
// job or a program before it waits for people to read its last words.
#pragma once

namespace mprun {

/// What came to stop the job, or the program, has nothing left to stop and is forgotten. From now on such a signal ends
/// mprun, and SIGUSR1 and SIGUSR2 do nothing.
void obey_signals();

}  // namespace mprun
