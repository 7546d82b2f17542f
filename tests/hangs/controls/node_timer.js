// Node.js and a child of it that waits for a message, which a timer sends.
const { fork } = require("child_process");

if (process.argv[2] === "child") {
  process.on("message", () => process.exit(0));
} else {
  const child = fork(__filename, ["child"]);
  child.on("exit", () => console.log("done"));
  setTimeout(() => child.send("end"), 1000 * Number(process.argv[2]));
}
