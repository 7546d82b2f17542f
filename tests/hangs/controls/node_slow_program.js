// Node.js reads the output of a program that takes its time.
const { spawn } = require("child_process");

const child = spawn("sh", ["-c", `sleep ${process.argv[2]}; echo done`]);
child.stdout.pipe(process.stdout);
