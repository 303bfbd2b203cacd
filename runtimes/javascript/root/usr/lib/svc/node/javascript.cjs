// Preloaded into every JavaScript run.
"use strict";

require("./interop.cjs");
require("./ahead.cjs").waitForProgram();
