// Loaded once before a program comes, so that Node has its ways with modules ready.
import { basename } from "node:path";

export default basename(import.meta.url);
