/* Loaded into the CDKTF CLI before it starts: who asks it to stop is heard by Terraform, and nothing is begun after that.

cdktf 0.21 takes its own abort for success: it stops listening to Terraform, counts the stack as done although Terraform
is still at work, goes on with the next one, and ends with exit code 0. It also takes a Terraform that a signal has ended
for one that succeeded. So while Terraform runs, the signal goes to Terraform instead of cdktf, which waits for its end
as ever and then has a failure. `terraform-for-cdktf` begins no other once TPUENV_INTERRUPTED is set.
*/
"use strict";

const { createRequire } = require("node:module");
const { ReadStream } = require("node:tty");

const INTERRUPTED = 130;
const TYPED = "\x03";
const STOPS = new Set(["SIGINT", "SIGTERM", "SIGQUIT"]);

// The CLI's own copy, in which it runs `terraform apply` and `destroy`.
const terminals = createRequire(process.argv[1])("@cdktf/node-pty-prebuilt-multiarch");
const running = new Set();
const spawn = terminals.spawn;

function codeOf({ exitCode, signal }) {
  if (exitCode !== 0) return exitCode;
  if (signal) return 128 + signal;
  return process.env.TPUENV_INTERRUPTED ? INTERRUPTED : 0;
}

terminals.spawn = (...command) => {
  const terminal = spawn(...command);
  const onExit = terminal.onExit;
  running.add(terminal);
  onExit(() => running.delete(terminal));
  Object.defineProperty(terminal, "onExit", {
    value: (listener) => onExit((ended) => listener({ ...ended, exitCode: codeOf(ended) })),
  });
  return terminal;
};

const emit = process.emit;
process.emit = function (event, ...details) {
  if (!STOPS.has(event)) return emit.call(this, event, ...details);
  process.env.TPUENV_INTERRUPTED = "1";
  if (running.size === 0) return emit.call(this, event, ...details);
  for (const terminal of running) terminal.kill("SIGINT");
  return true;
};

// While cdktf asks for approval the terminal sends no signal for ^C, and cdktf would take the question away and wait on.
const push = ReadStream.prototype.push;
ReadStream.prototype.push = function (chunk, ...details) {
  if (this.isRaw && running.size > 0 && chunk?.includes(TYPED)) return process.emit("SIGINT", "SIGINT");
  return push.call(this, chunk, ...details);
};

process.on("exit", () => {
  if (process.env.TPUENV_INTERRUPTED) process.exitCode = INTERRUPTED;
});
