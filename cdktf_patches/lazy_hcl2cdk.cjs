/* Loaded into the CDKTF CLI before it starts: the converter of HCL is loaded by `cdktf convert` and by nothing else.

cdktf 0.21 loads @cdktf/hcl2cdk, and jsii-rosetta and the TypeScript compiler with it, at the start of every command:
half of the time until a command begins its work. What it uses of it is `convert`.
*/
"use strict";

const Module = require("node:module");

const CONVERTER = "@cdktf/hcl2cdk";
const load = Module._load;

Module._load = function (request, ...details) {
  const whole = () => load.call(this, request, ...details);
  if (request !== CONVERTER) return whole();
  // The CLI's bundle copies the names that are there at once, as getters; every other name loads the module as well.
  const names = { __esModule: true, get convert() { return whole().convert; } };
  return new Proxy(names, { get: (known, name) => (name in known ? known[name] : whole()[name]) });
};
