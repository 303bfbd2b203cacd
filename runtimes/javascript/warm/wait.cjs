// Last in every preload. A pre-started Node has a descriptor that no other process has, and waits here for its program.
// All others return.
"use strict";

const { statSync } = require("node:fs");

// FD_OBJECT, from FD_BASE_PRESTARTED on, of jail/src/init/confine.h. A program cannot have it by chance: the test is for this very file.
const OBJECT = "/proc/self/fd/506";
const SHARED = "/memfd:prestarted (deleted)";

exports.waitForProgram = () => {
  if (statSync(OBJECT, { throwIfNoEntry: false }) === undefined) return;
  require("./prestarted.cjs").becomeProgram(OBJECT, SHARED);
};
