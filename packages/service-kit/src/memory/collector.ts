/** V8's collector as a function. Only modules of this folder may call it: whoever collects stops the whole process. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** `last-resort`: collects until nothing more is found, and gives what is free back to the machine. */
type Collection = { type: "minor" } | { type: "major"; flavor: "last-resort" };

let exposed: ((collection: Collection) => void) | undefined;

export function collect(collection: Collection): void {
  exposed ??= expose();
  exposed(collection);
}

/** V8 gives it to a new context; no other code of the process sees it. */
function expose(): (collection: Collection) => void {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as (collection: Collection) => void;
  setFlagsFromString("--no-expose-gc");
  return gc;
}
