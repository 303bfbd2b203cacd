// Last in every preload. A Node that was started ahead of its program finds a descriptor that no other has: it waits there until
// it is told what it will be. All others go on.
"use strict";

const { statSync } = require("node:fs");

// FD_OBJECT, from FD_BASE_PRESTARTED on, of jail/src/init/confine.h. A program cannot have it by chance: the test is for this very file.
const OBJECT = "/proc/self/fd/506";
const SHARED = "/memfd:prestarted (deleted)";

exports.waitForProgram = () => {
  if (statSync(OBJECT, { throwIfNoEntry: false }) === undefined) return;
  require("./prestarted.cjs").becomeProgram(OBJECT, SHARED);
};
