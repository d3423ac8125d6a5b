// Required into every node process of a measured run: writes the process's peak memory, in kilobytes, when it ends.
"use strict";

const { writeFileSync } = require("node:fs");
const { join } = require("node:path");

process.on("exit", () => {
  writeFileSync(join(process.env.BENCH_FOLDER, `${process.pid}.node`), String(process.resourceUsage().maxRSS));
});
