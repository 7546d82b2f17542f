// Node.js that idles until it is told to end, as a server does that has nobody to serve.
const { spawn } = require("child_process");

const child = spawn("cat", { stdio: ["pipe", "inherit", "inherit"] });
child.on("exit", () => console.log("done"));
process.on("SIGTERM", () => child.stdin.end());
console.log("ready", process.pid);
