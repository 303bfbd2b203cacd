/** The jail's listing with paths as text. A path that is not valid UTF-8 cannot be named, so it is listed as omitted. */
import { isUtf8 } from "node:buffer";
import type { WorkspaceListing } from "@svc/jail-client";
import type { Listing } from "./outputs.ts";

export function decodeListing(listing: WorkspaceListing): Listing {
  const omitted = listing.omitted.map(({ path, reason }) => ({ path: path.toString("utf8"), reason }));
  const named = <T extends { path: Buffer }>(entries: readonly T[]): (Omit<T, "path"> & { path: string })[] =>
    entries.flatMap(({ path: bytes, ...entry }) => {
      const path = bytes.toString("utf8");
      if (isUtf8(bytes)) return [{ ...entry, path }];
      omitted.push({ path, reason: "name" });
      return [];
    });
  const files = named(listing.files);
  const emptyDirectories = named(listing.emptyDirectories.map((path) => ({ path }))).map(({ path }) => path);
  const { kept, missing, timedOut, uncompared, unlisted } = listing;
  const directories = listing.directories
    .filter(({ path }) => isUtf8(path))
    .map(({ path, mode }) => ({ path: path.toString("utf8"), mode }));
  const symlinks = named(listing.symlinks).map(({ path, target }) => ({
    path,
    target: target.toString("utf8"),
  }));
  return {
    files,
    emptyDirectories,
    directories,
    symlinks,
    kept,
    missing,
    omitted,
    timedOut,
    uncompared,
    unlisted,
  };
}

/** The listing without one directory and its content. */
export function withoutDirectory(listing: Listing, directory: string | undefined): Listing {
  if (directory === undefined) return listing;
  return filtered(listing, (path) => path !== directory && !path.startsWith(`${directory}/`));
}

export function filtered(listing: Listing, isWanted: (path: string) => boolean): Listing {
  const wanted = <T extends { path: string }>(entries: readonly T[]) =>
    entries.filter(({ path }) => isWanted(path));
  return {
    ...listing,
    files: wanted(listing.files),
    emptyDirectories: listing.emptyDirectories.filter(isWanted),
    directories: wanted(listing.directories),
    symlinks: wanted(listing.symlinks),
    omitted: wanted(listing.omitted),
  };
}
