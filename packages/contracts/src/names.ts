/**
 * The rules for file names: the only check of every path under /mnt/data that a caller or a program chooses.
 * 1 to `maxLength` characters; relative; at most `maxDepth` segments; no empty, `.` or `..` segment; no trailing slash;
 * no backslash, NUL or control character; valid Unicode (no lone surrogate, nothing that was broken UTF-8).
 */
export interface NameLimits {
  maxLength: number;
  maxDepth: number;
}

export const DEFAULT_NAME_LIMITS: NameLimits = { maxLength: 256, maxDepth: 10 };

/** The largest limits that an operator can configure. Names travel in headers and paths, where one character may take twelve. */
export const WIDEST_NAME_LIMITS: NameLimits = { maxLength: 512, maxDepth: 64 };

/** POSIX NAME_MAX: a longer segment cannot exist on the workspace's file system. */
const MAX_SEGMENT_BYTES = 255;

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\\]/u;

/** A short sentence about what is wrong with a file name; undefined for a valid name. */
export function fileNameProblem(name: unknown, limits: NameLimits = DEFAULT_NAME_LIMITS): string | undefined {
  if (typeof name !== "string" || name.length === 0) return "must be a non-empty string";
  if (isLongerThan(name, limits.maxLength)) return `must have at most ${limits.maxLength} characters`;
  if (!name.isWellFormed() || name.includes("\ufffd")) return "must be valid UTF-8";
  if (FORBIDDEN.test(name)) return "must not contain backslashes or control characters";
  if (name.startsWith("/")) return "must be a relative path";
  if (name.endsWith("/")) return "must not end with a slash";
  const segments = name.split("/");
  if (segments.length > limits.maxDepth) return `must have at most ${limits.maxDepth} path segments`;
  for (const segment of segments) {
    if (segment === "" || segment === "." || segment === "..") return "must not have empty, . or .. segments";
    if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES)
      return "must not have segments of more than 255 bytes";
  }
  return undefined;
}

/** Never counts the characters of a very long text: the name may be as long as a request body. */
function isLongerThan(name: string, characters: number): boolean {
  return name.length > characters && (name.length > 2 * characters || [...name].length > characters);
}

export const DIRKEEP = ".dirkeep";

/** Whether the last segment of a path is `.dirkeep`, which asks only for its directory. */
export function isDirkeep(name: string): boolean {
  return name === DIRKEEP || name.endsWith(`/${DIRKEEP}`);
}

/** The directory that a `.dirkeep` path stands for; empty for the workspace itself. */
export function dirkeepDirectory(name: string): string {
  return name === DIRKEEP ? "" : name.slice(0, -DIRKEEP.length - 1);
}

/** The parent directories of a path, outermost first: `a` and `a/b` for `a/b/c`. */
export function directoriesOf(path: string): string[] {
  const directories: string[] = [];
  for (let slash = path.indexOf("/"); slash !== -1; slash = path.indexOf("/", slash + 1)) {
    directories.push(path.slice(0, slash));
  }
  return directories;
}

export interface PathConflict {
  first: number;
  second: number;
  problem: string;
}

/**
 * The first conflict among workspace paths: two equal paths, or a path that is a directory of another.
 * Runs in time linear to the total number of segments.
 */
export function findPathConflict(paths: readonly string[]): PathConflict | undefined {
  const files = new Map<string, number>();
  for (const [index, path] of paths.entries()) {
    const earlier = files.get(path);
    if (earlier !== undefined)
      return { first: earlier, second: index, problem: "has the same path as another file" };
    files.set(path, index);
  }
  for (const [index, path] of paths.entries()) {
    for (const directory of directoriesOf(path)) {
      const owner = files.get(directory);
      if (owner !== undefined) {
        return {
          first: Math.min(owner, index),
          second: Math.max(owner, index),
          problem: "is a directory of another file's path",
        };
      }
    }
  }
  return undefined;
}
