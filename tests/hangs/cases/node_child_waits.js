// A child of Node.js waits for a message that its parent does not send; the parent waits for its end.
const { fork } = require("child_process");

if (process.argv[2] === "child") {
  process.on("message", (message) => {
    if (message === "end") process.exit(0);
  });
} else {
  const child = fork(__filename, ["child"]);
  child.on("exit", () => console.log("done"));
  child.send("begin");
}
