// The same for scripts.
"use strict";

module.exports = require("node:path").basename(__filename);
