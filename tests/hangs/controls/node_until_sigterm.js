// Node.js that idles until it is asked to end, like a server without clients.
const { spawn } = require("child_process");

const child = spawn("cat", { stdio: ["pipe", "inherit", "inherit"] });
child.on("exit", () => console.log("done"));
process.on("SIGTERM", () => child.stdin.end());
console.log("ready", process.pid);
