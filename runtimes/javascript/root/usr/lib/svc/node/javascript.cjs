// Preloaded into every JavaScript run.
"use strict";

require("./interop.cjs");
require("./warm/wait.cjs").waitForProgram();
