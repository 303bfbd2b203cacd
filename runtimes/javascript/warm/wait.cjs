// Last in every preload. A pre-started Node has a descriptor that no other process has, and waits here for its program.
// All others return.
"use strict";

const { statSync } = require("node:fs");

// FD_OBJECT of jail/src/init/confine.h, counted from FD_BASE_PRESTARTED. A program's own descriptor of this number is not
// mistaken for it: becomeProgram tests for this very file.
const OBJECT = "/proc/self/fd/506";
const SHARED = "/memfd:prestarted (deleted)";

exports.waitForProgram = () => {
  if (statSync(OBJECT, { throwIfNoEntry: false }) === undefined) return;
  require("./prestarted.cjs").becomeProgram(OBJECT, SHARED);
};
