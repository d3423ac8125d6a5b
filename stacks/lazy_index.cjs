// Resolves a provider binding's lib/index.js, which requires every file it has, to the lib/lazy-index.js beside it, which
// requires a file when it is first asked for. Loaded into the jsii kernel by stacks/bindings.py.
"use strict";

const { existsSync } = require("node:fs");
const Module = require("node:module");
const { join, sep } = require("node:path");

const INDEX = join("lib", "index.js");
const PROVIDER = sep + join("@cdktf", "provider-");

const resolve = Module._resolveFilename;
Module._resolveFilename = function (...request) {
  const file = resolve.apply(this, request);
  if (!file.endsWith(sep + INDEX) || !file.includes(PROVIDER)) return file;
  const lazy = file.slice(0, -INDEX.length) + join("lib", "lazy-index.js");
  return existsSync(lazy) ? lazy : file;
};
