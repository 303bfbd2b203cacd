/** Makes folders one by one: mkdir's recursive form never returns where the kernel answers ENOENT for a new one, as in /proc. */
import { accessSync, constants, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { Problem } from "../problem.ts";

/** Makes the folder and all its parents. Returns whether it is new. `mode` applies only to this folder. */
export function makeFolder(path: string, mode?: number): boolean {
  if (existsSync(path)) {
    if (statSync(path).isDirectory()) return false;
    throw new Problem(`${path} exists and is not a folder`, "Move it away, or choose another place.");
  }
  const parent = dirname(path);
  if (parent !== path) makeFolder(parent);
  try {
    mkdirSync(path, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && statSync(path, { throwIfNoEntry: false })?.isDirectory()) return false;
    throw new Problem(`the folder ${path} cannot be made (${code})`, "Choose another place.");
  }
  return true;
}

export function demandWritable(path: string): void {
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw new Problem(
      `the folder ${path} cannot be written to (${(error as NodeJS.ErrnoException).code})`,
      "Choose another one: --data-dir DIR or SVC_DATA_DIR.",
    );
  }
}
