/**
 * Saves output files below one folder. The names come from a program that nobody trusts: a name is accepted only when it
 * stays below the folder, no link on the way is followed out of it, and an existing file is replaced only when asked.
 */
import { constants } from "node:fs";
import { lstat, mkdir, open, realpath } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { fileNameProblem } from "@svc/contracts/names";
import { Problem } from "../problem.ts";
import { makeFolder } from "../system/folders.ts";

export async function saveOutput(
  folder: string,
  name: string,
  content: Uint8Array,
  force: boolean,
): Promise<string> {
  const problem = fileNameProblem(name);
  if (problem !== undefined) throw new Problem(`the output name ${JSON.stringify(name)} ${problem}`);
  makeFolder(folder);
  const base = await realpath(folder);
  const path = join(base, name);
  const parent = await makeParents(base, name);
  const inside = await realpath(parent);
  if (inside !== base && !inside.startsWith(base === sep ? sep : base + sep)) {
    throw new Problem(`${path} leads out of ${base} through a link`);
  }
  const existing = await lstat(path).catch(() => undefined);
  if (existing !== undefined && !existing.isFile())
    throw new Problem(`${path} exists and is no regular file`);
  if (existing !== undefined && !force)
    throw new Problem(
      `${path} exists already`,
      "Replace it with --force, or choose another folder with --out DIR.",
    );
  const { O_WRONLY, O_CREAT, O_EXCL, O_TRUNC, O_NOFOLLOW } = constants;
  const file = await open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | (force ? O_TRUNC : O_EXCL), 0o644);
  try {
    await file.writeFile(content);
  } finally {
    await file.close();
  }
  return path;
}

/** Makes the folders of a name one by one, through real folders only. */
async function makeParents(base: string, name: string): Promise<string> {
  let folder = base;
  const relative = dirname(name);
  if (relative === ".") return folder;
  for (const segment of relative.split("/")) {
    folder = join(folder, segment);
    await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    if (!(await lstat(folder)).isDirectory()) throw new Problem(`${folder} exists and is no folder`);
  }
  return folder;
}
