<?php
// Idles until SIGTERM: its handler closes the input for which its child waits. PHP itself handles SIGTERM too.
$program = proc_open(['cat'], [0 => ['pipe', 'r']], $pipes);
pcntl_async_signals(true);
pcntl_signal(SIGTERM, function () use (&$pipes) { fclose($pipes[0]); });
echo 'ready ', getmypid(), "\n";
proc_close($program);
echo "done\n";
