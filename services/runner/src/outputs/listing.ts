/** The jail's listing with paths as text. A path that is not valid UTF-8 cannot be named, so it is listed as omitted. */
import { isUtf8 } from "node:buffer";
import type { WorkspaceListing } from "@svc/jail-client";
import type { ListedFile, Listing } from "./outputs.ts";

export function decodeListing(listing: WorkspaceListing): Listing {
  const omitted = listing.omitted.map(({ path, reason }) => ({ path: path.toString("utf8"), reason }));
  const files: ListedFile[] = [];
  for (const file of listing.files) {
    const path = file.path.toString("utf8");
    if (isUtf8(file.path)) files.push({ ...file, path });
    else omitted.push({ path, reason: "name" });
  }
  const emptyDirectories: string[] = [];
  for (const path of listing.emptyDirectories) {
    if (isUtf8(path)) emptyDirectories.push(path.toString("utf8"));
    else omitted.push({ path: path.toString("utf8"), reason: "name" });
  }
  const { kept, missing, unlisted } = listing;
  return { files, emptyDirectories, kept, missing, omitted, unlisted };
}

/** The listing without what lies in one directory. */
export function withoutDirectory(listing: Listing, directory: string | undefined): Listing {
  if (directory === undefined) return listing;
  const isOutside = (path: string) => path !== directory && !path.startsWith(`${directory}/`);
  return {
    ...listing,
    files: listing.files.filter(({ path }) => isOutside(path)),
    emptyDirectories: listing.emptyDirectories.filter(isOutside),
    omitted: listing.omitted.filter(({ path }) => isOutside(path)),
  };
}
