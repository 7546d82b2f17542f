<?php
// Idles until SIGTERM: its handler closes the input for which its child waits. PHP itself handles SIGTERM too.
$program = proc_open(['cat'], [0 => ['pipe', 'r']], $pipes);
$child = proc_get_status($program)['pid'];
pcntl_async_signals(true);
pcntl_signal(SIGTERM, function () use (&$pipes) { fclose($pipes[0]); }, false);
echo 'ready ', getmypid(), "\n";
while (pcntl_waitpid($child, $status) < 0) {
}
echo "done\n";
