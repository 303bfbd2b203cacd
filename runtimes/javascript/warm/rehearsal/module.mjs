// Loaded once before the program arrives, so that Node has everything ready that it needs to load modules.
import { basename } from "node:path";

export default basename(import.meta.url);
