/**
 * Which parts of the workspace of a session's run can be outputs. The jail lists everything, for the session's state. Callers see what they would
 * see without a session, less what the session brought. Pure.
 */
import { directoriesOf, isReservedName } from "@svc/contracts";
import type { OwnPaths } from "../inputs/own-paths.ts";
import { filtered } from "../outputs/listing.ts";
import type { Listing } from "../outputs/outputs.ts";
import type { Restored } from "./restore.ts";

export function outputsView(listing: Listing, own: OwnPaths, restored: Restored | undefined): Listing {
  const isSeen = (directory: string) =>
    !directory.slice(directory.lastIndexOf("/") + 1).startsWith(".") || own.isIn(directory);
  const isVisible = (path: string) => !isReservedName(path) && directoriesOf(path).every(isSeen);
  const visible = filtered(listing, isVisible);
  const links = visible.symlinks.filter(({ path, target }) => {
    const before = restored?.members.get(path);
    return before?.type !== "symlink" || before.target !== target;
  });
  return {
    ...visible,
    emptyDirectories: visible.emptyDirectories.filter(isSeen),
    omitted: [...visible.omitted, ...links.map(({ path }) => ({ path, reason: "type" as const }))],
  };
}
