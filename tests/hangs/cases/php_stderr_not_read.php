<?php
// Reads all output of a program before its error output, which fills its pipe. PHP handles SIGTERM in every script.
$program = proc_open(['sh', '-c', 'head -c 300000 /dev/zero >&2; echo done'], [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes);
echo stream_get_contents($pipes[1]); // hangs here
echo stream_get_contents($pipes[2]);
proc_close($program);
