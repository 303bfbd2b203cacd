/**
 * Saves output files below one folder. The names come from an untrusted program. A name is accepted only when it stays below
 * the folder. No symbolic link below the folder is followed. An existing file is replaced only on request.
 */
import { constants } from "node:fs";
import { lstat, mkdir, open, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileNameProblem, WIDEST_NAME_LIMITS } from "@svc/contracts/names";
import { Problem } from "../problem.ts";
import { makeFolder } from "../system/folders.ts";
import { systemProblem } from "../unexpected.ts";

const ELSEWHERE = "Choose another folder with --out DIR.";
const OTHER_FOLDER = "Move it away, or choose another folder with --out DIR.";

export async function saveOutput(
  folder: string,
  name: string,
  content: Uint8Array,
  force: boolean,
): Promise<string> {
  const problem = fileNameProblem(name, WIDEST_NAME_LIMITS);
  if (problem !== undefined)
    throw new Problem(`the output name ${JSON.stringify(name)} ${problem}`, "The file was not saved.");
  makeFolder(folder);
  const base = await realpath(folder);
  const path = join(base, name);
  await makeParents(base, name);
  const existing = await lstat(path).catch(() => undefined);
  if (existing !== undefined && !existing.isFile())
    throw new Problem(`${path} exists and is not a regular file`, OTHER_FOLDER);
  if (existing !== undefined && !force)
    throw new Problem(
      `${path} exists already`,
      "Replace it with --force, or choose another folder with --out DIR.",
    );
  await write(path, content, force).catch((error: unknown) => {
    const reason = systemProblem(error)?.message;
    throw reason === undefined ? error : new Problem(`cannot save an output file: ${reason}`, ELSEWHERE);
  });
  return path;
}

async function write(path: string, content: Uint8Array, force: boolean): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_TRUNC, O_NOFOLLOW } = constants;
  const file = await open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | (force ? O_TRUNC : O_EXCL), 0o644);
  try {
    await file.writeFile(content);
  } finally {
    await file.close();
  }
}

/** Makes the folders of a name one by one, through real folders only. */
async function makeParents(base: string, name: string): Promise<void> {
  let folder = base;
  const relative = dirname(name);
  if (relative === ".") return;
  for (const segment of relative.split("/")) {
    folder = join(folder, segment);
    await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    if (!(await lstat(folder)).isDirectory())
      throw new Problem(`${folder} exists and is not a folder`, OTHER_FOLDER);
  }
}
