<?php
// Reads the output of a program that writes late.
$program = proc_open(['sh', '-c', "sleep $argv[1]; echo done"], [1 => ['pipe', 'w'], 2 => ['pipe', 'w']], $pipes);
echo stream_get_contents($pipes[1]);
proc_close($program);
